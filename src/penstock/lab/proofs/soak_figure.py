"""The picture of a soak: memory, threads and open files, and what is on disk, over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.lab.proofs.samples import Sample
from penstock.report.figure import BLUE, DPI, GREY, HEIGHT, INK, ORANGE, PURPLE, STYLE, WIDTH
from penstock.report.runs import PICTURE

MB = float(1 << 20)
_Lines = Mapping[str, tuple[str, Callable[[Sample], float | None]]]


def draw(samples: Sequence[Sample], folder: Path) -> Path:
    """Draw the samples as ``report.png`` in a folder."""
    path = folder / PICTURE
    hours = samples[-1].seconds > 7200
    times = [s.seconds / (3600.0 if hours else 60.0) for s in samples]
    panels: Sequence[tuple[str, str, _Lines]] = (
        ("Memory", "MB", {
            "JVM": (BLUE, lambda s: s.jvm_rss / MB),
            "JVM heap after collection": (PURPLE, lambda s: _mb(s.heap)),
            "executor": (GREY, lambda s: _mb(s.executor_rss)),
            "Python": (ORANGE, lambda s: s.python_rss / MB),
        }),
        ("Threads and open files", "", {
            "JVM threads": (BLUE, lambda s: s.jvm_threads),
            "JVM files": (PURPLE, lambda s: s.jvm_files),
            "Python threads": (ORANGE, lambda s: s.python_threads),
            "Python files": (INK, lambda s: s.python_files),
        }),
        ("On disk", "MB", {
            "checkpoint": (BLUE, lambda s: s.checkpoint / MB),
            "journal": (ORANGE, lambda s: s.journal / MB),
        }),
        ("Executors", "", {
            "alive": (INK, lambda s: s.executors),
            "dead, remembered": (GREY, lambda s: s.dead),
        }),
    )  # fmt: skip
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor="white")
        FigureCanvasAgg(figure)
        for axes, (name, unit, lines) in zip(figure.subplots(2, 2).flat, panels, strict=True):
            _panel(axes, name, unit, times, samples, lines)
            axes.set_xlabel("time (hours)" if hours else "time (minutes)")
        figure.tight_layout()
        partial = path.with_name(path.name + ".part")
        figure.savefig(partial, format="png", metadata={"Software": "penstock"})
    partial.replace(path)
    return path


def _panel(
    axes: Axes,
    name: str,
    unit: str,
    times: Sequence[float],
    samples: Sequence[Sample],
    lines: _Lines,
) -> None:
    for label, (color, of) in lines.items():
        points = [(t, v) for t, s in zip(times, samples, strict=True) if (v := of(s)) is not None]
        axes.plot([t for t, _ in points], [v for _, v in points], color=color, lw=2.0, label=label)
    axes.set_title(f"{name} ({unit})" if unit else name, loc="left", fontweight="bold")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best")


def _mb(value: float | None) -> float | None:
    return None if value is None else value / MB
