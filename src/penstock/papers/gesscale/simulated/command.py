"""What ``penstock reproduce gesscale`` runs and writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.papers import reproduction
from penstock.papers.gesscale.simulated import cells, figures, findings, runner, tables
from penstock.papers.gesscale.simulated.document import WRITE_UP
from penstock.papers.lanes import Progress
from penstock.papers.reproduction import FIGURES, Reproduction
from penstock.papers.reproduction_text import means
from penstock.papers.write_up import Told

SEEDS, FIRST_SEED = 30, 3000  # the fog was calibrated on seeds below that


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """So many seeds, each a map of latencies, from the first one on.

    ``extended``: also ``gesscale+``, which the paper does not have.
    """

    seeds: int = SEEDS
    first_seed: int = FIRST_SEED
    extended: bool = False

    def __post_init__(self) -> None:
        reproduction.check_seeds(self.seeds, self.first_seed, SEEDS)

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))


def size(plan: Plan) -> int:
    """How many cells it has."""
    return len(cells.all_cells(extended=plan.extended))


def reproduce(
    plan: Plan,
    folder: Path,
    *,
    workers: int | None = None,
    progress: Progress = lambda finished, total: None,
) -> Reproduction:
    """Run what the folder does not hold yet, judge it, and write everything that shows it."""
    chosen = cells.all_cells(extended=plan.extended)
    outcomes = runner.run(chosen, plan.numbers, folder, workers=workers, progress=progress)
    found = Reproduction(
        name=WRITE_UP.name,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(outcomes),
        tables=tuple(tables.all_tables(outcomes, extended=plan.extended)),
        pictures=tuple(figures.draw_all(outcomes, plan.first_seed, folder / FIGURES)),
    )
    WRITE_UP.finish(found, told(plan))
    return found


def told(plan: Plan) -> Told:
    """A plan in words."""
    command = f"penstock reproduce {WRITE_UP.name} --seeds {plan.seeds}"
    command += f" --first-seed {plan.first_seed}" if plan.first_seed != FIRST_SEED else ""
    command += " --extended" if plan.extended else ""
    runs = f"{means(plan.seeds)}, from seed {plan.first_seed} on."
    return Told(command=command, runs=runs, seed=plan.first_seed)
