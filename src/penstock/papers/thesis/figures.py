"""The pictures of the thesis's Figures 7.1 to 7.21, drawn from the first seed of each cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from penstock.comparison.results import Results
from penstock.comparison.trace import Trace
from penstock.papers.pictures import COLOURS, DPI, canvas
from penstock.papers.thesis import cells, published
from penstock.report.figure import GREY, INK

HEIGHT = 380  # pixels of a panel
What = Literal["slots", "latency"]
BY_POLICY: Mapping[str, str] = dict(zip(published.NAMES, COLOURS, strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Lines of slots or of latency; each has a label, a cell's key and a colour."""

    title: str
    what: What
    lines: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A figure of the thesis."""

    id: str
    caption: str
    panels: tuple[Panel, ...]

    @property
    def keys(self) -> set[str]:
        """The cells that it shows."""
        return {key for panel in self.panels for _, key, _ in panel.lines}

    @property
    def file(self) -> str:
        """Its file name."""
        return f"figure-{self.id}.png"


def _swept(id: str, table: str) -> Drawing:
    """Slots over time for each value of a parameter."""
    printed = published.TABLES[table]
    lines = tuple(
        (printed.label(row), cells.of_row(row).key, colour)
        for row, colour in zip(printed.rows, COLOURS, strict=False)
        if row.figures or table != "7.6"  # the thesis could draw only one line there
    )
    panel = Panel(title=printed.title, what="slots", lines=lines)
    return Drawing(id=id, caption=f"Slots: {printed.title}", panels=(panel,))


def _all(id: str, what: What, *scenes: str, note: str = "") -> Drawing:
    """All auto-scalers over time, one panel per scene."""
    panels = []
    for scene in scenes:
        query, workload = scene.split()
        lines = tuple(
            (name, cells.chosen(query, workload, policy).key, BY_POLICY[policy])
            for policy, name in published.NAMES.items()
        )
        panels.append(Panel(title=f"query {query[1:]}, {workload}", what=what, lines=lines))
    caption = f"{what.capitalize()}: " + "; ".join(panel.title for panel in panels) + note
    return Drawing(id=id, caption=caption, panels=tuple(panels))


def drawings() -> list[Drawing]:
    """Figures 7.1 to 7.21."""
    return [
        *(_swept(f"7.{n}", f"7.{n}") for n in range(1, 9)),
        _all("7.9", "slots", "q11 cosine"),
        _all("7.10", "latency", "q11 cosine"),
        _all(
            "7.11",
            "slots",
            "q11 cosine",
            "q1 cosine",
            note=" (the thesis prints the caption of Figure 7.9 again; query 1 is added)",
        ),
        _all("7.12", "latency", "q1 random"),
        _all("7.13", "slots", "q1 random"),
        _all("7.14", "slots", "q11 random"),
        _all("7.15", "latency", "q11 random"),
        _all("7.16", "slots", "q1 increasing"),
        _all("7.17", "slots", "q11 increasing"),
        _all("7.18", "slots", "q1 decreasing"),
        _all("7.19", "slots", "q11 decreasing"),
        _all("7.20", "slots", "q1 convergence"),
        _all("7.21", "slots", "q11 convergence"),
    ]


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Draw every figure whose cells were run into a folder."""
    known = {cell.key for cell in results.cells}
    found = [drawing for drawing in drawings() if drawing.keys <= known]
    return [draw(drawing, results, folder / drawing.file) for drawing in found]


def draw(drawing: Drawing, results: Results, path: Path) -> Path:
    """One figure, with the load in the background."""
    panels = len(drawing.panels)
    with canvas(path, panels, height=HEIGHT, constrained=False) as axes:
        for panel, place in zip(drawing.panels, axes, strict=True):
            _panel(place, panel, results)
        axes[0].set_title(f"Figure {drawing.id}", loc="right", color=GREY, fontsize=9)
        inches = HEIGHT * panels / DPI
        axes[0].figure.subplots_adjust(
            left=0.06, right=0.985, top=1 - 0.32 / inches, bottom=0.42 / inches, hspace=0.28
        )
    return path


def _panel(axes: Axes, panel: Panel, results: Results) -> None:
    traces = {key: results.trace(key) for _, key, _ in panel.lines}
    first = next(iter(traces.values()))
    for label, key, colour in panel.lines:
        trace = traces[key]
        # A latency is not measured while the job is down; the line goes on from there.
        seen = trace.down < 1.0 if panel.what == "latency" else slice(None)
        values = trace.slots if panel.what == "slots" else trace.latency
        axes.plot(trace.time[seen] / 60, values[seen], color=colour, lw=1.5, label=label, zorder=3)
    if panel.what == "slots":
        axes.plot(first.time / 60, first.oracle, color=INK, lw=1, ls=":", label="oracle", zorder=2)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, first.time[-1] / 60)
    axes.set_title(panel.title, loc="left", fontweight="bold", fontsize=10)
    axes.set_ylabel("slots" if panel.what == "slots" else "latency, s")
    axes.set_xlabel("minutes")
    _load(axes, first)
    axes.legend(loc="upper right", ncols=len(panel.lines) + 1, fontsize=8, handlelength=1.4)


def _load(axes: Axes, trace: Trace) -> None:
    """The offered load as a shade up to three quarters of the height."""
    most = float(trace.offered.max()) or 1.0
    top = axes.get_ylim()[1] * 1.12  # room for the legend
    axes.set_ylim(0, top)
    shade = trace.offered / most * top * 0.75
    axes.fill_between(trace.time / 60, shade, color="#9aa5b1", alpha=0.22, lw=0, zorder=1)
