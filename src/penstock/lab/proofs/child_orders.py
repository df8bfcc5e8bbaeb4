"""What a proof and the driver that it runs as a child process tell each other, in files.

The proof writes an :class:`Order` and touches flags; the driver appends one JSON line per report.
Files survive a kill of either side, which is the point.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

SEESAW = "seesaw"  # the policy of this package; others by their registered names
Flag = Literal["limited", "finish"]
Kind = Literal["started", "asked", "batch", "comparing", "result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the driver is to run.

    ``folder`` is for everything the two share · ``conf`` the session's, from the cluster ·
    ``journal`` of the auto-scaler, which goes on where an earlier driver stopped · ``rate``
    records/s that one executor takes (``None``: find out) · ``low`` and ``high`` the load as
    multiples of that, for ``calm`` and ``busy`` seconds in turn · ``period`` seconds between
    decisions, ``cool_down`` seconds between actions.
    """

    folder: str
    query: str
    conf: Mapping[str, str]
    journal: str
    slots: int
    policy: str
    parameters: Mapping[str, Any]
    rate: float | None
    low: float
    high: float
    calm: int
    busy: int
    period: float
    cool_down: float

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.folder)

    def save(self) -> Path:
        """Write it down; returns the file."""
        self.path.mkdir(parents=True)
        file = self.path / "order.json"
        file.write_text(json.dumps(asdict(self)))
        return file

    @classmethod
    def load(cls, file: Path) -> Order:
        """The order in a file."""
        return cls(**json.loads(file.read_text()))

    def flag(self, name: Flag) -> Path:
        """A file whose presence tells the driver something."""
        return self.path / name


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One line of a driver: what happened, when (epoch seconds), and more."""

    kind: Kind
    time: float
    more: Mapping[str, Any]


def report(order: Order, kind: Kind, time: float, **more: Any) -> None:
    """Append a line; one write, so a reader sees all of it or a part without its end."""
    line = json.dumps({"kind": kind, "time": time, "more": more}) + "\n"
    with (order.path / "reports.jsonl").open("ab", buffering=0) as file:
        file.write(line.encode())


class Reports:
    """Reads the reports of an order as they come."""

    def __init__(self, order: Order) -> None:
        self._file = order.path / "reports.jsonl"
        self._read = 0

    def new(self) -> list[Report]:
        """Those since the last call; a line without its end is left for the next."""
        if not self._file.exists():
            return []
        with self._file.open("rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        if not newline:
            return []
        self._read += len(whole) + 1
        # A driver that was killed in the middle of a line leaves it to be continued by the next.
        lines = (line[line.rfind(b'{"kind"') :] for line in whole.split(b"\n") if line)
        return [Report(**json.loads(line)) for line in lines]
