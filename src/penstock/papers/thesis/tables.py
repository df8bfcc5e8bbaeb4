"""The published tables with ours beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from penstock.comparison.results import Results
from penstock.papers.thesis import cells, published
from penstock.papers.thesis.published import FIGURES, Figure
from penstock.report.statistics import Estimate
from penstock.report.table import Table, interval, number, printed

ORACLE = "oracle"
_HEADINGS: Mapping[Figure, str] = {
    "slots_mean": "slots mean",
    "slots_max": "slots max",
    "latency_mean": "latency mean",
    "latency_p50": "p50",
    "latency_p95": "p95",
    "actions": "actions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One auto-scaler: what was published, and what we measured over all seeds."""

    label: str
    query: str
    workload: str
    cell: str
    policy: str
    paper: Mapping[Figure, float] = field(default_factory=dict)
    misprints: Mapping[Figure, str] = field(default_factory=dict)
    ours: Mapping[Figure, Estimate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A table of the thesis, ours beside it; the last line of each scene is the oracle."""

    id: str
    title: str
    lines: tuple[Line, ...]
    seeds: int

    @property
    def notes(self) -> tuple[str, ...]:
        """What is wrong with the printed figures."""
        return tuple(
            f"* {line.label}: the printed {printed(line.paper[figure])} ({_HEADINGS[figure]}) is "
            f"a misprint: {why}."
            for line in self.lines
            for figure, why in line.misprints.items()
        )

    def compact(self) -> Table:
        """The main figures, within 80 columns."""
        rows = []
        for line in self.lines:
            own = line.ours
            rows.append(
                (
                    line.label,
                    _theirs(line, "slots_mean"),
                    interval(own.get("slots_mean")),
                    _theirs(line, "latency_mean"),
                    interval(own.get("latency_mean")),
                    _theirs(line, "latency_p95"),
                    _mean(line, "latency_p95"),
                    printed(line.paper.get("actions")),
                    _mean(line, "actions"),
                )
            )
        header = ("", "slots", "ours", "lat. s", "ours", "p95 s", "ours", "acts", "ours")
        return self._grid(f"Table {self.id}: {self.title}", header, rows)

    def full(self) -> Table:
        """Every published figure: the paper's / ours with its interval."""
        rows = [
            (
                line.label,
                *(f"{_theirs(line, f)} / {interval(line.ours.get(f))}" for f in FIGURES),
            )
            for line in self.lines
        ]
        header = ("paper / ours", *(_HEADINGS[f] for f in FIGURES))
        return self._grid(f"Table {self.id}: {self.title}", header, rows)

    def document(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            "id": self.id,
            "title": self.title,
            "seeds": self.seeds,
            "rows": [
                {
                    "label": line.label,
                    "query": line.query,
                    "workload": line.workload,
                    "policy": line.policy,
                    "cell": line.cell,
                    "paper": {f: line.paper.get(f) for f in FIGURES},
                    "misprints": dict(line.misprints),
                    "ours": {f: plain(line.ours.get(f)) for f in FIGURES},
                }
                for line in self.lines
            ],
        }

    def _grid(self, title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
        faint = frozenset(n for n, line in enumerate(self.lines) if line.policy == ORACLE)
        return Table(title=title, header=header, rows=tuple(rows), notes=self.notes, faint=faint)


def compare(id: str, results: Results) -> Compared:
    """A table of the thesis beside our runs of it."""
    table = published.TABLES[id]
    several = len({row.query for row in table.rows}) > 1
    lines: list[Line] = []
    for query, rows in groupby(table.rows, key=lambda row: row.query):
        lines += [line(table.label(row), row, results) for row in rows]
        label = f"{query.upper()} {ORACLE}" if several else ORACLE
        lines.append(oracle(label, lines[-1], results))
    return Compared(id=id, title=table.title, lines=tuple(lines), seeds=len(results.seeds))


def line(label: str, row: published.Row, results: Results) -> Line:
    """A published row beside our runs of it."""
    key = cells.of_row(row).key
    return Line(
        label=label,
        query=row.query,
        workload=row.workload,
        cell=key,
        policy=row.policy,
        paper=row.figures,
        misprints=row.misprints,
        ours=measured(key, results),
    )


def measured(key: str, results: Results) -> dict[Figure, Estimate]:
    """The published figures of one of our cells."""
    return {f: results.estimate(key, f) for f in FIGURES if results.measured(key, f)}


def oracle(label: str, beside: Line, results: Results) -> Line:
    """The fewest slots that cover the same load at every instant: a reference, not a scaler."""
    figures: tuple[tuple[Figure, str], ...] = (
        ("slots_mean", "oracle_slots_mean"),
        ("slots_max", "oracle_slots_max"),
    )
    return Line(
        label=label,
        query=beside.query,
        workload=beside.workload,
        cell=beside.cell,
        policy=ORACLE,
        ours={f: results.estimate(beside.cell, score) for f, score in figures},
    )


def plain(estimate: Estimate | None) -> dict[str, float | None] | None:
    """An estimate for ``--json``."""
    if estimate is None:
        return None
    return {"mean": estimate.mean, "half_width": estimate.half_width}


def _mean(line: Line, figure: Figure) -> str:
    return number(line.ours[figure].mean) if figure in line.ours else "–"


def _theirs(line: Line, figure: Figure) -> str:
    return printed(line.paper.get(figure)) + "*" * (figure in line.misprints)
