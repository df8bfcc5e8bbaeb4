"""Figures 6 to 10 of the study, over all seeds. [arsalane24]"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from penstock.papers.geo.simulated import cells, published
from penstock.papers.geo.simulated.cells import Condition
from penstock.papers.geo.simulated.experiment import GeoOutcomes, mean
from penstock.papers.pictures import COLOURS, canvas, words
from penstock.report.figure import GREY
from penstock.simulator.geo.setups import NODES, RATE

MEASURED, SIMPLE, PLUS, HELD = "black", COLOURS[1], COLOURS[0], COLOURS[3]
LEVELS = np.arange(1, NODES + 1)


def draw_all(outcomes: GeoOutcomes, folder: Path) -> list[Path]:
    """Draw all pictures into a folder."""
    drawn = [folder / "figure-6.png"]
    _busyness(outcomes, drawn[0])
    for case, number in published.FIGURES.items():
        drawn.append(folder / f"figure-{number}.png")
        chosen = [c for c in cells.studied() if c.case == case]
        with canvas(drawn[-1], 1, 3, height=280) as places:
            for axes, condition in zip(places, chosen, strict=True):
                _throughput(outcomes, condition, axes)
    drawn.append(folder / "figure-10.png")
    _mostly_delayed(outcomes, drawn[-1])
    return drawn


def _busyness(outcomes: GeoOutcomes, path: Path) -> None:
    """From the least to the most busy instance at every level; a mark for the first one."""
    chosen = [c for c in cells.studied() if c.case == "none"]
    with canvas(path, 1, 3, height=260) as places:
        for axes, condition in zip(places, chosen, strict=True):
            busy = [
                [mean(v) for v in zip(*(x.busy for x in outcomes.level(condition, n)), strict=True)]
                for n in LEVELS.tolist()
            ]
            low, high = [min(b) for b in busy], [max(b) for b in busy]
            axes.bar(LEVELS, np.subtract(high, low), bottom=low, color=COLOURS[5], width=0.6)
            axes.plot(LEVELS, high, color=PLUS, lw=1.2, marker="_", ms=12, label="most")
            axes.plot(LEVELS, low, color=SIMPLE, lw=1.2, marker="_", ms=12, label="least")
            axes.plot(LEVELS, [b[0] for b in busy], "k.", ms=5, label="the first")
            axes.set_ylim(0, 1.05)
            axes.legend(fontsize=8, loc="lower left")
            _levels(axes)
            words(axes, published.JOBS[condition.job], "instances", "busy share")


def _throughput(outcomes: GeoOutcomes, condition: Condition, axes: Axes) -> None:
    rates = np.array([[x.rate for x in outcomes.level(condition, n)] for n in LEVELS.tolist()])
    _rates(axes, rates / 1e3)
    axes.axhline(RATE / 1e3, color=GREY, lw=1, ls="--")
    for scaler, colour, mark in (("gesscale", SIMPLE, "x"), ("gesscale+", PLUS, "+")):
        found = [
            (n, r * (1.0 + e) / 1e3)
            for n in range(2, NODES + 1)
            if (errors := outcomes.errors(condition, n, scaler))  # type: ignore[arg-type]
            for e in [mean(errors)]
            for r in [rates[n - 1].mean()]
        ]
        x, y = zip(*found, strict=True)
        axes.plot(x, y, color=colour, marker=mark, ms=6, lw=0.8, ls=":", label=scaler)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, loc="lower right")
    _levels(axes)
    title = f"{published.JOBS[condition.job]}, {published.CASES[condition.case]}"
    words(axes, title, "instances", "thousand records/s")


def _mostly_delayed(outcomes: GeoOutcomes, path: Path) -> None:
    """Throughput, back pressure, where Gesscale stops and where ``gesscale+`` stays."""
    with canvas(path, 1, 2, height=300) as places:
        for axes, condition in zip(places, cells.mostly_delayed(), strict=True):
            looks = [outcomes.level(condition, n) for n in LEVELS.tolist()]
            _rates(axes, np.array([[x.rate for x in level] for level in looks]) / 1e3)
            stops = mean([run.stays for run in outcomes.of(condition)])
            stays = mean([run.final for run in outcomes.of(condition, "gesscale+")])
            axes.axvline(stops, color=SIMPLE, lw=1.2, ls=":", label="gesscale stops")
            axes.axvline(stays, color=PLUS, lw=1.2, ls=":", label="gesscale+ stays")
            axes.set_ylim(bottom=0)
            _levels(axes)
            words(axes, condition.words, "instances", "thousand records/s")
            other = axes.twinx()
            held = [1e3 * mean([x.held for x in level]) for level in looks]
            other.plot(LEVELS, held, color=HELD, lw=1.2, marker="s", ms=3)
            other.axhline(1e3 * published.HELD_BACK, color=HELD, lw=0.8, ls="--")
            other.set_ylim(0, 1050)
            other.set_ylabel("held back, ms/s", color=HELD)
            axes.legend(fontsize=8, loc="lower left")


def _rates(axes: Axes, rates: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    middle = rates.mean(axis=1)
    spread = np.stack([middle - rates.min(axis=1), rates.max(axis=1) - middle])
    axes.errorbar(
        LEVELS, middle, yerr=spread, color=MEASURED, lw=1.2, capsize=2, marker=".", label="measured"
    )


def _levels(axes: Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
