"""What one example did under a load that rises and falls: the truth, and what Penstock saw of it.

The truth is what the feed counted and what Spark's own event log says; what was seen is in the
journal of ``penstock run``.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from penstock.batches.snapshot import POOL
from penstock.core.loop import Decision

PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One decision: what it saw, and the executors that it asked for, if it did.

    ``running`` seconds that a batch had run that counted before its end.
    """

    time: float
    executors: int
    offered: float | None
    lag: float | None
    running: float | None
    asked: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One micro-batch of Spark's event log: when it was planned and committed, and its rows."""

    start: float
    end: float
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCourse:
    """All that is known of the run of one example; moments in epoch seconds.

    rise, fall: when the load went up and down · counts: lines fed by when · joined, left: moments
    at which executors registered and were removed
    """

    name: str
    period: float
    window: float
    rise: float
    fall: float
    end: float
    low: float
    high: float
    counts: tuple[tuple[float, int], ...]
    batches: tuple[Ran, ...]
    joined: tuple[float, ...]
    left: tuple[float, ...]
    looks: tuple[Look, ...]

    def fed(self, moment: float) -> float:
        """Lines that were fed by a moment."""
        times, totals = zip(*self.counts, strict=True)
        return float(np.interp(moment, times, totals))

    def waiting(self, moment: float) -> float | None:
        """Lines that no batch had been planned for; ``None`` where Spark did not tell.

        A batch that had not been committed at the end is not in the log, so nothing is known
        after the last one.
        """
        if not self.batches or moment > self.batches[-1].end:
            return None
        taken = sum(b.rows for b in self.batches if b.start <= moment)
        return max(0.0, self.fed(moment) - taken)

    def batch_at(self, moment: float) -> Ran | None:
        """The last batch that was planned by then."""
        at = bisect_right([b.start for b in self.batches], moment)
        return self.batches[at - 1] if at else None


def looks_of(decisions: Iterable[Decision]) -> tuple[Look, ...]:
    """What Penstock saw of the only query, tick by tick."""
    found = []
    for decision in decisions:
        seen = decision.seen
        query = next(iter(seen.queries.values()), None)
        change = decision.changes.get(POOL) if decision.applied else None
        found.append(
            Look(
                time=seen.time,
                executors=seen.slots(POOL),
                offered=None if query is None else query.offered_rate,
                lag=None if query is None else query.lag,
                running=None if query is None else query.running_for,
                asked=None if change is None else change.slots,
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """What Spark's event log tells of batches and executors."""

    batches: tuple[Ran, ...]
    joined: tuple[float, ...]
    left: tuple[float, ...]

    @classmethod
    def read(cls, folder: Path) -> EventLog:
        """All logs of a folder, also while they are written: a torn last line is left out."""
        batches: list[Ran] = []
        joined: list[float] = []
        left: list[float] = []
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".crc"):
            for event in _events(path.read_text(encoding="utf-8", errors="replace")):
                kind = event.get("Event")
                if kind == PROGRESS:
                    batches.append(_ran(event["progress"]))
                elif kind == "SparkListenerExecutorAdded":
                    joined.append(event["Timestamp"] / 1e3)
                elif kind == "SparkListenerExecutorRemoved":
                    left.append(event["Timestamp"] / 1e3)
        return cls(batches=tuple(batches), joined=tuple(joined), left=tuple(left))


def _events(text: str) -> Iterable[dict[str, Any]]:
    for line in text.split("\n"):
        try:
            event = json.loads(line) if line else None
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _ran(progress: Any) -> Ran:
    if isinstance(progress, str):
        progress = json.loads(progress)
    start = datetime.fromisoformat(progress["timestamp"]).timestamp()
    rows = sum(int(s.get("numInputRows", 0)) for s in progress.get("sources", []))
    return Ran(start=start, end=start + int(progress.get("batchDuration", 0)) / 1e3, rows=rows)


def thinned(counts: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """Counts as a tuple of plain pairs."""
    return tuple((float(t), int(n)) for t, n in counts)
