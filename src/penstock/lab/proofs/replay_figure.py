"""The picture of a replay proof: executors of real runs and what was foretold, load above."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.lab.proofs.replay_play import Course, Foretold
from penstock.report import units
from penstock.report.figure import (
    BLUE,
    DPI,
    GREY,
    HEIGHT,
    INK,
    ORANGE,
    STYLE,
    WIDTH,
    new_figure,
    save_figure,
)
from penstock.report.runs import PICTURE
from penstock.simulator.series import Floats


def draw(example: str, runs: Sequence[Foretold], folder: Path) -> Path:
    """Draw all runs as ``report.png``: a column for each policy; load, executors and waits."""
    policies = list(dict.fromkeys(run.policy for run in runs))
    with mpl.rc_context(STYLE):
        figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
        panels = figure.subplots(
            3, len(policies), squeeze=False, sharex=True, sharey="row", height_ratios=[2, 3, 3]
        )
        for column, policy in enumerate(policies):
            _draw_one(
                [row[column] for row in panels], [run for run in runs if run.policy == policy]
            )
            panels[0][column].set_title(policy, loc="left")
            panels[2][column].set_xlabel("seconds after the first planning")
        names = ("lines/s", "executors", "oldest waits (s)")
        for axes, name in zip(panels[:, 0], names, strict=True):
            axes.set_ylabel(name)
            axes.set_ylim(bottom=0)
        figure.suptitle(
            f"{example}: what a replay foretells, and what came true", x=0.01, ha="left"
        )
        handles, labels = panels[1][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower right", ncols=3)
        figure.tight_layout(rect=(0, 0.04, 1, 1))
    return save_figure(figure, folder / PICTURE)


def _draw_one(panels: Sequence[Axes], runs: Sequence[Foretold]) -> None:
    load, size, wait = panels
    for number, run in enumerate(runs):
        real = "real runs" if number == 0 else None
        load.plot(run.rates, color=INK, lw=1.0)
        size.plot(run.real.executors, color=BLUE, lw=1.0, drawstyle="steps-post", label=real)
        wait.plot(run.real.waits, color=BLUE, lw=1.0)
    for by, color, label in (
        ("by_log", ORANGE, "foretold by the event log"),
        ("by_journal", GREY, "by the journal"),
    ):
        courses = [course for run in runs for course in getattr(run, by)]
        if not courses:
            continue
        style = "-" if by == "by_log" else "--"
        size.plot(_mean([c.executors for c in courses]), color=color, lw=2.4, ls=style, label=label)
        wait.plot(_mean([c.waits for c in courses]), color=color, lw=2.4, ls=style)
    _mark(panels, runs[0].real)
    load.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.count(value)))
    size.yaxis.set_major_locator(MaxNLocator(integer=True))


def _mark(panels: Sequence[Axes], course: Course) -> None:
    """Where the span begins that figures are about."""
    for axes in panels:
        axes.axvline(course.counted[0], color=GREY, lw=1.0, ls=":")


def _mean(lines: Sequence[Floats]) -> Floats:
    """Second by second, as far as all of them go."""
    shortest = min(len(line) for line in lines)
    return np.asarray(np.mean([line[:shortest] for line in lines], axis=0))
