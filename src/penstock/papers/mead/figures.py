"""The pictures of the MEAD paper, Figures 2, 3 and 6 to 10, from the first seed. [russo21]"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from penstock.papers.mead import models, published
from penstock.papers.mead.cells import MeadCell
from penstock.papers.mead.experiment import CDF, MeadOutcome, MeadOutcomes
from penstock.papers.mead.models import Comparison
from penstock.papers.mead.traces import arrivals
from penstock.papers.pictures import COLOURS, canvas, words
from penstock.queueing.intervals import Intervals
from penstock.report.figure import GREY
from penstock.workloads.pattern import Floats

BIN = 10.0  # seconds
LONGEST_LAG = 1000
FIG_8 = (("synt", 0.1), ("bc", 0.3), ("lm", 1.5))
FIG_10 = (("bc", 0.5), ("lm", 7.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the pictures show: runs, the comparisons of Figure 3, and the traces of a seed."""

    outcomes: MeadOutcomes
    comparisons: Sequence[Comparison]
    seed: int
    seconds: float = math.inf

    def arrivals(self, trace: str) -> Floats:
        """Times of arrivals, as far as they were used."""
        return arrivals(trace, self.seed, self.seconds)


Draw = Callable[[Shown, Path], None]


def draw_all(shown: Shown, folder: Path) -> list[Path]:
    """Draw all pictures into a folder."""
    drawn = []
    for number, draw in FIGURES.items():
        path = folder / f"figure-{number}.png"
        draw(shown, path)
        drawn.append(path)
    return drawn


def _rates(traces: Sequence[str], shown: Shown, path: Path) -> None:
    with canvas(path, len(traces), 1) as places:
        for axes, trace in zip(places, traces, strict=True):
            times = shown.arrivals(trace)
            edges = np.arange(0.0, float(times[-1]), BIN)
            counts = np.histogram(times, edges)[0] / BIN
            axes.plot(edges[:-1] / 60.0, counts, color=COLOURS[0], lw=1)
            axes.set_ylim(bottom=0)
            words(axes, trace.upper(), "minutes", "records/s")


def _figure_2(shown: Shown, path: Path) -> None:
    _rates(("taxi", "lm"), shown, path)


def _figure_3(shown: Shown, path: Path) -> None:
    with canvas(path, 1, 2) as places:
        for axes, trace in zip(places, models.TRACES, strict=True):
            found = next(c for c in shown.comparisons if c.trace == trace)
            axes.plot(
                found.loads, found.measured, color="black", marker="o", ms=4, label="measured"
            )
            for (model, label), colour in zip(models.NAMES.items(), COLOURS, strict=False):
                axes.plot(found.loads, getattr(found, model), color=colour, lw=1.4, label=label)
            axes.set_yscale("log")
            axes.legend(fontsize=8)
            words(axes, trace.upper(), "utilisation", "mean response time, s")


def _figure_6(shown: Shown, path: Path) -> None:
    _rates(("synt", "bc"), shown, path)


def _figure_7(shown: Shown, path: Path) -> None:
    with canvas(path, 1, 1) as places:
        for trace, colour in zip(published.TRACES, COLOURS, strict=False):
            window = Intervals(np.diff(shown.arrivals(trace)))
            axes = places[0]
            axes.plot(window.lags, window.autocorrelation, color=colour, label=trace.upper())
        places[0].set_xscale("log")
        places[0].set_xlim(1, LONGEST_LAG)
        places[0].legend(fontsize=8)
        words(places[0], "Autocorrelation of the inter-arrival times", "lag", "autocorrelation")


def _figure_8(shown: Shown, path: Path) -> None:
    with canvas(path, 3, 2) as places:
        for row, (trace, target) in enumerate(FIG_8):
            runs = [
                (published.NAMES[model], _detailed(shown, trace, model, target))
                for model in published.MODELS
            ]
            _courses(places[2 * row : 2 * row + 2], runs, f"{trace.upper()}, target {target:g} s")
            places[2 * row].axhline(target, color=GREY, lw=1, ls=":")


def _figure_9(shown: Shown, path: Path) -> None:
    with canvas(path, 3, 2) as places:
        for row, trace in enumerate(published.TRACES):
            run = _detailed(shown, trace, "cpu-threshold", None)
            _courses(places[2 * row : 2 * row + 2], [("threshold", run)], trace.upper())


def _figure_10(shown: Shown, path: Path) -> None:
    with canvas(path, 1, 2) as places:
        for axes, (trace, target) in zip(places, FIG_10, strict=True):
            for model, colour in zip(("mead-mg1", "mead"), COLOURS, strict=False):
                run = _detailed(shown, trace, model, target, p95=True)
                if run is not None:
                    axes.plot(CDF, run.below, color=colour, label=published.NAMES[model])
            axes.axvline(target, color=GREY, lw=1, ls=":")
            axes.axhline(0.95, color=GREY, lw=1, ls=":")
            axes.set_xscale("log")
            axes.legend(fontsize=8)
            words(
                axes, f"{trace.upper()}, p95 ≤ {target:g} s", "response time, s", "share of records"
            )


def _detailed(
    shown: Shown, trace: str, policy: str, target: float | None, p95: bool = False
) -> MeadOutcome | None:
    cell = MeadCell(trace=trace, policy=policy, target=target, p95=p95)
    return next((run for run in shown.outcomes.of(cell.key) if run.seed == shown.seed), None)


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


FIGURES: dict[str, Draw] = {
    "2": _figure_2,
    "3": _figure_3,
    "6": _figure_6,
    "7": _figure_7,
    "8": _figure_8,
    "9": _figure_9,
    "10": _figure_10,
}
