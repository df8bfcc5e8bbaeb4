"""The picture of a replay: what came, and the executors that there were and would have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.report import units
from penstock.report.figure import BLUE, GREY, INK, POOLS, STYLE, new_figure, save_figure
from penstock.report.replay_tables import OverTime, ReplayView

Line = Sequence[float]

SIZE = (16.0, 10.0)  # inches
MOST_DRAWN = 3  # policies besides what was recorded: more lines than that hide each other


def draw(view: ReplayView, path: Path) -> Path:
    """Draw a replay to a file."""
    return save_figure(figure_of(view), path)


def figure_of(view: ReplayView) -> Canvas:
    """What came, executors, and how long the oldest record waited, over time."""
    over = view.over_time
    with mpl.rc_context(STYLE):
        canvas = new_figure(*SIZE)
        load, slots, behind = canvas.subplots(3, 1, sharex=True, height_ratios=[2, 3, 2])
        load.fill_between(over.time, over.offered, color=BLUE, alpha=0.25, lw=0)
        load.plot(over.time, over.offered, color=BLUE, lw=1.4)
        load.set_ylabel("records/s")
        load.set_ylim(bottom=0)
        load.yaxis.set_major_formatter(FuncFormatter(lambda v, _: units.count(v)))
        chosen = _chosen(view)
        _lines(slots, over, over.recorded, {label: over.slots[label] for label in chosen})
        slots.step(
            over.time, over.oracle, where="post", color=GREY, ls="--", lw=1.4, label="oracle"
        )
        slots.set_ylabel("executors")
        slots.set_ylim(bottom=0)
        slots.yaxis.set_major_locator(MaxNLocator(integer=True))
        slots.legend(ncols=5, loc="upper left", bbox_to_anchor=(0.0, 1.13))
        waits = {label: over.behind[label] for label in chosen}
        _lines(behind, over, over.recorded_behind, waits)
        behind.axhline(view.slo, color=GREY, ls=":", lw=1.6)
        behind.set_ylabel("oldest waits (s)")
        behind.set_ylim(bottom=0)
        behind.set_xlabel(f"time ({over.unit})")
        if len(over.time) > 1:
            behind.set_xlim(over.time[0], over.time[-1])
        canvas.text(0.012, 0.975, view.title, fontsize=21, fontweight="bold", va="top")
        canvas.text(
            0.012, 0.93, f"advised: {view.advice.label}; {view.advice.why}", fontsize=13,
            color="#52606d", va="top",
        )  # fmt: skip
        canvas.subplots_adjust(left=0.06, right=0.985, top=0.88, bottom=0.07, hspace=0.22)
    return canvas


def _chosen(view: ReplayView) -> list[str]:
    """The advised policy first, then those that cost least."""
    cost = {
        row.label: row.figures["total_cost"].mean
        for row in view.group.rows
        if row.label in view.over_time.slots and "total_cost" in row.figures
    }
    best = sorted(cost, key=lambda label: (label != view.advice.label, cost[label]))
    return best[:MOST_DRAWN]


def _lines(axes: Axes, over: OverTime, recorded: Line, others: Mapping[str, Line]) -> None:
    axes.step(over.time, recorded, where="post", color=INK, lw=2.2, label="recorded")
    for (label, values), color in zip(others.items(), POOLS, strict=False):
        axes.step(over.time, values, where="post", color=color, lw=1.8, label=label)
