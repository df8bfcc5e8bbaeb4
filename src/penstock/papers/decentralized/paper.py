"""The decentralized protocol's paper as one to reproduce, with Figures 3 to 6. [belkhiria19, §5]

It takes a minute, so nothing is kept for going on with it: ``--resume`` begins again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from penstock.decentralized.draws import Floats, Whole
from penstock.papers.decentralized import findings, tables
from penstock.papers.decentralized.evidence import Evidence, gather
from penstock.papers.decentralized.experiment import DEVIATION, OTHERS
from penstock.papers.harness import Asked, Paper
from penstock.papers.pictures import COLOURS, canvas
from penstock.papers.running import RunFolder
from penstock.report.figure import GREY

ABOUT = (
    "Five operators in a row, seven instances each at first, capacity 500, target ratio 0.7, a "
    "trial every 5 steps, 200 steps, every message sent and received. The paper calls the load of "
    f"each operator Brownian and says no more: here it moves by a normal {DEVIATION:g} records a "
    "step (half an instance's capacity), from what seven instances are for, reflected at the work "
    "of one; fixed before any run. The pseudo-code is repaired where it must be, see the page of "
    "the policy."
)
BLUE, RED, GREEN = COLOURS[:3]
CAPTIONS = {
    "figure-3.png": "Figure 3. Load, nodes and messages of the whole pipeline",
    "figure-4.png": "Figure 4. Load, nodes and messages of the middle operator",
    "figure-5.png": "Figure 5. Accuracy and ideal throughput of the middle operator",
    "figure-6.png": "Figure 6. Traffic under a load that only rises",
}


def measure(asked: Asked, folder: RunFolder) -> Evidence:
    """Run everything in this process."""
    return gather(
        asked.numbers, progress=lambda finished, total: folder.progress("runs", finished, total)
    )


def pictures(found: Evidence, asked: Asked, folder: Path) -> list[Path]:
    """Draw Figures 3 to 6 into a folder, of the first seed."""
    course = found.shown
    middle = course.load.shape[1] // 2
    paths = [folder / name for name in CAPTIONS]
    with canvas(paths[0], 2) as places:
        _nodes(places, course.load.sum(axis=1), course.instances.sum(axis=1))
        _messages(places[1], course.messages.sum(axis=1))
    with canvas(paths[1], 2) as places:
        _nodes(places, course.load[:, middle], course.instances[:, middle])
        _messages(places[1], course.messages[:, middle])
    with canvas(paths[2], 1) as places:
        accuracy = course.instances[:, middle] / course.ideal[:, middle]
        share = course.throughput[:, middle] / course.load[:, middle]
        _accuracy(places[0], accuracy, share)
    with canvas(paths[3], 1) as places:
        _traffic(places[0], found)
    return paths


def _nodes(places: list[Axes], load: Floats, nodes: Whole) -> None:
    left = places[0]
    left.plot(load, color=BLUE, lw=1.2, label="load")
    left.set_ylim(bottom=0)
    left.set_ylabel("records per step")
    right = left.twinx()
    right.step(range(len(nodes)), nodes, color=RED, lw=1.2, where="post", label="nodes")
    right.set_ylim(bottom=0)
    right.set_ylabel("nodes")
    lines = [*left.get_lines(), *right.get_lines()]
    left.legend(lines, [str(line.get_label()) for line in lines], fontsize=8, loc="upper left")


def _messages(axes: Axes, messages: Whole) -> None:
    axes.vlines(range(len(messages)), 0, messages, color=GREEN, lw=1.2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("step")
    axes.set_ylabel("messages")


def _accuracy(axes: Axes, accuracy: Floats, share: Floats) -> None:
    axes.plot(accuracy, color=BLUE, lw=1.2, label="instances / ideal")
    axes.plot(share, color=RED, lw=1.2, label="share of the load that can be processed")
    axes.axhline(1.0, color=GREY, lw=1, ls=":")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("step")
    axes.legend(fontsize=8, loc="lower right")


def _traffic(axes: Axes, found: Evidence) -> None:
    fastest = found.in_proportion[max(found.in_proportion)][0]
    slower = found.by_the_same_amount[0]
    axes.plot(fastest.nodes, fastest.messages, ".", color=BLUE, label="load rises in proportion")
    axes.plot(slower.nodes, slower.messages, ".", color=GREEN, label="by the same amount")
    scale = float(np.median(fastest.messages[-10:] / fastest.nodes[-10:] ** 2))
    quadratic = scale * fastest.nodes**2
    axes.plot(fastest.nodes, quadratic, color=GREY, lw=1, ls=":", label="quadratic")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("nodes")
    axes.set_ylabel("messages in a trial period")
    axes.legend(fontsize=8, loc="upper left")


PAPER = Paper(
    name="decentralized",
    title="The decentralized protocol's evaluation, reproduced",
    about=ABOUT,
    seeds=100,
    captions=CAPTIONS,
    amount=lambda asked: f"{1 + len(OTHERS)} cells × {asked.seeds} seeds",
    measure=measure,
    findings=findings.judge,
    tables=lambda found, asked: tables.all_tables(found),
    pictures=pictures,
)
