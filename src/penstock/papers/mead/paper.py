"""The MEAD paper as one to reproduce: what is run, and its Figures 2, 3 and 6 to 10. [russo21]"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from penstock.core.errors import InputError
from penstock.papers.harness import Asked, Paper
from penstock.papers.mead import cells, experiment, findings, models, published, tables
from penstock.papers.mead.cells import MeadCell
from penstock.papers.mead.experiment import CDF, MeadOutcome, MeadOutcomes
from penstock.papers.mead.models import Comparison
from penstock.papers.mead.traces import LM, SYNT, arrivals
from penstock.papers.pictures import COLOURS, canvas, words
from penstock.papers.running import RunFolder
from penstock.queueing.intervals import Intervals
from penstock.report.figure import GREY
from penstock.workloads.pattern import Floats

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
BIN = 10.0  # seconds of a point of Figures 2 and 6
LONGEST_LAG = 1000
FIG_8 = (("synt", 0.1), ("bc", 0.3), ("lm", 1.5))
FIG_10 = (("bc", 0.5), ("lm", 7.0))


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
    chosen = experiment.groups(cells.all_cells(extended=asked.extended), asked.numbers)
    work = partial(experiment.run, seconds=seconds(asked))
    return MeadMeasured(
        outcomes=MeadOutcomes(runs=folder.in_processes(chosen, work, MeadOutcome)),
        comparisons=tuple(
            models.compare(trace, seed, seconds(asked))
            for trace in models.TRACES
            for seed in asked.numbers
        ),
    )


def pictures(found: MeadMeasured, asked: Asked, folder: Path) -> list[Path]:
    """Draw all pictures into a folder, of the first seed."""
    draws: dict[str, Callable[[MeadMeasured, Asked, Path], None]] = {
        "2": partial(_rates, ("taxi", "lm")),
        "3": _figure_3,
        "6": partial(_rates, ("synt", "bc")),
        "7": _figure_7,
        "8": _figure_8,
        "9": _figure_9,
        "10": _figure_10,
    }
    drawn = []
    for number, draw in draws.items():
        drawn.append(folder / f"figure-{number}.png")
        draw(found, asked, drawn[-1])
    return drawn


def _arrivals(asked: Asked, trace: str) -> Floats:
    """Times of arrivals of the first seed, as far as they were used."""
    return arrivals(trace, asked.first_seed, seconds(asked))


def _rates(traces: Sequence[str], found: MeadMeasured, asked: Asked, path: Path) -> None:
    with canvas(path, len(traces), 1) as places:
        for axes, trace in zip(places, traces, strict=True):
            times = _arrivals(asked, trace)
            edges = np.arange(0.0, float(times[-1]), BIN)
            counts = np.histogram(times, edges)[0] / BIN
            axes.plot(edges[:-1] / 60.0, counts, color=COLOURS[0], lw=1)
            axes.set_ylim(bottom=0)
            words(axes, trace.upper(), "minutes", "records/s")


def _figure_3(found: MeadMeasured, asked: Asked, path: Path) -> None:
    with canvas(path, 1, 2) as places:
        for axes, trace in zip(places, models.TRACES, strict=True):
            one = next(c for c in found.comparisons if c.trace == trace)
            axes.plot(one.loads, one.measured, color="black", marker="o", ms=4, label="measured")
            for (model, label), colour in zip(models.NAMES.items(), COLOURS, strict=False):
                axes.plot(one.loads, getattr(one, model), color=colour, lw=1.4, label=label)
            axes.set_yscale("log")
            axes.legend(fontsize=8)
            words(axes, trace.upper(), "utilisation", "mean response time, s")


def _figure_7(found: MeadMeasured, asked: Asked, path: Path) -> None:
    with canvas(path, 1, 1) as places:
        for trace, colour in zip(published.TRACES, COLOURS, strict=False):
            window = Intervals(np.diff(_arrivals(asked, trace)))
            axes = places[0]
            axes.plot(window.lags, window.autocorrelation, color=colour, label=trace.upper())
        places[0].set_xscale("log")
        places[0].set_xlim(1, LONGEST_LAG)
        places[0].legend(fontsize=8)
        words(places[0], "Autocorrelation of the inter-arrival times", "lag", "autocorrelation")


def _figure_8(found: MeadMeasured, asked: Asked, path: Path) -> None:
    with canvas(path, 3, 2) as places:
        for row, (trace, target) in enumerate(FIG_8):
            runs = []
            for model in published.MODELS:
                key = MeadCell(trace=trace, policy=model, target=target).key
                runs.append((published.NAMES[model], found.outcomes.run(key, asked.first_seed)))
            _courses(places[2 * row : 2 * row + 2], runs, f"{trace.upper()}, target {target:g} s")
            places[2 * row].axhline(target, color=GREY, lw=1, ls=":")


def _figure_9(found: MeadMeasured, asked: Asked, path: Path) -> None:
    with canvas(path, 3, 2) as places:
        for row, trace in enumerate(published.TRACES):
            key = MeadCell(trace=trace, policy="cpu-threshold").key
            run = found.outcomes.run(key, asked.first_seed)
            _courses(places[2 * row : 2 * row + 2], [("threshold", run)], trace.upper())


def _figure_10(found: MeadMeasured, asked: Asked, path: Path) -> None:
    with canvas(path, 1, 2) as places:
        for axes, (trace, target) in zip(places, FIG_10, strict=True):
            for model, colour in zip(("mead-mg1", "mead"), COLOURS, strict=False):
                key = MeadCell(trace=trace, policy=model, target=target, p95=True).key
                run = found.outcomes.run(key, asked.first_seed)
                if run is not None:
                    axes.plot(CDF, run.below, color=colour, label=published.NAMES[model])
            axes.axvline(target, color=GREY, lw=1, ls=":")
            axes.axhline(0.95, color=GREY, lw=1, ls=":")
            axes.set_xscale("log")
            axes.legend(fontsize=8)
            words(
                axes, f"{trace.upper()}, p95 ≤ {target:g} s", "response time, s", "share of records"
            )


def _courses(
    places: Sequence[Axes], runs: Sequence[tuple[str, MeadOutcome | None]], title: str
) -> None:
    for (label, run), colour in zip(runs, COLOURS, strict=False):
        if run is None or not run.course:
            continue
        times, stays, shares = np.array(run.course).T
        places[0].plot(times / 60.0, stays, color=colour, lw=1.1, label=label)
        places[1].step(times / 60.0, shares, color=colour, lw=1.1, label=label, where="post")
    places[0].set_yscale("log")
    places[1].set_ylim(35, 105)
    words(places[0], title, "minutes", "response time, s")
    words(places[1], "", "minutes", "CPU, %")
    places[1].legend(fontsize=8, loc="upper right")


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
    findings=lambda found: findings.judge(found.outcomes, found.comparisons),
    tables=lambda found, asked: tables.all_tables(
        found.outcomes, found.comparisons, extended=asked.extended
    ),
    pictures=pictures,
)
