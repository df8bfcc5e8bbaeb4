"""Runs all cells over all seeds, and what the runs of a condition say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.papers import running
from penstock.papers.geo.simulated.cells import Condition, GeoCell, Scaler
from penstock.papers.geo.simulated.experiment import GeoOutcome, Look
from penstock.papers.geo.simulated.experiment import run as run_cell
from penstock.papers.judging import Verdict
from penstock.papers.running import Progress
from penstock.report.statistics import paired
from penstock.simulator.geo.setups import NODES, RATE

WHOLE = 0.98  # of the load


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run: a cell with a seed."""

    cell: GeoCell
    seed: int

    @property
    def key(self) -> str:
        """Of its cell."""
        return self.cell.key


@dataclass(frozen=True, slots=True, kw_only=True)
class GeoOutcomes:
    """All runs that a folder holds."""

    runs: tuple[GeoOutcome, ...]

    def of(self, condition: Condition, scaler: Scaler = "levels") -> list[GeoOutcome]:
        """The runs under a condition, by seed."""
        key = GeoCell(condition=condition, scaler=scaler).key
        return sorted((r for r in self.runs if r.key == key), key=lambda r: r.seed)

    def level(self, condition: Condition, slots: int) -> list[Look]:
        """What was seen at a level, by seed."""
        return [run.looks[slots - 1] for run in self.of(condition)]

    def rate(self, condition: Condition, slots: int) -> float:
        """Mean records/s at a level."""
        return mean([look.rate for look in self.level(condition, slots)])

    def less(self, condition: Condition, slots: int, base: int) -> Verdict:
        """Whether a level does less than another, run by run: by the interval of the difference."""
        pairs = [[look.rate for look in self.level(condition, n)] for n in (slots, base)]
        verdict = paired(*pairs).verdict
        return "tie" if verdict == "tie" else "held" if verdict == "lower" else "not held"

    def full(self, condition: Condition) -> int | None:
        """The fewest instances that take in the whole load in the mean; ``None``: none do.

        All but 2 % of it, as rates are measured within 1 %.
        """
        levels = range(1, NODES + 1)
        return next((n for n in levels if self.rate(condition, n) >= WHOLE * RATE), None)

    def best(self, condition: Condition) -> int:
        """The instances that do most in the mean."""
        return max(range(1, NODES + 1), key=lambda n: self.rate(condition, n))

    def errors(self, condition: Condition, slots: int, scaler: Scaler) -> list[float]:
        """predicted / measured − 1 at a level, of every run in which it was predicted.

        Gesscale's count as far as its auto-scaler comes in that run.
        """
        found = []
        for run in self.of(condition):
            look = run.looks[slots - 1]
            value = look.plus if scaler == "gesscale+" else look.gesscale
            reached = scaler == "gesscale+" or slots <= run.stays
            if value is not None and reached:
                found.append(value / look.rate - 1.0)
        return found

    def all_errors(self, condition: Condition, scaler: Scaler) -> list[float]:
        """Of all levels."""
        levels = range(2, NODES + 1)
        return [error for n in levels for error in self.errors(condition, n, scaler)]

    def inside(self, condition: Condition) -> float | None:
        """How often the next level is measured within the 95 % interval of ``gesscale+``."""
        looks = [look for run in self.of(condition) for look in run.looks]
        found = [
            abs(look.plus - look.rate) <= look.plus_width
            for look in looks
            if look.plus is not None and look.plus_width is not None
        ]
        return mean(found) if found else None


def mean(values: Sequence[float]) -> float:
    """Of at least one value."""
    return sum(values) / len(values)


def load(folder: Path) -> GeoOutcomes:
    """What a folder holds; a line that was cut off does not count."""
    return GeoOutcomes(runs=running.load(GeoOutcome, folder))


def run(
    cells: Sequence[GeoCell],
    seeds: Sequence[int],
    folder: Path,
    *,
    workers: int | None = None,
    progress: Progress = lambda finished, total: None,
) -> GeoOutcomes:
    """Run what the folder does not hold yet, seed by seed."""
    groups = [[Task(cell=cell, seed=seed) for cell in cells] for seed in seeds]
    return GeoOutcomes(
        runs=running.run(groups, _work, GeoOutcome, folder, workers=workers, progress=progress)
    )


def _work(task: Task) -> GeoOutcome:
    return run_cell(task.cell, task.seed, check=running.leave_if_stopping)
