"""What ``penstock reproduce gesscale`` runs and writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from penstock.bench import reproduction
from penstock.bench.gesscale import cells, document, figures, findings, runner, tables
from penstock.bench.lanes import Progress
from penstock.bench.reproduction import FIGURES, Reproduction
from penstock.bench.reproduction_text import means
from penstock.bench.write_up import Told

NAME = "gesscale"
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


def wanted(seeds: int | None, first_seed: int | None, extended: bool) -> Plan:
    """The plan that the command line asks for."""
    return Plan(
        seeds=SEEDS if seeds is None else seeds,
        first_seed=FIRST_SEED if first_seed is None else first_seed,
        extended=extended,
    )


def begin(plan: Plan, out: Path) -> Path:
    """A new folder for a plan."""
    return reproduction.begin(NAME, plan, out)


def planned(folder: Path, extended: bool = False) -> Plan:
    """The plan that a folder was begun with; ``extended`` now, if not then."""
    plan = reproduction.planned(NAME, Plan, folder)
    return replace(plan, extended=plan.extended or extended)


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
        name=NAME,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(outcomes),
        tables=tuple(tables.all_tables(outcomes, extended=plan.extended)),
        pictures=tuple(figures.draw_all(outcomes, plan.first_seed, folder / FIGURES)),
    )
    document.WRITE_UP.finish(found, told(plan))
    return found


def publish(plan: Plan, found: Reproduction, docs: Path) -> list[Path]:
    """The document and the pictures that it shows, into a folder of documents."""
    return document.WRITE_UP.publish(found, told(plan), docs)


def told(plan: Plan) -> Told:
    """A plan in words."""
    command = f"penstock reproduce {NAME} --seeds {plan.seeds}"
    command += f" --first-seed {plan.first_seed}" if plan.first_seed != FIRST_SEED else ""
    command += " --extended" if plan.extended else ""
    runs = f"{means(plan.seeds)}, from seed {plan.first_seed} on."
    return Told(command=command, runs=runs, seed=plan.first_seed)
