"""What ``penstock reproduce mead`` runs and writes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.bench import reproduction
from penstock.bench.lanes import Progress
from penstock.bench.mead import cells, document, figures, findings, models, runner, tables
from penstock.bench.reproduction import FIGURES, Reproduction
from penstock.bench.reproduction_text import means
from penstock.bench.write_up import Told
from penstock.core.errors import InputError

NAME = "mead"
SEEDS = 10
LEAST_MINUTES = 2.0  # two decisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """So many seeds from the first one on; of every trace so many ``minutes``, or all.

    ``extended``: also ``mead+``, which the paper does not have.
    """

    seeds: int = SEEDS
    first_seed: int = 0
    minutes: float | None = None
    extended: bool = False

    def __post_init__(self) -> None:
        reproduction.check_seeds(self.seeds, self.first_seed, SEEDS)
        if self.minutes is not None and not self.minutes >= LEAST_MINUTES:
            raise InputError(f"minutes {self.minutes} must be ≥ {LEAST_MINUTES:g}")

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))

    @property
    def seconds(self) -> float:
        """Of every trace."""
        return math.inf if self.minutes is None else 60.0 * self.minutes


def wanted(seeds: int | None, first_seed: int | None, extended: bool) -> Plan:
    """The plan that the command line asks for."""
    return Plan(
        seeds=SEEDS if seeds is None else seeds, first_seed=first_seed or 0, extended=extended
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
    outcomes = runner.run(
        cells.all_cells(extended=plan.extended),
        plan.numbers,
        folder,
        workers=workers,
        seconds=plan.seconds,
        progress=progress,
    )
    comparisons = [
        models.compare(trace, seed, plan.seconds)
        for trace in models.TRACES
        for seed in plan.numbers
    ]
    shown = figures.Shown(
        outcomes=outcomes,
        comparisons=comparisons,
        seed=plan.first_seed,
        seconds=plan.seconds,
    )
    found = Reproduction(
        name=NAME,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(outcomes, comparisons),
        tables=tuple(tables.all_tables(outcomes, comparisons, extended=plan.extended)),
        pictures=tuple(figures.draw_all(shown, folder / FIGURES)),
    )
    document.WRITE_UP.finish(found, told(plan))
    return found


def publish(plan: Plan, found: Reproduction, docs: Path) -> list[Path]:
    """The document and the pictures that it shows, into a folder of documents."""
    return document.WRITE_UP.publish(found, told(plan), docs)


def told(plan: Plan) -> Told:
    """A plan in words."""
    command = f"penstock reproduce {NAME} --seeds {plan.seeds}"
    command += f" --first-seed {plan.first_seed}" if plan.first_seed else ""
    command += " --extended" if plan.extended else ""
    return Told(command=command, runs=f"{means(plan.seeds)}.", seed=plan.first_seed)
