"""The journal: one JSON line per tick, replayable through any policy.

The first line says who decided: ``{"penstock": version, "policy": …, "guards": …, "seed": …}``.
Every other line is one decision and the state after it, so that a restarted controller goes on
where the last one stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, State, plan
from penstock.core.ports import Policy

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Who decided: a policy by name and parameters, its guards, mode and seed."""

    policy: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    guards: Guards = field(default_factory=Guards)
    mode: str = "advise"
    seed: int = 0
    period: float | None = None
    format: int = FORMAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line: a decision and the state of the loop after it."""

    decision: Decision
    state: State


class Journal:
    """Writes a journal; each line is flushed, so a crash loses at most the line being written."""

    def __init__(self, path: Path, header: Header) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file: IO[str] = path.open("w", encoding="utf-8")
        self._line(header)

    def record(self, decision: Decision, state: State) -> None:
        """Append one tick."""
        self._line(Entry(decision=decision, state=state))

    def close(self) -> None:
        """Close the file; further calls do nothing."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _line(self, value: Header | Entry) -> None:
        text = json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))
        self._file.write(text + "\n")
        self._file.flush()


def read(path: Path) -> tuple[Header, list[Entry]]:
    """A journal as it was written. A torn last line (a crash) is left out; others are errors."""
    try:
        # Not splitlines(): a reason may hold U+2028 and its like, which JSON leaves as they are.
        lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line]
    except FileNotFoundError:
        raise InputError(f"no journal at {path}") from None
    if not lines:
        raise InputError(f"{path} is empty; a journal begins with a header line")
    documents = list(_documents(path, lines))
    header = from_json(Header, documents[0])
    if header.format != FORMAT:
        raise InputError(f"{path} has journal format {header.format}, this version reads {FORMAT}")
    return header, [from_json(Entry, d) for d in documents[1:]]


def replay(entries: list[Entry], policy: Policy, guards: Guards, seed: int) -> list[Decision]:
    """What a policy says to the snapshots of a journal; nothing is applied.

    The journal's own actions have shaped its snapshots, so the cool-down starts where they were.
    """
    state = State(memory=policy.start(seed))
    decisions = []
    for entry in entries:
        decision, state = plan(policy, guards, entry.decision.seen, state)
        state = replace(state, last_action=entry.state.last_action)
        decisions.append(decision)
    return decisions


def _documents(path: Path, lines: list[str]) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines) and number > 1:
                return
            raise InputError(f"{path}, line {number}: not JSON ({error.msg})") from None
