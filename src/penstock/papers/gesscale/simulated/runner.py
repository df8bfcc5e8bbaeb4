"""Runs all cells over all seeds; pairs of runs with the same fog for every comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.papers import running
from penstock.papers.gesscale.simulated.experiment import GesscaleOutcome
from penstock.papers.gesscale.simulated.experiment import run as run_cell
from penstock.papers.gesscale.simulated.setups import MAIN, GesscaleCell
from penstock.papers.running import Progress
from penstock.report.statistics import Difference, Estimate, estimate, paired


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run: a cell with a seed."""

    cell: GesscaleCell
    seed: int
    detailed: bool

    @property
    def key(self) -> str:
        """Of its cell."""
        return self.cell.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """All runs that a folder holds."""

    runs: tuple[GesscaleOutcome, ...]

    def of(self, policy: str, setup: str = MAIN.name) -> list[GesscaleOutcome]:
        """The runs of a policy in a set-up, by seed."""
        key = GesscaleCell(setup=setup, policy=policy).key
        return sorted((r for r in self.runs if r.key == key), key=lambda r: r.seed)

    def values(self, policy: str, figure: str, setup: str = MAIN.name) -> list[float]:
        """A figure by seed; runs that do not have it are left out."""
        found = (getattr(outcome, figure) for outcome in self.of(policy, setup))
        return [float(value) for value in found if value is not None]

    def estimate(self, policy: str, figure: str, setup: str = MAIN.name) -> Estimate | None:
        """Mean and interval of a figure over the seeds."""
        values = self.values(policy, figure, setup)
        return estimate(values) if values else None

    def paired(self, policy: str, base: str, figure: str, setup: str = MAIN.name) -> Difference:
        """The difference of two policies in the same fogs."""
        return paired(self.values(policy, figure, setup), self.values(base, figure, setup))


def load(folder: Path) -> Outcomes:
    """What a folder holds; a line that was cut off does not count."""
    return Outcomes(runs=running.load(GesscaleOutcome, folder))


def run(
    cells: Sequence[GesscaleCell],
    seeds: Sequence[int],
    folder: Path,
    *,
    workers: int | None = None,
    progress: Progress = lambda finished, total: None,
) -> Outcomes:
    """Run what the folder does not hold yet, seed by seed."""
    groups = [
        [
            Task(cell=cell, seed=seed, detailed=seed == seeds[0] and cell.setup == MAIN.name)
            for cell in cells
        ]
        for seed in seeds
    ]
    return Outcomes(
        runs=running.run(groups, _work, GesscaleOutcome, folder, workers=workers, progress=progress)
    )


def _work(task: Task) -> GesscaleOutcome:
    check = running.leave_if_stopping
    return run_cell(task.cell, task.seed, detailed=task.detailed, check=check)
