"""What ``penstock reproduce geo`` runs and writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.papers import reproduction
from penstock.papers.geo.simulated import cells, figures, findings, runner, tables
from penstock.papers.geo.simulated.document import WRITE_UP
from penstock.papers.lanes import Progress
from penstock.papers.reproduction import FIGURES, Reproduction
from penstock.papers.write_up import Told

SEEDS, FIRST_SEED = 25, 4000  # five times the study's runs; none that anything was chosen on


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """So many seeds from the first one on."""

    seeds: int = SEEDS
    first_seed: int = FIRST_SEED

    def __post_init__(self) -> None:
        reproduction.check_seeds(self.seeds, self.first_seed, SEEDS)

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))


def size(plan: Plan) -> int:
    """How many cells it has."""
    return len(cells.all_cells())


def reproduce(
    plan: Plan,
    folder: Path,
    *,
    workers: int | None = None,
    progress: Progress = lambda finished, total: None,
) -> Reproduction:
    """Run what the folder does not hold yet, judge it, and write everything that shows it."""
    outcomes = runner.run(
        cells.all_cells(), plan.numbers, folder, workers=workers, progress=progress
    )
    found = Reproduction(
        name=WRITE_UP.name,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(outcomes),
        tables=tuple(tables.all_tables(outcomes)),
        pictures=tuple(figures.draw_all(outcomes, folder / FIGURES)),
    )
    WRITE_UP.finish(found, told(plan))
    return found


def told(plan: Plan) -> Told:
    """A plan in words."""
    command = f"penstock reproduce {WRITE_UP.name}"
    command += f" --seeds {plan.seeds}" if plan.seeds != SEEDS else ""
    command += f" --first-seed {plan.first_seed}" if plan.first_seed != FIRST_SEED else ""
    runs = f"{plan.seeds} runs of every cell, seeds {plan.numbers[0]} to {plan.numbers[-1]}."
    return Told(command=command, runs=runs, seed=None)
