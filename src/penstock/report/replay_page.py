"""The page of a replay: one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from penstock.report.page import charts_page
from penstock.report.replay_tables import ReplayView, policies_table

_STYLE = "pre.copy { user-select: all; overflow-x: auto; }"
_SECTIONS = """\
<section><h2>Advice</h2><p><b>{label}</b>: {why}</p><p class="hint">How sure: {sure}</p>
<pre class="copy">{settings}</pre><pre class="copy">{command}</pre>
<ol>{first}</ol></section>
<section><h2>What ran, and what would have</h2>{table}<p class="hint">{cost}</p></section>
<section><h2>Offered <small>records/s</small></h2><div class="chart" id="offered-0"></div>
<h2>Executors</h2><div class="chart" id="slots-0"></div>
<h2>The oldest record waits <small>seconds; allowed: {slo:g}</small></h2>\
<div class="chart" id="latency-0"></div></section>
<section><h2>Can it be trusted?</h2><p class="hint">Played beside recorded</p><ul>{agreement}</ul>
{notes}</section>
<section><h2>What was read</h2><ul>{remarks}</ul>
<details><summary>Everything that was run</summary><pre>{config}</pre></details></section>"""


def write(path: Path, view: ReplayView, *, config: Mapping[str, Any]) -> Path:
    """Write the page; everything that a user wrote is escaped."""
    advice = view.advice
    notes = ""
    if view.notes:
        notes = f'<p class="hint">Not learnt from this recording</p><ul>{_items(view.notes)}</ul>'
    sections = _SECTIONS.format(
        label=escape(advice.label),
        why=escape(advice.why),
        sure=escape(advice.sure),
        settings=escape(advice.settings),
        command=escape(advice.command),
        first=_items(advice.first),
        table=policies_table(view).html_table(),
        cost=escape(view.group.note),
        slo=view.slo,
        agreement=_items(view.agreement),
        notes=notes,
        remarks=_items(view.remarks),
        config=escape(json.dumps(config, indent=2, ensure_ascii=False)),
    )
    return charts_page(
        path, title=view.title, subtitle=view.group.title, sections=sections, style=_STYLE,
        data=[_data(view)],
    )  # fmt: skip


def _items(lines: Iterable[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _data(view: ReplayView) -> dict[str, Any]:
    over = view.over_time
    recorded = {
        "label": "recorded",
        "slots": _short(over.recorded),
        "latency": _short(over.recorded_behind),
    }
    return {
        "title": view.title,
        "unit": over.unit,
        "time": _short(over.time),
        "offered": _short(over.offered),
        "oracle": _short(over.oracle),
        "policies": [
            recorded,
            *(
                {"label": label, "slots": _short(slots), "latency": _short(over.behind[label])}
                for label, slots in over.slots.items()
            ),
        ],
    }


def _short(values: Sequence[float]) -> list[float]:
    return [round(float(value), 2) for value in values]
