"""How a bench runs on Spark: the table ``[spark]`` of a spec."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.errors import InputError, unknown
from penstock.core.guards import Guards

MINUTE = 60.0  # thesis seconds
LEAST_MINUTE, MOST_MINUTE = 0.5, 60.0  # seconds on the clock
MOST_SLOTS, MOST_PARTITIONS = 64, 256
LEAST_TRIGGER, MOST_TRIGGER = 0.1, 60.0
MOST_PEAK = 2.0
EMBEDDED, KAFKA = "embedded", "kafka"
SOURCES = (EMBEDDED, KAFKA)
LEAST_PERIOD = 0.1  # seconds on the clock: an observation takes about that long


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """The cluster, how fast time goes, and how high the load is.

    minute: seconds on the clock that a minute of thesis time lasts
    slots: most executors
    cpu_share: of a core that each may use, ``None`` for no limit
    partitions: of the source and of the state
    trigger: seconds on the clock between micro-batches
    peak: the highest rate of a workload, as a share of the capacity that all executors were
        measured to have
    peak_rate: the same in records/s on the clock, instead
    source: where the events come from: ``embedded``, made where they are read, or ``kafka``
    check: whether the result of the first seed is compared with a batch run over the same
        events

    >>> SparkSettings(minute=3).speed
    20.0
    """

    minute: float = 3.0
    slots: int = 8
    cpu_share: float | None = 0.2
    partitions: int = 8
    trigger: float = 1.0
    peak: float = 0.8
    peak_rate: float | None = None
    source: str = EMBEDDED
    check: bool = False

    def __post_init__(self) -> None:
        _within("minute", self.minute, LEAST_MINUTE, MOST_MINUTE, "seconds")
        _within("slots", self.slots, 2, MOST_SLOTS, "executors")
        _within("partitions", self.partitions, 1, MOST_PARTITIONS, "tasks")
        _within("trigger", self.trigger, LEAST_TRIGGER, MOST_TRIGGER, "seconds")
        if self.cpu_share is not None and not 0 < self.cpu_share < math.inf:
            raise InputError(f"cpu_share = {self.cpu_share} must be a share of a core above 0")
        if not 0 < self.peak <= MOST_PEAK:
            raise InputError(f"peak = {self.peak} must be above 0 and at most {MOST_PEAK:g}")
        if self.source not in SOURCES:
            raise unknown("source", self.source, SOURCES)
        if self.peak_rate is not None and not 1 <= self.peak_rate < math.inf:
            raise InputError(f"peak_rate = {self.peak_rate} must be at least 1 record/s")

    @property
    def speed(self) -> float:
        """Thesis seconds per second on the clock."""
        return MINUTE / self.minute

    def clock(self, seconds: float) -> float:
        """Thesis seconds as seconds on the clock."""
        return seconds / self.speed

    def parameters(self, known: Iterable[str], given: Mapping[str, Any]) -> dict[str, Any]:
        """A policy's parameters: what Spark's engine implies where nothing is given."""
        from penstock.spark.settings.settings import ON_SPARK

        return {name: v for name, v in ON_SPARK.items() if name in known} | dict(given)

    def guards(self, given: Guards) -> Guards:
        """Guards with no more slots than there are executors; they stay in thesis time.

        All but ``max_age``: how old a reading may be is about measuring, which is not
        compressed, so it is as many seconds on the clock.
        """
        return replace(
            given,
            maximum=min(given.maximum, self.slots),
            cap=None if given.cap is None else min(given.cap, self.slots),
            max_age=given.max_age * self.speed,
        )


def _within(name: str, value: float, least: float, most: float, unit: str) -> None:
    if not (math.isfinite(value) and least <= value <= most):
        raise InputError(f"{name} = {value:g} must lie between {least:g} and {most:g} {unit}")
