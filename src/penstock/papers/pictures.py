"""A picture of a reproduction: a grid of axes in the style of all of them, saved as PNG."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.papers.thesis.figures import STYLE

WIDTH, DPI = 900, 100


@contextmanager
def canvas(
    path: Path, rows: int, columns: int = 1, *, height: int = 300, same_x: bool = False
) -> Iterator[list[Axes]]:
    """Axes row by row, ``height`` pixels each; the file is there when all is drawn."""
    with mpl.rc_context(STYLE):
        size = (WIDTH / DPI, height * rows / DPI)
        figure = Figure(figsize=size, dpi=DPI, facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        yield list(figure.subplots(rows, columns, squeeze=False, sharex=same_x).ravel())
        partial = path.with_name(path.name + ".part")
        figure.savefig(partial, format="png", metadata={"Software": "penstock"})
    partial.replace(path)


def words(axes: Axes, title: str, below: str, left: str) -> None:
    """A title, and what the axes show."""
    axes.set_title(title, loc="left", fontweight="bold", fontsize=10)
    axes.set_xlabel(below)
    axes.set_ylabel(left)
