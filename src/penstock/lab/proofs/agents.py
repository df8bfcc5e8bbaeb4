"""Agents on Spark: a split query that only its agents size goes up and down, and stays exact."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.lab.proofs.agents_run import AgentsRun, AgentsSettings, run
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.report import units
from penstock.report.figure import (
    BLUE,
    DPI,
    GREY,
    HEIGHT,
    INK,
    ORANGE,
    POOLS,
    STYLE,
    WIDTH,
    new_figure,
    save_figure,
)
from penstock.report.runs import PICTURE

COURSE = "course.json"


def prove(spec: AgentsSettings, *, folder: Path, say: Say) -> Proof:
    """Run it, keep its course and draw it."""
    course = run(spec, say=say)
    text = json.dumps(dataclasses.asdict(course), ensure_ascii=False)
    (folder / COURSE).write_text(text + "\n", encoding="utf-8")
    draw(course, folder)
    return judge(course)


def judge(course: AgentsRun) -> Proof:
    """Judge a run: it stayed exact, went up and down, and only agents sized it."""
    counts = course.counts
    names = list(course.rosters)
    sizes = {name: [g.executors[name] for g in course.glances] for name in names}
    notes = [
        f"{course.answer}; messages between agents: {counts.get('messages', 0):,}, by the paper's "
        f"formula {counts.get('messages by the formula', 0):,}",
        f"{counts.get('trials', 0):,} trials, {counts.get('trials without a load', 0):,} of them "
        f"without a load, in which nothing was decided",
    ]
    if not course.limited:
        notes.append("executors had no CPU quota here: what they scale to means little")
    return Proof(
        name="agents",
        title="Agents: query 1 split, sized by an agent beside each executor",
        checks=(
            Check(figure="rows missing", value=course.answer.missing, bound=0),
            Check(figure="rows surplus", value=course.answer.surplus, bound=0),
            Check(
                figure="operators that went up and down",
                value=sum(map(up_and_down, sizes.values())),
                bound=1,
                at_most=False,
            ),
            Check(
                figure="executors that no agent asked for",
                value=unasked(course.rosters, counts.get("wishes", 0)),
                bound=0,
            ),
        ),
        details=tuple(_row(name, sizes[name], course.rosters[name]) for name in names),
        notes=tuple(notes),
    )


def up_and_down(sizes: list[int]) -> bool:
    """Whether a size grew, and ended below its peak.

    >>> up_and_down([1, 2, 3, 1]), up_and_down([1, 2, 3, 3]), up_and_down([3, 1, 1])
    (True, False, False)
    """
    top = max(sizes, default=0)
    return top > min(sizes[: sizes.index(top)], default=top) and sizes[-1] < top


def unasked(rosters: Mapping[str, Mapping[str, Any]], wishes: int) -> int:
    """Executors that came or went, and wishes that were carried out, without an agent.

    Each application begins with one executor. One that crashes counts, and so does the one with
    which Spark replaces it. ``wishes`` for one more, as the agents counted them.
    """
    found = max(0, sum(int(roster["added"]) for roster in rosters.values()) - wishes)
    for roster in rosters.values():
        came = len(roster["alive"]) + len(roster["gone"]) - 1
        found += max(0, came - int(roster["added"]))
        found += len(set(roster["gone"]) - set(roster["removed"]))
    return found


def _row(name: str, sizes: list[int], roster: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operator": name,
        "fewest": min(sizes, default=0),
        "most": max(sizes, default=0),
        "last": sizes[-1] if sizes else 0,
        "added": roster["added"],
        "left": len(roster["removed"]),
        "refused": roster["refused"],
        "failed tasks": roster["failed_tasks"],
    }


OFFSET = 0.05  # executors between the lines of two operators, so that both are seen


def draw(course: AgentsRun, folder: Path) -> Path:
    """Draw a course as ``report.png``."""
    with mpl.rc_context(STYLE):
        figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
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
    return save_figure(figure, folder / PICTURE)


def _rates(axes: Axes, times: list[float], course: AgentsRun) -> None:
    axes.plot(times, [g.offered for g in course.glances], color=INK, lw=1.6, label="load")
    delivered = [g.delivered for g in course.glances]
    axes.plot(times, delivered, color=BLUE, lw=2.0, label="read by the sink")
    axes.set_ylabel("records/s")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.count(value)))


def _executors(axes: Axes, times: list[float], course: AgentsRun) -> None:
    for number, (name, colour) in enumerate(zip(course.rosters, POOLS, strict=False)):
        sizes = [g.executors[name] + number * OFFSET for g in course.glances]
        axes.step(times, sizes, where="post", color=colour, lw=2.2, label=name)
    axes.set_ylabel("executors")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _loads(axes: Axes, times: list[float], course: AgentsRun) -> None:
    for name, colour in zip(course.rosters, POOLS, strict=False):
        known = [(t, g.loads[name]) for t, g in zip(times, course.glances, strict=True)]
        points = [(t, 100.0 * load) for t, load in known if load is not None]
        axes.plot([t for t, _ in points], [v for _, v in points], color=colour, lw=1.6, label=name)
    for threshold in (60.0, 80.0):
        axes.axhline(threshold, color=GREY, lw=0.9, ls="--")
    axes.set_ylabel("% of quota")
    axes.set_title("mean load that agents read", loc="left", fontsize=13)


def _messages(axes: Axes, times: list[float], course: AgentsRun) -> None:
    sent = [g.messages for g in course.glances]
    axes.step(times, sent, where="post", color=ORANGE, lw=2.2, label="messages")
    formula = [g.formula for g in course.glances]
    axes.step(times, formula, where="post", color=GREY, lw=1.4, ls="--", label="by the formula")
    axes.set_ylabel("messages")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
