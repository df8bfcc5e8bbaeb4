"""The picture of agents on Spark: the load, the executors of every operator, and the messages."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.lab.proofs.agents_run import Course
from penstock.report import units
from penstock.report.figure import BLUE, DPI, GREY, HEIGHT, INK, ORANGE, POOLS, STYLE, WIDTH
from penstock.report.runs import PICTURE

OFFSET = 0.05  # executors between the lines of two operators, so that both are seen


def draw(course: Course, folder: Path) -> Path:
    """Draw a course as ``report.png``."""
    path = folder / PICTURE
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor="white")
        FigureCanvasAgg(figure)
        panels = figure.subplots(4, 1, sharex=True, gridspec_kw={"height_ratios": (3, 4, 3, 3)})
        times = [g.time for g in course.glances]
        _rates(panels[0], times, course)
        _executors(panels[1], times, course)
        _loads(panels[2], times, course)
        _messages(panels[3], times, course)
        panels[3].set_xlabel("time (seconds)")
        if len(times) > 1:
            panels[3].set_xlim(min(0.0, times[0]), times[-1])
        for axes in panels:
            axes.set_ylim(bottom=0)
            axes.set_axisbelow(True)
            axes.legend(loc="lower right", bbox_to_anchor=(1, 0.97), ncols=4, borderaxespad=0)
        figure.text(
            0.012, 0.98, "Agents beside the executors of a split query 1",
            fontsize=23, fontweight="bold", va="top",
        )  # fmt: skip
        figure.text(0.985, 0.975, str(course.answer), fontsize=15, ha="right", va="top")
        figure.subplots_adjust(left=0.07, right=0.985, top=0.89, bottom=0.07, hspace=0.33)
        partial = path.with_name(path.name + ".part")
        figure.savefig(partial, format="png", metadata={"Software": "penstock"})
    partial.replace(path)
    return path


def _rates(axes: Axes, times: list[float], course: Course) -> None:
    axes.plot(times, [g.offered for g in course.glances], color=INK, lw=1.6, label="load")
    delivered = [g.delivered for g in course.glances]
    axes.plot(times, delivered, color=BLUE, lw=2.0, label="read by the sink")
    axes.set_ylabel("records/s")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.count(value)))


def _executors(axes: Axes, times: list[float], course: Course) -> None:
    for number, (name, colour) in enumerate(zip(course.rosters, POOLS, strict=False)):
        sizes = [g.executors[name] + number * OFFSET for g in course.glances]
        axes.step(times, sizes, where="post", color=colour, lw=2.2, label=name)
    axes.set_ylabel("executors")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _loads(axes: Axes, times: list[float], course: Course) -> None:
    for name, colour in zip(course.rosters, POOLS, strict=False):
        known = [(t, g.loads[name]) for t, g in zip(times, course.glances, strict=True)]
        points = [(t, 100.0 * load) for t, load in known if load is not None]
        axes.plot([t for t, _ in points], [v for _, v in points], color=colour, lw=1.6, label=name)
    for threshold in (60.0, 80.0):
        axes.axhline(threshold, color=GREY, lw=0.9, ls="--")
    axes.set_ylabel("% of quota")
    axes.set_title("mean load that agents read", loc="left", fontsize=13)


def _messages(axes: Axes, times: list[float], course: Course) -> None:
    sent = [g.messages for g in course.glances]
    axes.step(times, sent, where="post", color=ORANGE, lw=2.2, label="messages")
    formula = [g.formula for g in course.glances]
    axes.step(times, formula, where="post", color=GREY, lw=1.4, ls="--", label="by the formula")
    axes.set_ylabel("messages")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
