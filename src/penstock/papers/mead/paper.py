"""What ``penstock reproduce mead`` runs and writes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import InputError
from penstock.papers import harness
from penstock.papers.document import means
from penstock.papers.harness import FIGURES, Reproduction
from penstock.papers.mead import cells, figures, findings, models, runner, tables
from penstock.papers.mead.traces import LM, SYNT
from penstock.papers.running import Progress
from penstock.papers.write_up import Told, WriteUp

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
        harness.check_seeds(self.seeds, self.first_seed, SEEDS)
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
        name=WRITE_UP.name,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(outcomes, comparisons),
        tables=tuple(tables.all_tables(outcomes, comparisons, extended=plan.extended)),
        pictures=tuple(figures.draw_all(shown, folder / FIGURES)),
    )
    WRITE_UP.finish(found, told(plan))
    return found


def told(plan: Plan) -> Told:
    """A plan in words."""
    command = f"penstock reproduce {WRITE_UP.name} --seeds {plan.seeds}"
    command += f" --first-seed {plan.first_seed}" if plan.first_seed else ""
    command += " --extended" if plan.extended else ""
    return Told(command=command, runs=f"{means(plan.seeds)}.", seed=plan.first_seed)


TITLE = "The MEAD paper's evaluation, reproduced"

CAPTIONS = {
    "figure-2.png": "Figure 2. Arrival rates: an uncorrelated trace and a bursty one",
    "figure-3.png": "Figure 3. Models of the matcher and what it does, by utilisation",
    "figure-6.png": "Figure 6. Arrival rates of SYNT and BC",
    "figure-7.png": "Figure 7. Autocorrelation of the inter-arrival times",
    "figure-8.png": "Figure 8. Response time and CPU with targets of the mean",
    "figure-9.png": "Figure 9. Response time and CPU of the threshold policy",
    "figure-10.png": "Figure 10. Distribution of response times with targets of the p95",
}
SHOWN = ("figure-3.png", "figure-7.png", "figure-8.png", "figure-10.png")
ABOUT = (
    "The log-analysis application in the tuple simulator: parser → counter, parser → matcher, "
    "Erlang-2 services. The paper does not publish its service demands; here they are 0.15, 0.10 "
    "and 0.50 of the mean time between arrivals, for all traces and models. BC is the recorded "
    f"trace. SYNT is drawn from processes with the SCV and correlation time {SYNT}, five minutes "
    "each, twice. The Live Maps trace is not available: LM is drawn from a composition of the "
    f"blocks (r2, fast mean, correlation time) {LM}. Both were fixed without a policy. CPU is the "
    "mean over the three operators, response times are of the path to the matcher."
)
WRITE_UP = WriteUp(
    name="mead",
    title=TITLE,
    about=ABOUT,
    captions=CAPTIONS,
    shown=SHOWN,
)
