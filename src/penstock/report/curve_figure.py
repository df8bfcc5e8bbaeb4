"""The picture of a calibration: throughput over executors, the fitted curve and linear growth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.capacity.curve import PowerCurve

HEIGHT = 800  # pixels
Point = tuple[int, float, float | None]  # executors, records/s, half-width of its interval


def draw(
    points: Sequence[Point], curve: PowerCurve | None, path: Path, *, title: str, subtitle: str
) -> Path:
    """Points with their intervals; the curve; what the smallest size times n would be."""
    import matplotlib as mpl
    import numpy as np
    from matplotlib.ticker import FuncFormatter

    from penstock.report import units
    from penstock.report.figure import (
        BLUE,
        DPI,
        GREY,
        ORANGE,
        STYLE,
        WIDTH,
        new_figure,
        save_figure,
    )

    sizes = [n for n, _, _ in points]
    first, base, _ = points[0]
    along = np.linspace(min(sizes), max(sizes), 100)
    with mpl.rc_context(STYLE):
        figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
        axes = figure.subplots()
        axes.plot(along, along * base / first, color=GREY, lw=1.4, ls=":", label="linear")
        if curve is not None:
            fitted: Callable[[float], float] = curve.at
            axes.plot(along, [fitted(n) for n in along], color=ORANGE, lw=2.2, label=str(curve))
        axes.errorbar(
            sizes,
            [rate for _, rate, _ in points],
            yerr=[width or 0.0 for _, _, width in points],
            fmt="o",
            color=BLUE,
            ms=8,
            capsize=5,
            label="measured, 95 % interval",
        )
        axes.set_xticks(sizes)
        axes.set_ylim(0)
        axes.set_xlabel("executors")
        axes.set_ylabel("records/s")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: units.count(v)))
        axes.legend(loc="upper left")
        figure.text(0.012, 0.968, title, fontsize=23, fontweight="bold", va="top")
        figure.text(0.012, 0.905, subtitle, fontsize=14, color="#52606d", va="top")
        figure.subplots_adjust(left=0.075, right=0.985, top=0.85, bottom=0.1)
    return save_figure(figure, path)
