"""The picture of a run of agents: load and throughput, and the instances of every operator."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.lab.agents.pipeline.operators import Pipeline
from penstock.lab.agents.pipeline.result import PipelineRunResult
from penstock.report import units
from penstock.report.figure import (
    BLUE,
    DPI,
    GREY,
    INK,
    ORANGE,
    POOLS,
    STYLE,
    WIDTH,
    new_figure,
    save_figure,
)

HEIGHT = 900


def draw(outcome: PipelineRunResult, pipeline: Pipeline, path: Path) -> Path:
    """Draw a run as a PNG."""
    with mpl.rc_context(STYLE):
        figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
        load, sizes = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": (2, 3)})
        _load(load, outcome)
        _sizes(sizes, outcome, pipeline)
        sizes.set_xlabel("time (seconds)")
        if len(outcome.samples) > 1:
            sizes.set_xlim(0, outcome.samples[-1].time)
        for axes in (load, sizes):
            axes.set_ylim(bottom=0)
            axes.set_axisbelow(True)
            axes.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=8, borderaxespad=0)
        names = f"{len(pipeline.operators)} operators"
        figure.text(
            0.012, 0.975, f"Agents without a controller · {names}",
            fontsize=23, fontweight="bold", va="top",
        )  # fmt: skip
        figure.text(
            0.985, 0.97,
            f"{outcome.delivered:,} records delivered · {outcome.lost:,} lost\n"
            f"{outcome.duplications} duplications · {outcome.deletions} deletions · "
            f"{outcome.counts.get('messages', 0):,} messages",
            fontsize=15, ha="right", va="top", linespacing=1.4,
        )  # fmt: skip
        figure.subplots_adjust(left=0.06, right=0.985, top=0.85, bottom=0.08, hspace=0.25)
    return save_figure(figure, path)


def _load(axes: Axes, outcome: PipelineRunResult) -> None:
    times = [sample.time for sample in outcome.samples]
    axes.plot(times, [s.offered for s in outcome.samples], color=INK, lw=1.6, label="load")
    axes.plot(times, [s.delivered for s in outcome.samples], color=BLUE, lw=2.2, label="delivered")
    axes.set_ylabel("records/s")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: units.count(v)))


def _sizes(axes: Axes, outcome: PipelineRunResult, pipeline: Pipeline) -> None:
    """Instances, and what the load needs at the policy's ratio, dotted.

    Lines of the same height are drawn a little apart, so that all are seen.
    """
    times = [sample.time for sample in outcome.samples]
    factor, needs = 1.0, set()
    for number, operator in enumerate(pipeline.operators):
        apart = 0.05 * (number - (len(pipeline.operators) - 1) / 2)
        axes.plot(
            times, [s.instances[operator.name] + apart for s in outcome.samples],
            color=POOLS[number % len(POOLS)], lw=2.0, drawstyle="steps-post", label=operator.name,
        )  # fmt: skip
        needs.add(factor / (operator.policy.ratio * operator.capacity))
        factor *= operator.selectivity
    for need in needs:
        axes.plot(
            times, [s.offered * need for s in outcome.samples], color=GREY, lw=1.6, ls=":",
            label="L / (r·C)" if need == max(needs) else None,
        )  # fmt: skip
    for action in outcome.actions:
        if action.what == "killed":
            axes.axvline(action.time, color=ORANGE, lw=1.6)
            axes.annotate(
                f"{action.instance} killed", (action.time, 0.03), color=ORANGE, fontsize=13,
                xycoords=("data", "axes fraction"), xytext=(5, 0), textcoords="offset points",
            )  # fmt: skip
    axes.set_ylabel("instances")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
