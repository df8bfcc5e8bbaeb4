"""The picture of a bench: latency against slot-seconds, a panel per pipeline and workload."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from penstock.report import units
from penstock.report.bench_tables import Group, Row
from penstock.report.figure import (
    BLUE,
    DPI,
    GREY,
    INK,
    POOLS,
    STYLE,
    new_figure,
    save_figure,
)
from penstock.report.statistics import Estimate

PANEL = (7.0, 5.0)  # inches
ACROSS = 2
MOST_PANELS = 24
SMALLEST = 0.05  # seconds: lower latencies are drawn there
LOG_FROM = 8.0  # times the lowest latency, from where on a linear axis hides the low ones
LINE = 19.0  # pixels between two labels
ABOVE = 11.0  # pixels from a point up to its label, clear of its bars
MARKERS = "osD^vPX<>h"


def draw(groups: Sequence[Group], path: Path, *, title: str) -> Path:
    """Draw the groups to a file; beyond 24 the rest is left to the page."""
    return save_figure(figure_of(groups, title=title), path)


def figure_of(groups: Sequence[Group], *, title: str) -> Canvas:
    """A panel per group, at most 24: latency against slot-seconds."""
    shown = groups[:MOST_PANELS]
    across = min(ACROSS, max(1, len(shown)))
    down = max(1, math.ceil(len(shown) / across))
    looks = _looks(shown)
    with mpl.rc_context(STYLE):
        size = (PANEL[0] * across, PANEL[1] * down + 1.0)
        canvas = new_figure(*size)
        panels = canvas.subplots(down, across, squeeze=False)
        for number, axes in enumerate(panels.flat):
            if number < len(shown):
                _panel(axes, shown[number], looks)
            else:
                axes.set_axis_off()
        _headline(canvas, title, size, hidden=len(groups) - len(shown))
    return canvas


def _looks(groups: Sequence[Group]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each policy, the same in every panel."""
    labels = dict.fromkeys(row.label for group in groups for row in group.rows)
    names = list(dict.fromkeys(label.split()[0] for label in labels))
    return {
        label: (
            POOLS[names.index(label.split()[0]) % len(POOLS)],
            MARKERS[names.index(label.split()[0]) % len(MARKERS)],
        )
        for label in labels
    }


def _headline(canvas: Canvas, title: str, size: tuple[float, float], hidden: int) -> None:
    height = size[1]
    more = f"; {hidden} more groups are on the page" if hidden else ""
    what = "filled: on the Pareto front · bars: 95 % intervals · dashed: the oracle's slots"
    canvas.text(0.012, 1 - 0.18 / height, title, fontsize=21, fontweight="bold", va="top")
    canvas.text(0.012, 1 - 0.62 / height, what + more, fontsize=13, color="#52606d", va="top")
    canvas.subplots_adjust(
        left=0.85 / size[0],
        right=1 - 0.2 / size[0],
        top=1 - 1.45 / height,
        bottom=0.75 / height,
        hspace=0.42,
        wspace=0.2,
    )


def _panel(axes: Axes, group: Group, looks: dict[str, tuple[str, str]]) -> None:
    axes.set_title(group.title, loc="left", fontsize=15, fontweight="bold")
    axes.set_xlabel("slot-seconds", fontsize=13)
    axes.set_ylabel("mean queue latency (s)", fontsize=13)
    rows = [row for row in group.rows if "latency_mean" in row.figures]
    heights = [max(row.figures["latency_mean"].mean, SMALLEST) for row in rows]
    logarithmic = bool(heights) and max(heights) > LOG_FROM * min(heights)
    if logarithmic:
        axes.set_yscale("log")
    for row, height in zip(rows, heights, strict=True):
        _point(axes, row, height, looks[row.label])
    _front(axes, rows, heights)
    oracle = group.oracle.get("slot_seconds")
    if oracle is not None:
        axes.axvline(oracle.mean, color=GREY, ls="--", lw=1.6, zorder=1)
    _frame(axes, rows, heights, oracle, logarithmic)
    _labels(axes, rows, heights)


def _point(axes: Axes, row: Row, height: float, look: tuple[str, str]) -> None:
    color, marker = look
    slots, latency = row.figures["slot_seconds"], row.figures["latency_mean"]
    half = latency.half_width or 0.0
    axes.errorbar(
        [slots.mean],
        [height],
        xerr=[[slots.half_width or 0.0]] * 2,
        yerr=[[min(half, height - SMALLEST / 2)], [half]],
        fmt=marker,
        ms=9,
        color=color,
        mfc=color if row.front else "white",
        mew=1.8,
        elinewidth=1.3,
        capsize=3,
        zorder=4,
    )


def _front(axes: Axes, rows: Sequence[Row], heights: Sequence[float]) -> None:
    """A staircase through the policies that nobody beats in both."""
    best = sorted(
        (row.figures["slot_seconds"].mean, height)
        for row, height in zip(rows, heights, strict=True)
        if row.front
    )
    if len(best) > 1:
        xs, ys = zip(*best, strict=True)
        axes.step(xs, ys, where="post", color=BLUE, lw=1.4, alpha=0.55, zorder=2)


def _frame(
    axes: Axes,
    rows: Sequence[Row],
    heights: Sequence[float],
    oracle: Estimate | None,
    logarithmic: bool,
) -> None:
    """Room for everything, and at the right for the labels."""
    xs = [row.figures["slot_seconds"].mean for row in rows]
    if oracle is not None:
        xs.append(oracle.mean)
    if not xs:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=GREY)
        return
    low, high = min(xs), max(xs)
    span = max(high - low, 0.05 * high)
    axes.set_xlim(low - 0.08 * span, high + 0.34 * span)
    if heights and logarithmic:
        axes.set_ylim(min(heights) / 1.6, max(heights) * 1.8)
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif heights:
        axes.set_ylim(0.0, max(heights) * 1.25)
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda v, _: f"≤ {v:g}" if 0 < v <= SMALLEST else f"{v:g}")
    )
    axes.tick_params(labelsize=12)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: units.count(v)))
    axes.set_axisbelow(True)


def _labels(axes: Axes, rows: Sequence[Row], heights: Sequence[float]) -> None:
    """Beside the points, moved up where two would overlap."""
    spots: list[tuple[float, float, Row, float]] = []
    for row, height in zip(rows, heights, strict=True):
        x, y = axes.transData.transform((row.figures["slot_seconds"].mean, height))
        spots.append((float(y), float(x), row, height))
    placed: list[tuple[float, float, float]] = []  # x from, x to, y
    for y, x, row, height in sorted(spots, key=lambda spot: spot[0]):
        wide = 9.0 * len(row.label)
        at = y + ABOVE
        while any(a < x + wide + 12 and x < b and abs(at - c) < LINE for a, b, c in placed):
            at += 1.0
        placed.append((x, x + wide + 12, at))
        arrow: dict[str, Any] | None = None
        if at - y > LINE:
            arrow = {"arrowstyle": "-", "color": GREY, "lw": 0.8, "shrinkB": 4}
        axes.annotate(
            row.label,
            (row.figures["slot_seconds"].mean, height),
            xytext=(12 * 72 / DPI, (at - y) * 72 / DPI),
            textcoords="offset points",
            fontsize=12,
            va="center",
            color=INK if row.front else "#52606d",
            arrowprops=arrow,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6},
            zorder=5,
        )
