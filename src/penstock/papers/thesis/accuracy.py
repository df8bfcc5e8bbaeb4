"""How far our figures are from the published ones, over all cells that were published."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.papers.thesis.published import Figure
from penstock.papers.thesis.tables import Compared, Line
from penstock.report.table import Table, interval, percent, printed

NEAR = 0.25  # relative error of slots and actions
TWICE = 2.0  # factor of latencies
LEAST = 0.001  # seconds; a latency of 0 would be infinitely far from any other
_COUNTED: tuple[tuple[Figure, str, bool], ...] = (
    ("slots_mean", "slots, mean", False),
    ("slots_max", "slots, most", False),
    ("actions", "actions", False),
    ("latency_mean", "latency, mean", True),
    ("latency_p95", "latency, p95", True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """One figure over all published cells.

    factor: whether distances are factors max(ours/paper, paper/ours), else relative errors
        |ours − paper| / paper
    near: the share within ×2, or within 25 %
    worst, farthest: the cell that is farthest off, and its distance
    """

    figure: Figure
    title: str
    factor: bool
    cells: int
    median: float
    near: float
    worst: str
    farthest: float


def accuracy(tables: Iterable[Compared]) -> list[Accuracy]:
    """Each published cell counts once, as in the first table that has it; misprints do not."""
    lines = _first(tables)
    found = []
    for figure, title, factor in _COUNTED:
        each = {line.cell: _distance(line, figure, factor=factor) for _, line in lines}
        distances = {key: distance for key, distance in each.items() if distance is not None}
        if not distances:
            continue
        bound = TWICE if factor else NEAR
        worst = max(distances, key=lambda key: distances[key])
        found.append(
            Accuracy(
                figure=figure,
                title=title,
                factor=factor,
                cells=len(distances),
                median=statistics.median(distances.values()),
                near=sum(d <= bound for d in distances.values()) / len(distances),
                worst=worst.removesuffix("-strict"),
                farthest=distances[worst],
            )
        )
    return found


def grid(found: Sequence[Accuracy]) -> Table:
    """The summary as a table."""
    rows = tuple(
        (
            a.title,
            str(a.cells),
            _text(a.median, factor=a.factor),
            f"{percent(a.near)} in {'×2' if a.factor else '25 %'}",
            f"{a.worst} ({_text(a.farthest, factor=a.factor)})",
        )
        for a in found
    )
    return Table(
        title="How far ours are from the paper's",
        header=("figure", "cells", "median", "near", "farthest"),
        rows=rows,
    )


def document(found: Sequence[Accuracy], seeds: int) -> dict[str, Any]:
    """Plain values for ``--json``."""
    rows = [
        {
            "figure": a.figure,
            "distance": "factor" if a.factor else "relative error",
            "cells": a.cells,
            "median": a.median,
            "share_near": a.near,
            "near": TWICE if a.factor else NEAR,
            "worst": a.worst,
            "farthest": a.farthest,
        }
        for a in found
    ]
    return {"id": "accuracy", "title": "ours against the paper's", "seeds": seeds, "rows": rows}


def mismatches(tables: Iterable[Compared]) -> Table:
    """The cells whose mean slots or mean latency are not near the paper's."""
    rows = []
    for id, line in _first(tables):
        slots = _distance(line, "slots_mean", factor=False)
        latency = _distance(line, "latency_mean", factor=True)
        far_slots = slots is not None and slots > NEAR
        far_latency = latency is not None and latency > TWICE
        if far_slots or far_latency:
            rows.append(
                (
                    f"{id} {line.label}",
                    _pair(line, "slots_mean") if far_slots else "",
                    _pair(line, "latency_mean") if far_latency else "",
                )
            )
    return Table(
        title="Cells that are not near (paper / ours)",
        header=("table and row", "slots, mean", "latency, mean s"),
        rows=tuple(rows),
    )


def _first(tables: Iterable[Compared]) -> list[tuple[str, Line]]:
    """Each published cell with the first table that has it."""
    lines: dict[str, tuple[str, Line]] = {}
    for table in tables:
        for line in table.lines:
            if line.paper:
                lines.setdefault(line.cell, (table.id, line))
    return list(lines.values())


def _distance(line: Line, figure: Figure, *, factor: bool) -> float | None:
    """``None`` where the paper has no figure to compare with."""
    if figure not in line.paper or figure not in line.ours or figure in line.misprints:
        return None
    ours, theirs = line.ours[figure].mean, line.paper[figure]
    if not factor:
        return abs(ours - theirs) / theirs
    ratio = max(ours, LEAST) / max(theirs, LEAST)
    return max(ratio, 1.0 / ratio)


def _pair(line: Line, figure: Figure) -> str:
    return f"{printed(line.paper[figure])} / {interval(line.ours.get(figure))}"


def _text(distance: float, *, factor: bool) -> str:
    return f"×{distance:.2f}" if factor else percent(distance)
