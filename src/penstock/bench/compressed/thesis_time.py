"""Thesis time: what a policy sees of a Spark run that goes twenty times as fast.

Everything that a policy, a guard, a journal or a score reads is in the units of the thesis, so
that no parameter has to be changed: a cool-down of 300 s stays one of 300 s. What is stretched is
the observation (docs/decisions/0006).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.core.facts import JoinTime, PoolFacts
from penstock.core.model import Change, OperatorSeen, QuerySeen, Rescale, Snapshot, SourceSeen
from penstock.core.ports import Engine

Unit = Literal["moment", "seconds", "rate", "records", "seconds per record", "own"]

UNITS: Mapping[type, Mapping[str, Unit]] = {
    Snapshot: {"time": "moment", "window": "seconds", "age": "seconds"},
    OperatorSeen: {
        "offered_rate": "rate",
        "arrival_rate": "rate",
        "output_rate": "rate",
        "service_rate": "rate",
        "lag": "records",
        "latency": "seconds",
    },
    Rescale: {
        "time": "moment",
        "registered": "seconds",
        "first_task": "seconds",
        "steady": "seconds",
        "downtime": "seconds",
    },
    SourceSeen: {
        "lag": "records",
        "lag_seconds": "seconds",
        "partitions": "records",
        "most_rows": "records",
    },
    PoolFacts: {"join": "own"},
    JoinTime: {"seconds": "seconds"},
    QuerySeen: {
        "sources": "own",
        "rows": "records",
        "batch_duration": "seconds",
        "batch_interval": "seconds",
        "offered_rate": "rate",
        "processed_rate": "rate",
        "output_rate": "rate",
        "lag": "records",
        "lag_seconds": "seconds",
        "age": "seconds",
        "overdue": "seconds",
        "running_for": "seconds",
        "latency_p50": "seconds",
        "latency_p95": "seconds",
        "latency_p99": "seconds",
        "cost_fixed": "seconds",
        "cost_per_record": "seconds per record",
        "busy_per_record": "seconds per record",
        "trigger": "seconds",
        "admission_limit": "records",
        "partitions": "seconds",
    },
}
"""The unit of every field that has one; all others (shares, counts, names) stay as they are.
``own``: values with fields of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From the clock and Spark's records to thesis time and the workload's records.

    ``start`` moment on the clock (epoch s) at which thesis time is 0 · ``speed`` thesis seconds
    per second on the clock · ``rate`` records/s on the clock for one record/s of the workload.

    A rate on the clock is divided by ``rate``, so that a policy sees the workload's own rates
    and thresholds in records/s mean what they mean in the thesis. Then a record of the stream
    stands for ``weight`` records of the workload, and lag / rate is a time in thesis seconds.

    >>> Scale(start=100.0, speed=20.0, rate=0.01).moment(103.0)
    60.0
    """

    start: float
    speed: float
    rate: float

    @property
    def weight(self) -> float:
        """Records of the workload that one record of the stream stands for."""
        return self.speed / self.rate

    def moment(self, clock: float) -> float:
        """Thesis seconds since the load began."""
        return (clock - self.start) * self.speed

    def view(self, seen: Snapshot) -> Snapshot:
        """A snapshot in thesis time."""
        whole: Snapshot = self._scaled(seen)
        return dataclasses.replace(
            whole,
            operators={name: self._scaled(o) for name, o in seen.operators.items()},
            rescales=tuple(self._scaled(r) for r in seen.rescales),
            queries={name: self._scaled(q) for name, q in seen.queries.items()},
            facts={pool: self._scaled(f) for pool, f in seen.facts.items()},
        )

    def _scaled(self, value: Any) -> Any:
        changes = {
            name: self._convert(given, unit)
            for name, unit in UNITS[type(value)].items()
            if (given := getattr(value, name)) is not None
        }
        return dataclasses.replace(value, **changes)

    def _convert(self, value: Any, unit: Unit) -> Any:
        if isinstance(value, tuple):
            return tuple(self._convert(item, unit) for item in value)
        if isinstance(value, Mapping):
            return {key: self._convert(item, unit) for key, item in value.items()}
        if unit == "own":
            return self._scaled(value)
        if unit == "moment":
            return self.moment(value)
        factor = {
            "seconds": self.speed,
            "rate": 1.0 / self.rate,
            "records": self.weight,
            "seconds per record": self.speed / self.weight,
        }[unit]
        return round(value * factor) if isinstance(value, int) else value * factor


class ThesisTime:
    """An engine on the clock as one in thesis time.

    ``advance`` waits until a moment and not for a time, so that slow observations do not add
    up; ``now`` is the clock.
    """

    def __init__(
        self, engine: Engine, scale: Scale, *, now: Callable[[], float] = time.time
    ) -> None:
        self._engine = engine
        self._scale = scale
        self._clock = now
        self._asked = 0.0

    @property
    def late(self) -> float:
        """Thesis seconds that have gone by since the moment last waited for."""
        return self._scale.moment(self._clock()) - self._asked

    def observe(self) -> Snapshot:
        """What the engine has seen, in thesis time."""
        return self._scale.view(self._engine.observe())

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Ask for new pool sizes."""
        self._engine.apply(changes)

    def advance(self, seconds: float) -> bool:
        """Wait until so many thesis seconds after the moment last waited for."""
        self._asked += seconds
        due = self._scale.start + self._asked / self._scale.speed
        left = due - self._clock()
        return self._engine.advance(left) if left > 0 else True
