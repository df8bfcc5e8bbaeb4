"""The picture of a proof under bursts: response times and CPU shares of all runs, over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.lab.proofs.bursts_run import Course
from penstock.report.figure import BLUE, DPI, GREY, HEIGHT, INK, ORANGE, STYLE, WIDTH
from penstock.report.runs import PICTURE

COLOURS = {"full": GREY, "mead+": BLUE, "mead-mg1": ORANGE}


def draw(courses: Sequence[Course], targets: Mapping[str, float], folder: Path) -> Path:
    """Draw the courses as ``report.png``: a column per target, response times above shares."""
    path = folder / PICTURE
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor="white")
        FigureCanvasAgg(figure)
        axes = figure.subplots(2, len(targets), squeeze=False, sharex=True)
        for column, (what, target) in enumerate(targets.items()):
            shown = [c for c in courses if c.name == "full" or c.name.endswith(f" {what}")]
            above, below = axes[0][column], axes[1][column]
            for course in shown:
                _lines(above, below, course)
            above.axhline(target, color=INK, lw=1.0, ls="--", label=f"target of the {what}")
            above.set_title(f"Response time, target {what} {target:.2f} s", loc="left")
            above.set_yscale("log")
            above.legend(loc="best")
            below.set_title("CPU share (%)", loc="left")
            below.set_ylim(0, 105)
            below.set_xlabel("time (seconds)")
        axes[0][0].set_ylabel("seconds, mean of 5 s")
        figure.tight_layout()
        partial = path.with_name(path.name + ".part")
        figure.savefig(partial, format="png", metadata={"Software": "penstock"})
    partial.replace(path)
    return path


def _lines(above: Axes, below: Axes, course: Course) -> None:
    name = course.name.split()[0]
    times = [t for t, _, _ in course.points]
    above.plot(times, [r for _, r, _ in course.points], color=COLOURS[name], lw=1.5, label=name)
    shares = [100.0 * s for _, _, s in course.points]
    below.step(times, shares, where="post", color=COLOURS[name], lw=1.5)
