"""All climbs of a run of the experiment, and what those of a condition say together."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Literal

from penstock.papers.geo.spark.conditions import MOST, Condition
from penstock.papers.geo.spark.levels import Climb, Level

Scaler = Literal["gesscale", "gesscale+"]
SCALERS: tuple[Scaler, ...] = ("gesscale", "gesscale+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A condition that was measured with the rows of a seed."""

    key: str
    seed: int
    climb: Climb


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """All that a folder holds."""

    runs: tuple[Outcome, ...]

    def of(self, condition: Condition) -> list[Climb]:
        """The climbs of a condition, by seed."""
        found = [run for run in self.runs if run.key == condition.key]
        return [run.climb for run in sorted(found, key=lambda run: run.seed)]

    def level(self, condition: Condition, slots: int) -> list[Level]:
        """What was measured with so many executors, by seed."""
        return [climb.levels[slots - 1] for climb in self.of(condition)]

    def rate(self, condition: Condition, slots: int) -> float:
        """Records/s in the mean."""
        return statistics.fmean(level.rate for level in self.level(condition, slots))

    def gain(self, condition: Condition) -> float:
        """What an executor more adds, as a share of what the first one does; in the mean."""
        first = self.rate(condition, 1)
        return (self.rate(condition, MOST) - first) / (MOST - 1) / first

    def errors(self, condition: Condition, scaler: Scaler, slots: int | None = None) -> list[float]:
        """foretold / measured − 1, of one level or of all that were foretold."""
        levels = [level for climb in self.of(condition) for level in climb.levels]
        found = []
        for level in levels:
            value = level.plus if scaler == "gesscale+" else level.gesscale
            if value is not None and slots in (None, level.slots):
                found.append(value / level.rate - 1.0)
        return found

    def error(self, condition: Condition, scaler: Scaler) -> float:
        """Mean size of all errors."""
        return statistics.fmean(abs(error) for error in self.errors(condition, scaler))

    def inside(self, condition: Condition) -> float:
        """How often a level is within the 95 % interval of ``gesscale+``."""
        levels = [level for climb in self.of(condition) for level in climb.levels]
        return statistics.fmean(
            abs(level.plus - level.rate) <= level.plus_width
            for level in levels
            if level.plus is not None and level.plus_width is not None
        )
