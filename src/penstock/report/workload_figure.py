"""The picture of a workload: its rate over time, in a terminal and as a PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from penstock.core.errors import InputError
from penstock.report import units
from penstock.workloads.pattern import Floats
from penstock.workloads.sampling import Sample

Dots = npt.NDArray[np.bool_]

ROWS, COLUMNS, NARROWEST = 13, 80, 40
MOST_POINTS, FEW_POINTS = 8_400, 1_200  # of a line in the PNG: all, or else about one a pixel
HEIGHT = 700  # pixels of the PNG
_TOPS = (1.0, 1.2, 1.6, 2.0, 2.4, 2.8, 3.2, 4.0, 4.8, 6.0, 8.0, 10.0)  # quarters are round
_TICKS = (1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 100, 120, 200, 240, 300, 500, 1000)
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # of one braille sign


def terminal_chart(samples: Sequence[Sample], columns: int = COLUMNS) -> str:
    """The rates as lines of dots, with axes: records/s from 0 up, time to the right.

    A column shows the lowest to the highest rate of its time, so that no short spike is lost.
    Several samples are drawn as three lines: their mean, the lowest and the highest of each moment.
    """
    top = _top(max(s.figures.highest for s in samples))
    labels = {
        math.floor((4 * ROWS - 1) * (1 - share)) // 4: units.count(top * share)
        for share in (1.0, 0.75, 0.5, 0.25, 0.0)
    }
    margin = max(len(text) for text in labels.values())
    width = max(columns, NARROWEST) - margin - 2
    dots = np.zeros((4 * ROWS, 2 * width), dtype=bool)
    rates = np.stack([s.rates for s in samples])
    several = len(samples) > 1
    for line in (rates.min(axis=0), rates.mean(axis=0), rates.max(axis=0)) if several else rates:
        _trace_line(dots, line / top)
    what = f": lowest, mean and highest of {len(samples)} seeds" if several else ""
    lines = [f"records/s{what}"]
    for row, signs in enumerate(_braille(dots)):
        label = labels.get(row, "")
        lines.append(f"{label:>{margin}} {'┤' if label else '│'}{signs}".rstrip())
    return "\n".join([*lines, *_time_axis(samples[0].seconds, margin, width)])


def draw(samples: Sequence[Sample], path: Path, title: str, subtitle: str = "") -> Path:
    """The same as a PNG; several samples as thin lines with their mean.

    Where a point stands for many cells, a band shows the lowest to the highest of them.
    """
    import matplotlib as mpl
    from matplotlib.ticker import FuncFormatter

    from penstock.report.figure import BLUE, DPI, GREY, INK, STYLE, WIDTH, new_figure, save_figure

    unit, name = _time_unit(samples[0].seconds)
    several = len(samples) > 1
    rates = np.stack([s.rates for s in samples])
    together = 1 if rates.shape[1] <= MOST_POINTS else math.ceil(rates.shape[1] / FEW_POINTS)
    first = np.arange(0, rates.shape[1], together)
    low, high = (f.reduceat(rates, first, axis=1) for f in (np.minimum, np.maximum))
    means = np.add.reduceat(rates, first, axis=1) / np.diff(np.append(first, rates.shape[1]))
    times = np.append(first * samples[0].cell, samples[0].seconds) / unit
    with mpl.rc_context(STYLE):
        figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
        axes = figure.subplots()
        for row in means if several else ():
            axes.plot(times, _held(row), drawstyle="steps-post", color=GREY, lw=0.8, alpha=0.5)
        mean, lowest, highest = map(_held, (means.mean(axis=0), low.min(axis=0), high.max(axis=0)))
        axes.fill_between(times, lowest, highest, step="post", color=BLUE, alpha=0.25, lw=0)
        if not several:
            axes.fill_between(times, mean, step="post", color=BLUE, alpha=0.1, lw=0)
        thick = 1.4 if together > 1 else 2.4
        axes.plot(times, mean, drawstyle="steps-post", color=BLUE, lw=thick)
        level = float(np.mean([s.figures.mean for s in samples]))
        axes.axhline(level, color=INK, lw=1.2, ls=":")
        axes.annotate(
            f"mean {units.count(level)}", (1, level), xycoords=("axes fraction", "data"),
            xytext=(-4, 4), textcoords="offset points", ha="right", fontsize=13,
            bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip
        axes.set_xlim(0, times[-1])
        axes.set_ylim(0, 1.06 * float(rates.max()) or 1.0)
        axes.set_xlabel(f"time ({name})")
        axes.set_ylabel("records/s")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: units.count(v)))
        axes.set_axisbelow(True)
        what = f"{title} · {len(samples)} seeds and their mean" if several else title
        figure.text(0.012, 0.968, what, fontsize=23, fontweight="bold", va="top")
        figure.text(0.012, 0.905, subtitle, fontsize=14, color="#52606d", va="top")
        figure.subplots_adjust(left=0.075, right=0.985, top=0.84, bottom=0.105)
    try:
        return save_figure(figure, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def _held(values: Floats) -> Floats:
    """With the last value once more: it holds until the end."""
    return np.append(values, values[-1])


def _trace_line(dots: Dots, heights: Floats) -> None:
    """Set the dots of one line; ``heights`` are shares of the whole height."""
    high, wide = dots.shape
    level = np.round(heights * (high - 1)).astype(int)
    first = np.arange(wide) * len(level) // wide
    after = np.maximum(np.arange(1, wide + 1) * len(level) // wide, first + 1)
    before = int(level[0])
    for column, (a, b) in enumerate(zip(first.tolist(), after.tolist(), strict=True)):
        part = level[a:b]
        low, top = min(before, part.min()), max(before, part.max())  # joined on to the last column
        dots[high - 1 - top : high - low, column] = True
        before = int(part[-1])


def _braille(dots: Dots) -> list[str]:
    rows = []
    for top in range(0, dots.shape[0], 4):
        block = dots[top : top + 4].reshape(4, -1, 2)
        codes = 0x2800 + np.einsum("rcs,rs->c", block, _DOTS)
        rows.append("".join(map(chr, codes)).replace("\u2800", " "))
    return rows


def _time_axis(seconds: float, margin: int, width: int) -> list[str]:
    unit, name = _time_unit(seconds)
    length = seconds / unit
    step = next((s for s in _TICKS if length / s <= width / 9), math.ceil(length / 4))
    rule, labels = ["─"] * width, [" "] * (margin + width + 2)
    for number in range(int(length / step + 1e-9) + 1):
        at = round(number * step / length * (width - 1))
        text = str(number * step)
        rule[at] = "┴"
        begin = min(margin + 2 + at - (len(text) - 1) // 2, len(labels) - len(text))
        labels[begin : begin + len(text)] = text
    return [
        f"{'':>{margin}} └{''.join(rule)}",
        "".join(labels).rstrip(),
        f"time ({name})".center(margin + width).rstrip(),
    ]


def _time_unit(seconds: float) -> tuple[float, str]:
    if seconds > 4 * 86400:
        return 86400.0, "days"
    if seconds > 12 * 3600:
        return 3600.0, "hours"
    return (60.0, "minutes") if seconds > 300 else (1.0, "seconds")


def _top(highest: float) -> float:
    """A round number at or just above the highest rate."""
    if highest <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(highest))
    return next(t * size for t in _TOPS if t * size >= highest * (1 - 1e-9))
