"""Throughput by executors, measured and foretold, a panel for each condition."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from penstock.papers.geo.simulated import published
from penstock.papers.geo.simulated.figures import MEASURED, PLUS, SIMPLE
from penstock.papers.geo.spark.conditions import CONDITIONS, MOST, SparkCondition
from penstock.papers.geo.spark.levels import SCALERS, ClimbOutcomes
from penstock.papers.pictures import canvas, words

PICTURE = "levels.png"
LEVELS = np.arange(1, MOST + 1)
MARKS = {"gesscale": (SIMPLE, "x"), "gesscale+": (PLUS, "+")}


def draw(outcomes: ClimbOutcomes, folder: Path) -> Path:
    """Draw the picture into a folder."""
    path = folder / PICTURE
    with canvas(path, 2, 3, height=260) as places:
        for axes, condition in zip(places, CONDITIONS, strict=True):
            if outcomes.of(condition):
                _panel(axes, outcomes, condition)
            words(
                axes,
                f"{published.JOBS[condition.job]}, {condition.words}",
                "executors",
                "records/s",
            )
    return path


def _panel(axes: Axes, outcomes: ClimbOutcomes, condition: SparkCondition) -> None:
    levels = [outcomes.level(condition, n) for n in LEVELS.tolist()]
    rates = np.array([statistics.fmean(x.rate for x in some) for some in levels])
    low = rates - [min(x.least for x in some) for some in levels]
    high = np.array([max(x.most for x in some) for some in levels]) - rates
    spread = np.maximum(0.0, np.stack([low, high]))
    axes.errorbar(
        LEVELS, rates, yerr=spread, color=MEASURED, lw=1.2, capsize=2, marker=".", label="measured"
    )
    for scaler in SCALERS:
        colour, mark = MARKS[scaler]
        found = [
            (n, rates[n - 1] * (1.0 + statistics.fmean(errors)))
            for n in LEVELS.tolist()
            if (errors := outcomes.errors(condition, scaler, n))
        ]
        if found:
            x, y = zip(*found, strict=True)
            axes.plot(x, y, color=colour, marker=mark, ms=6, lw=0.8, ls=":", label=scaler)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=8, loc="upper left")
