"""The MEAD paper as one to reproduce: what it is called, what is run, what comes out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from penstock.core.errors import InputError
from penstock.papers.harness import Asked, Paper, Report
from penstock.papers.mead import cells, figures, findings, models, tables
from penstock.papers.mead.experiment import MeadOutcome, MeadOutcomes, groups, run
from penstock.papers.mead.models import Comparison
from penstock.papers.mead.traces import LM, SYNT
from penstock.papers.running import RunFolder

LEAST_MINUTES = 2.0  # two decisions
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MeadMeasured:
    """All runs, and the comparisons of Figure 3."""

    outcomes: MeadOutcomes
    comparisons: tuple[Comparison, ...]


def check(asked: Asked) -> None:
    """Refuse runs that are too short."""
    if asked.minutes is not None and not asked.minutes >= LEAST_MINUTES:
        raise InputError(f"minutes {asked.minutes} must be ≥ {LEAST_MINUTES:g}")


def seconds(asked: Asked) -> float:
    """So much of every trace is used."""
    return math.inf if asked.minutes is None else 60.0 * asked.minutes


def measure(asked: Asked, folder: RunFolder) -> MeadMeasured:
    """Run what the folder does not hold yet, and the models of Figure 3."""
    chosen = groups(cells.all_cells(extended=asked.extended), asked.numbers)
    work = partial(run, seconds=seconds(asked))
    return MeadMeasured(
        outcomes=MeadOutcomes(runs=folder.in_processes(chosen, work, MeadOutcome)),
        comparisons=tuple(
            models.compare(trace, seed, seconds(asked))
            for trace in models.TRACES
            for seed in asked.numbers
        ),
    )


def report(found: MeadMeasured, asked: Asked, folder: Path) -> Report:
    """Findings, tables and pictures."""
    shown = figures.Shown(
        outcomes=found.outcomes,
        comparisons=found.comparisons,
        seed=asked.first_seed,
        seconds=seconds(asked),
    )
    both = found.outcomes, found.comparisons
    return Report(
        findings=findings.judge(*both),
        tables=tables.all_tables(*both, extended=asked.extended),
        pictures=figures.draw_all(shown, folder),
    )


PAPER = Paper(
    name="mead",
    title="The MEAD paper's evaluation, reproduced",
    about=ABOUT,
    seeds=10,
    keeps=("seeds", "first_seed", "minutes", "extended"),
    has=frozenset({"extended"}),
    captions=CAPTIONS,
    shown=SHOWN,
    amount=lambda asked: (
        f"{len(cells.all_cells(extended=asked.extended))} cells × {asked.seeds} seeds"
    ),
    check=check,
    measure=measure,
    report=report,
)
