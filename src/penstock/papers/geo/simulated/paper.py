"""What ``penstock reproduce geo`` runs and writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.papers import harness
from penstock.papers.geo.simulated import cells, figures, findings, runner, tables
from penstock.papers.harness import FIGURES, Reproduction
from penstock.papers.running import Progress
from penstock.papers.write_up import Told, WriteUp

SEEDS, FIRST_SEED = 25, 4000  # five times the study's runs; none that anything was chosen on


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """So many seeds from the first one on."""

    seeds: int = SEEDS
    first_seed: int = FIRST_SEED

    def __post_init__(self) -> None:
        harness.check_seeds(self.seeds, self.first_seed, SEEDS)

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


TITLE = "Stream processing on nodes that are far apart: the study, reproduced"
CAPTIONS = {
    "figure-6.png": "Figure 6. Busy shares of the instances, no delay",
    "figure-7.png": "Figure 7. Throughput and what was predicted, no delay",
    "figure-8.png": "Figure 8. Throughput and what was predicted, 25 ms on half of the nodes",
    "figure-9.png": "Figure 9. Throughput and what was predicted, 25 ± 10 ms on half of them",
    "figure-10.png": "Figure 10. Id-Id, 70 % of the nodes delayed: throughput and back pressure",
}
ABOUT = (
    "Three jobs on ten nodes of a rack in the geo simulator, 100,000 records/s offered (joins: two "
    "streams of 50,000); packets to half of the nodes, in Figure 10 to 70 %, come late, and those "
    "are used last. The source shares the node of the first instance. After each restart 180 s of "
    "warm-up, then a minute is measured. In *levels* every parallelism from 1 to 10 is measured in "
    "turn and both policies look on: what each predicts for the next level, before it is reached, "
    "is held against what is measured there. In the other runs a policy decides by itself, 16 "
    "times. The simulator was calibrated on seeds 0 to 99 and 1000 to 1029, without a policy; the "
    "model and the constants of gesscale+ were chosen on seeds 100 to 139; the runs here have "
    "others. The study made five runs of each, which differ: one goes on where four stop."
)
WRITE_UP = WriteUp(
    name="geo",
    title=TITLE,
    about=ABOUT,
    captions=CAPTIONS,
)
