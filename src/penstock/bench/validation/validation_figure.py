"""The picture of a validation: executors over time on Spark and in the twin, a panel per policy."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from penstock.bench.validation.comparison import EXECUTORS, PolicyCompared, Validation
from penstock.bench.validation.verdicts import percent
from penstock.comparison.results import Results
from penstock.report.figure import BLUE, GREY, ORANGE, STYLE, new_figure, save_figure

PANEL = (7.5, 3.0)  # inches
ACROSS = 2
MOST_PANELS = 36


def draw(validation: Validation, spark: Results, twin: Results, path: Path) -> Path:
    """The first seed of every policy that has a trace; beyond 36 the rest is left out."""
    panels = [(scene.title, p) for scene in validation.scenes for p in scene.policies if p.over]
    shown = panels[:MOST_PANELS]
    across = min(ACROSS, max(1, len(shown)))
    down = max(1, math.ceil(len(shown) / across))
    size = (PANEL[0] * across, PANEL[1] * down + 1.3)
    with mpl.rc_context(STYLE):
        figure = new_figure(*size)
        grid = figure.subplots(down, across, squeeze=False)
        for number, axes in enumerate(grid.flat):
            if number < len(shown):
                title, policy = shown[number]
                _panel(axes, f"{title} · {policy.label}", policy, spark, twin)
            else:
                axes.set_axis_off()
        if shown:
            grid[0, 0].legend(loc="upper right", ncols=3, fontsize=11)
        _headline(figure, validation.name, size, hidden=len(panels) - len(shown))
    return save_figure(figure, path)


def _panel(axes: Axes, title: str, policy: PolicyCompared, spark: Results, twin: Results) -> None:
    real, played = spark.trace(policy.key), twin.trace(policy.key)
    minutes = real.time / 60.0
    axes.plot(minutes, real.oracle, color=GREY, lw=1.2, ls=":", label="oracle")
    axes.step(minutes, real.slots, where="pre", color=BLUE, lw=2.0, label="Spark")
    axes.step(minutes, played.slots, where="pre", color=ORANGE, lw=1.6, label="twin")
    mean = policy.figures.get(EXECUTORS)
    off = "" if mean is None else f"   mean {percent(mean.error)}"
    axes.set_title(f"{title}{off}", loc="left", fontsize=13, fontweight="bold")
    axes.set_ylim(0.0, 1.3 * max(real.slots.max(), played.slots.max(), real.oracle.max()))
    axes.set_xlim(0.0, minutes[-1])
    axes.set_ylabel("executors", fontsize=12)
    axes.set_xlabel("minutes of thesis time", fontsize=12)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.tick_params(labelsize=11)


def _headline(figure: Figure, name: str, size: tuple[float, float], hidden: int) -> None:
    height = size[1]
    more = f"; {hidden} more policies are not drawn" if hidden else ""
    what = f"executors over time of the first seed{more}"
    title = f"{name}: Spark and its twin"
    figure.text(0.012, 1 - 0.15 / height, title, fontsize=20, fontweight="bold", va="top")
    figure.text(0.012, 1 - 0.58 / height, what, fontsize=13, color="#52606d", va="top")
    figure.subplots_adjust(
        left=0.7 / size[0],
        right=1 - 0.2 / size[0],
        top=1 - 1.3 / height,
        bottom=0.65 / height,
        hspace=0.6,
        wspace=0.15,
    )
