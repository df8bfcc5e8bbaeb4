"""What could not be learnt, or was taken for granted, in sentences."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Notes:
    """Notes, each once; of several queries with the name before."""

    several: bool
    lines: list[str] = field(default_factory=list)

    def add(self, line: str, query: str = "") -> None:
        """Note a line, of a query where it is named; once."""
        text = f"{query}: {line}" if query and self.several else line
        if text not in self.lines:
            self.lines.append(text)
