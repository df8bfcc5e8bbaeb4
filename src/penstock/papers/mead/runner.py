"""Runs all cells over all seeds in several processes; what is finished is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.papers import running
from penstock.papers.mead.cells import MeadCell
from penstock.papers.mead.experiment import MeadOutcome
from penstock.papers.mead.experiment import run as run_cell
from penstock.papers.mead.traces import arrivals
from penstock.papers.running import Progress
from penstock.report.statistics import Estimate, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run: a cell with a seed on the first ``seconds`` of its trace."""

    cell: MeadCell
    seed: int
    seconds: float
    detailed: bool

    @property
    def key(self) -> str:
        """Of its cell."""
        return self.cell.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """All runs that a folder holds."""

    runs: tuple[MeadOutcome, ...]

    def of(self, cell: MeadCell) -> list[MeadOutcome]:
        """The runs of a cell, by seed."""
        return sorted((r for r in self.runs if r.key == cell.key), key=lambda r: r.seed)

    def estimate(self, cell: MeadCell, figure: str) -> Estimate | None:
        """Mean and interval of a figure over the seeds."""
        values = [float(getattr(outcome, figure)) for outcome in self.of(cell)]
        return estimate(values) if values else None


def load(folder: Path) -> Outcomes:
    """What a folder holds; a line that was cut off does not count."""
    return Outcomes(runs=running.load(MeadOutcome, folder))


def run(
    cells: Sequence[MeadCell],
    seeds: Sequence[int],
    folder: Path,
    *,
    workers: int | None = None,
    seconds: float = math.inf,
    progress: Progress = lambda finished, total: None,
) -> Outcomes:
    """Run what the folder does not hold yet, on the first ``seconds`` of the traces."""
    groups = _groups(cells, seeds, seconds)
    return Outcomes(
        runs=running.run(groups, _work, MeadOutcome, folder, workers=workers, progress=progress)
    )


def _groups(cells: Sequence[MeadCell], seeds: Sequence[int], seconds: float) -> list[list[Task]]:
    """By trace and seed: such runs share their windows, and so the fits.

    So do all seeds of BC, which is why they follow one another.
    """
    return [
        [
            Task(cell=cell, seed=seed, seconds=seconds, detailed=seed == seeds[0])
            for cell in cells
            if cell.trace == trace
        ]
        for trace in dict.fromkeys(cell.trace for cell in cells)
        for seed in seeds
    ]


def _work(task: Task) -> MeadOutcome:
    times = arrivals(task.cell.trace, task.seed, task.seconds)
    check = running.leave_if_stopping
    return run_cell(task.cell, task.seed, times, detailed=task.detailed, check=check)
