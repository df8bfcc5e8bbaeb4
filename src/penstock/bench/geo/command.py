"""What ``penstock reproduce geo`` runs and writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.bench import reproduction
from penstock.bench.geo import cells, document, figures, findings, runner, tables
from penstock.bench.lanes import Progress
from penstock.bench.reproduction import FIGURES, Reproduction
from penstock.bench.write_up import Told

NAME = "geo"
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


def wanted(seeds: int | None, first_seed: int | None, extended: bool) -> Plan:
    """The plan that the command line asks for."""
    return Plan(
        seeds=SEEDS if seeds is None else seeds,
        first_seed=FIRST_SEED if first_seed is None else first_seed,
    )


def begin(plan: Plan, out: Path) -> Path:
    """A new folder for a plan."""
    return reproduction.begin(NAME, plan, out)


def planned(folder: Path, extended: bool = False) -> Plan:
    """The plan that a folder was begun with."""
    return reproduction.planned(NAME, Plan, folder)


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
        name=NAME,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(outcomes),
        tables=tuple(tables.all_tables(outcomes)),
        pictures=tuple(figures.draw_all(outcomes, folder / FIGURES)),
    )
    document.WRITE_UP.finish(found, told(plan))
    return found


def publish(plan: Plan, found: Reproduction, docs: Path) -> list[Path]:
    """The document and the pictures that it shows, into a folder of documents."""
    return document.WRITE_UP.publish(found, told(plan), docs)


def told(plan: Plan) -> Told:
    """A plan in words."""
    command = f"penstock reproduce {NAME}"
    command += f" --seeds {plan.seeds}" if plan.seeds != SEEDS else ""
    command += f" --first-seed {plan.first_seed}" if plan.first_seed != FIRST_SEED else ""
    runs = f"{plan.seeds} runs of every cell, seeds {plan.numbers[0]} to {plan.numbers[-1]}."
    return Told(command=command, runs=runs, seed=None)
