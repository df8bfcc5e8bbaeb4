"""The picture of a run: load and throughput, lag and latency, slots with what was done to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.history.files import atomic
from penstock.report import units
from penstock.report.runs import PICTURE, Run
from penstock.report.series import Tick, pools_of, ticks_of, view_top
from penstock.report.summary import Summary, slots_limit, summarize
from penstock.report.titles import subtitle, title

# Okabe and Ito's colours: told apart with any kind of colour vision.
INK, GREY, BLUE, ORANGE, PURPLE = "#1f2933", "#7b8794", "#0072B2", "#D55E00", "#AA4499"
POOLS = ("#009E73", "#56B4E9", "#E69F00", "#CC79A7", "#0072B2", "#D55E00")
WIDTH, HEIGHT, DPI = 1600, 1000, 100
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 15,
    "axes.edgecolor": "#cbd2d9",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e7eb",
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "legend.frameon": False,
    "legend.fontsize": 13,
}

_Of = Callable[[Tick], float | None]


def draw(run: Run, path: Path | None = None) -> Path:
    """Draw a run as ``report.png`` in its folder, or to another path."""
    return save_figure(figure_of(run), path or run.folder / PICTURE)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches; to be filled within ``mpl.rc_context(STYLE)``."""
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as a PNG file, whole or not at all."""
    with mpl.rc_context(STYLE), atomic(path) as partial:
        figure.savefig(partial, format="png", metadata={"Software": "penstock"})
    return path


def figure_of(run: Run) -> Figure:
    """Load and throughput, lag and latency, and the slots of a run over time."""
    ticks = ticks_of(run.entries)
    with mpl.rc_context(STYLE):
        figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
        panels = figure.subplots(3, 1, sharex=True, gridspec_kw={"height_ratios": (4, 3, 4)})
        unit, label = _time_unit(ticks)
        times = [t.time / unit for t in ticks]
        _load(panels[0], times, ticks)
        _delay(panels[1], times, ticks)
        _slots(panels[2], times, ticks, run)
        panels[2].set_xlabel(f"time ({label})")
        if len(times) > 1:
            panels[2].set_xlim(times[0], times[-1])
        _headline(figure, run, summarize(run.header, run.entries))
        figure.subplots_adjust(left=0.055, right=0.985, top=0.85, bottom=0.075, hspace=0.3)
    return figure


def _headline(figure: Figure, run: Run, summary: Summary) -> None:
    figure.text(0.012, 0.978, title(run), fontsize=23, fontweight="bold", va="top")
    figure.text(0.012, 0.932, subtitle(run), fontsize=15, color="#52606d", va="top")
    lag = units.seconds(summary.lag_seconds.p95 if summary.lag_seconds else None)
    done = f"{summary.scale_ups}▲ {summary.scale_downs}▼"
    if summary.mode == "advise" and summary.advised_slots is not None:
        done = f"advised {summary.advised_slots:.1f} slots"
    figures = (
        f"{summary.slots_mean:.1f} slots on average · kept up {units.share(summary.kept_up)}\n"
        f"{done} · lag p95 {lag}"
    )
    figure.text(0.985, 0.976, figures, fontsize=16, ha="right", va="top", linespacing=1.45)


def _time_unit(ticks: Sequence[Tick]) -> tuple[float, str]:
    last = ticks[-1].time if ticks else 0.0
    if last > 12 * 3600:
        return 3600.0, "hours"
    return (60.0, "minutes") if last > 300 else (1.0, "seconds")


def _load(axes: Axes, times: list[float], ticks: Sequence[Tick]) -> None:
    _line(axes, times, ticks, lambda t: t.offered, color=INK, lw=1.6, label="load", zorder=3)
    _line(axes, times, ticks, lambda t: t.processed, color=BLUE, lw=2.4, label="throughput")
    _name(axes, "Load and throughput", "records/s")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: units.count(v)))
    _finish(axes)


def _delay(axes: Axes, times: list[float], ticks: Sequence[Tick]) -> None:
    _line(axes, times, ticks, lambda t: t.latency, color=PURPLE, lw=1.6, label="latency")
    _line(axes, times, ticks, lambda t: t.lag_seconds, color=ORANGE, lw=2.4, label="lag")
    _name(axes, "Lag and latency", "seconds")
    _finish(axes)
    axes.set_ylim(top=max(1.0, axes.get_ylim()[1]))  # less than a second is no story


def _slots(axes: Axes, times: list[float], ticks: Sequence[Tick], run: Run) -> None:
    """Pools stacked, so that the outline is what is paid for."""
    pools = pools_of(ticks)
    base = [0] * len(ticks)
    for number, pool in enumerate(pools):
        top = [b + t.slots.get(pool, 0) for b, t in zip(base, ticks, strict=True)]
        color = POOLS[number % len(POOLS)]
        axes.fill_between(
            times, base, top, step="pre", color=color, alpha=0.55, lw=0, label=pool, zorder=2
        )
        base = top
    axes.plot(times, base, drawstyle="steps-pre", color=INK, lw=1.8, label="slots", zorder=4)
    _line(
        axes, times, ticks, lambda t: t.raw_total, color=INK, lw=1.6, ls=":", label="raw target",
        zorder=3,
    )  # fmt: skip
    limits = (run.header.guards.minimum * len(pools), slots_limit(run.header.guards, len(pools)))
    top_of_view = view_top(ticks, limits[1])
    for sign, marker, color in ((1, "^", BLUE), (-1, "v", ORANGE)):
        acts = [(x, t) for x, t in zip(times, ticks, strict=True) if t.news and t.growth * sign > 0]
        done = all(t.decision.applied for _, t in acts)
        axes.scatter(
            [x for x, _ in acts],
            [min(max(t.total, t.total + t.growth) + top_of_view * 0.05, top_of_view * 0.97)
             for _, t in acts],
            marker=marker, s=90, color=color if done else "none", edgecolors=color, zorder=5,
        )  # fmt: skip
    _name(axes, "Slots", "▲ grown, ▼ shrunk" if run.header.mode == "act" else "△▽ advised")
    _finish(axes)
    axes.set_ylim(0, top_of_view)
    for low, high in ((0, limits[0]), (limits[1], top_of_view)):
        if low < high:
            axes.axhspan(low, high, color="#9aa5b1", alpha=0.22, lw=0, zorder=1)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))


def _line(axes: Axes, times: list[float], ticks: Sequence[Tick], of: _Of, **style: Any) -> None:
    values = [of(t) for t in ticks]
    if any(v is not None for v in values):
        gaps = [float("nan") if v is None else v for v in values]  # matplotlib's way to leave gaps
        axes.plot(times, gaps, **style)


def _name(axes: Axes, name: str, what: str) -> None:
    bold = axes.text(0, 1.05, name, transform=axes.transAxes, fontsize=16, fontweight="bold")
    axes.annotate(f"   {what}", (1, 0), xycoords=bold, fontsize=14, color=GREY, va="bottom")


def _finish(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    axes.set_axisbelow(True)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="lower right", bbox_to_anchor=(1, 0.98), ncols=8, borderaxespad=0, handlelength=1.6
        )
    else:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=GREY)
