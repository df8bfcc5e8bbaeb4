"""The page of a bench: one HTML file with the picture, every score, and the runs over time."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from penstock.report import units
from penstock.report.bench_tables import (
    COMPARED,
    FRONT,
    MARK,
    NAMES,
    Group,
    figure_text,
    versus_text,
)
from penstock.report.page import charts_page
from penstock.report.statistics import Estimate
from penstock.report.table import Styled, Table

# What is shown of every run: score, name, unit, factor.
SCORES: Sequence[tuple[str, str, str, float]] = (
    ("slots_mean", "slots, mean", "", 1.0),
    ("slots_max", "slots, most", "", 1.0),
    ("slot_seconds", "slot-hours", "h", 1 / 3600),
    ("total_cost", "cost, slots and lateness together", "", 1.0),
    ("regret", "more slot-seconds than the oracle", "%", 100.0),
    ("latency_mean", "queue latency, mean", "s", 1.0),
    ("latency_p50", "queue latency, p50", "s", 1.0),
    ("latency_p95", "queue latency, p95", "s", 1.0),
    ("latency_p99", "queue latency, p99", "s", 1.0),
    ("latency_max", "queue latency, most", "s", 1.0),
    ("e2e_mean", "end-to-end latency, mean", "s", 1.0),
    ("e2e_p95", "end-to-end latency, p95", "s", 1.0),
    ("latency_mean_real", "queue latency on the clock, mean", "s", 1.0),
    ("latency_p95_real", "queue latency on the clock, p95", "s", 1.0),
    ("e2e_mean_real", "end-to-end latency on the clock, mean", "s", 1.0),
    ("e2e_p95_real", "end-to-end latency on the clock, p95", "s", 1.0),
    ("slo_seconds", "beyond the latency objective", "s", 1.0),
    ("throughput", "consumed of what was offered", "%", 100.0),
    ("expired", "records expired", "M", 1e-6),
    ("cpu_mean", "CPU, mean", "%", 100.0),
    ("actions", "scaling actions", "", 1.0),
    ("downtime", "downtime", "s", 1.0),
    ("accuracy_o", "accuracy O: slots too many", "", 1.0),
    ("accuracy_u", "accuracy U: slots too few", "", 1.0),
    ("timeshare_o", "timeshare O", "%", 100.0),
    ("timeshare_u", "timeshare U", "%", 100.0),
    ("excess_time", "excess time", "%", 100.0),
    ("forecast_error", "forecast error", "%", 100.0),
    ("peak_rate", "highest load on the clock, records/s", "", 1.0),
    ("missing", "rows missing in the result", "", 1.0),
    ("surplus", "rows too many in the result", "", 1.0),
    *(
        (f"stage{k}_{what}", f"stage {k}: {words}", unit, factor)
        for k in (1, 2)
        for what, words, unit, factor in (
            ("minutes", "minutes to the last action", "min", 1.0),
            ("actions", "actions", "", 1.0),
            ("converged", "converged", "%", 100.0),
        )
    ),
)

_STYLE = """.pareto { width: 100%; height: auto; background: #fff; border-radius: 6px; }
td.front { font-weight: 600; }"""
_SECTIONS = """<section><h2>Latency against slots</h2><img class="pareto" alt="mean queue latency \
against slot-seconds, by policy" src="data:image/png;base64,{picture}"></section>
{groups}
<section><h2>Configuration</h2><details><summary>What was run</summary>\
<pre>{config}</pre></details></section>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The first seed of a group over time: minutes, the oracle's slots, and each policy's."""

    time: Sequence[float]
    oracle: Sequence[float]
    slots: Mapping[str, Sequence[float]] = field(default_factory=dict)
    latency: Mapping[str, Sequence[float]] = field(default_factory=dict)


def write(
    path: Path,
    groups: Sequence[Group],
    lines: Sequence[Lines | None],
    *,
    title: str,
    subtitle: str,
    picture: Path,
    config: Mapping[str, Any],
) -> Path:
    """Write the page; everything that a user wrote is escaped."""
    sections = _SECTIONS.format(
        picture=base64.b64encode(picture.read_bytes()).decode("ascii"),
        groups="".join(_section(n, g, lines[n]) for n, g in enumerate(groups)),
        config=escape(json.dumps(config, indent=2, ensure_ascii=False)),
    )
    data = [_data(g, lines[n]) for n, g in enumerate(groups)]
    return charts_page(
        path, title=title, subtitle=subtitle, sections=sections, style=_STYLE, data=data
    )


def _section(number: int, group: Group, lines: Lines | None) -> str:
    charts = ""
    if lines is not None:
        charts = (
            "<h2>Slots <small>the first seed</small></h2>"
            f'<div class="chart" id="slots-{number}"></div>'
            "<h2>Queue latency <small>seconds, the first seed</small></h2>"
            f'<div class="chart" id="latency-{number}"></div>'
        )
    return (
        f"<section><h2>{escape(group.title)} <small>{escape(group.note)}</small></h2>"
        f'{_scores(group).html_table()}<p class="hint">{escape(FRONT)}</p>{_against(group)}'
        f"{charts}</section>"
    )


def _scores(group: Group) -> Table:
    """Every score that was measured; policies as columns."""
    labels = [f"{row.label} {MARK}" if row.front else row.label for row in group.rows]
    late = ("oracle, late",) if group.late_oracle else ()
    return Table(header=("Score", *labels, "oracle", *late), rows=tuple(_rows(group)))


def _rows(group: Group) -> Iterable[tuple[str, ...]]:
    for score, name, unit, factor in SCORES:
        figures = [row.figures.get(score) for row in group.rows]
        if all(figure is None for figure in figures):
            continue
        figures.append(group.oracle.get(score))
        if group.late_oracle:
            figures.append(group.late_oracle.get(score))
        texts = (_text(figure, factor) for figure in figures)
        yield (Styled((f"{name} ", ""), (unit, "dim")) if unit else name, *texts)


def _text(figure: Estimate | None, factor: float) -> str:
    if figure is None:
        return units.UNKNOWN
    half = None if figure.half_width is None else figure.half_width * factor
    return figure_text(figure.mean * factor, half)


def _against(group: Group) -> str:
    if not group.against:
        return ""
    table = Table(
        header=("Policy", *(NAMES[score] for score in COMPARED)),
        rows=tuple(
            (row.label, *(versus_text(row.differences.get(score)) for score in COMPARED))
            for row in group.against
        ),
    )
    return (
        f"<details><summary>Differences from {escape(group.base)}, paired by seed; a tie where "
        f"the 95 % interval holds 0</summary>{table.html_table()}</details>"
    )


def _data(group: Group, lines: Lines | None) -> dict[str, Any]:
    if lines is None:
        return {"title": group.title, "time": [], "oracle": [], "policies": []}
    return {
        "title": group.title,
        "time": _short(lines.time),
        "oracle": _short(lines.oracle),
        "policies": [
            {"label": label, "slots": _short(slots), "latency": _short(lines.latency[label])}
            for label, slots in lines.slots.items()
        ],
    }


def _short(values: Sequence[float]) -> list[float]:
    return [round(float(value), 2) for value in values]
