"""A picture of a reproduction: axes in the style of all of them, saved as PNG."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.history.files import atomic
from penstock.report.figure import INK

WIDTH, DPI = 900, 100
# Okabe and Ito's colours: told apart with any kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": "#cbd2d9",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


@contextmanager
def canvas(
    path: Path,
    rows: int,
    columns: int = 1,
    *,
    height: int = 300,
    same_x: bool = False,
    constrained: bool = True,
) -> Iterator[list[Axes]]:
    """Yield axes row by row, ``height`` pixels each; the file is there when all is drawn.

    ``constrained``: margins are as wide as the words in them; else the caller sets them.
    """
    with mpl.rc_context(STYLE):
        size = (WIDTH / DPI, height * rows / DPI)
        figure = Figure(figsize=size, dpi=DPI, facecolor="white")
        figure.set_layout_engine("constrained" if constrained else "none")
        FigureCanvasAgg(figure)
        yield list(figure.subplots(rows, columns, squeeze=False, sharex=same_x).ravel())
        with atomic(path) as partial:
            figure.savefig(partial, format="png", metadata={"Software": "penstock"})


def words(axes: Axes, title: str, below: str, left: str) -> None:
    """A title, and what the axes show."""
    axes.set_title(title, loc="left", fontweight="bold", fontsize=10)
    axes.set_xlabel(below)
    axes.set_ylabel(left)
