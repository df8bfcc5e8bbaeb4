"""The page of a run: one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.core.codec import to_json
from penstock.core.model import Rescale
from penstock.history.files import write_text
from penstock.report import units
from penstock.report.runs import PAGE, Run
from penstock.report.series import Tick, guards_of, pools_of, sizes, ticks_of, view_top
from penstock.report.summary import Summary, slots_limit, summarize
from penstock.report.titles import subtitle, title


def write(run: Run, path: Path | None = None) -> Path:
    """Write the page of a run as ``report.html`` in its folder, or to another path."""
    path = path or run.folder / PAGE
    write_text(path, render(run))
    return path


def render(run: Run) -> str:
    """The page as text. Everything that a user or a policy wrote is escaped."""
    ticks = ticks_of(run.entries)
    summary = summarize(run.header, run.entries)
    config = {**run.config, "decided_by": to_json(run.header)}
    parts = {
        "TITLE": escape(title(run)),
        "SUBTITLE": escape(subtitle(run)),
        "CARDS": "".join(_cards(summary)),
        "RESCALES": _rescales(summary.rescales, run),
        "CONFIG": escape(json.dumps(config, indent=2, ensure_ascii=False)),
        "FOOTER": escape(f"{run.folder.resolve().name} · Penstock {__version__}"),
        "DATA": script_json(_data(ticks, run)),
        "UPLOT_JS": asset("vendor", "uPlot.iife.min.js"),
        "UPLOT_CSS": asset("vendor", "uPlot.min.css"),
        "JS": asset("assets", "page.js"),
        "CSS": asset("assets", "page.css"),
    }
    # One pass, so that nothing inserted is taken for a placeholder.
    return re.sub(r"<!--([A-Z_]+)-->", lambda m: parts[m[1]], asset("assets", "page.html"))


def asset(folder: str, name: str) -> str:
    """The text of a file that comes along: a script or a style sheet."""
    return (files("penstock.report") / folder / name).read_text(encoding="utf-8")


_CHARTS = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>{title} – Penstock</title>
<style>{uplot_css}</style>
<style>{css}
{style}</style>
</head>
<body>
<main>
<header><h1>{title}</h1><p class="sub">{subtitle}</p></header>
{sections}
<footer>{footer}</footer>
</main>
<script type="application/json" id="data">{data}</script>
<script>{uplot_js}</script>
<script>{js}</script>
</body>
</html>
"""


def charts_page(
    path: Path, *, title: str, subtitle: str, sections: str, style: str, data: Any
) -> Path:
    """Write a page of several policies with their charts; ``sections`` and ``style`` are HTML."""
    text = _CHARTS.format(
        title=escape(title),
        subtitle=escape(subtitle),
        sections=sections,
        style=style,
        footer=escape(f"{path.parent.resolve().name} · Penstock {__version__}"),
        data=script_json(data),
        uplot_css=asset("vendor", "uPlot.min.css"),
        uplot_js=asset("vendor", "uPlot.iife.min.js"),
        css=asset("assets", "page.css"),
        js=asset("assets", "bench.js"),
    )
    write_text(path, text)
    return path


def script_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _cards(s: Summary) -> Iterable[str]:
    lag, latency = s.lag_seconds, s.latency
    yield _card(
        "Kept up",
        units.share(s.kept_up),
        f"of {units.seconds(s.duration)}; {units.count(s.processed)} records processed, "
        f"{units.count(s.offered)} offered",
    )
    yield _card(
        "Lag, p95",
        units.seconds(lag.p95 if lag else None),
        f"mean {units.seconds(lag.mean)}, most {units.seconds(lag.maximum)}" if lag else "",
    )
    yield _card(
        "Latency, p95",
        units.seconds(latency.p95 if latency else None),
        f"mean {units.seconds(latency.mean)}, most {units.seconds(latency.maximum)}"
        if latency
        else "not measured",
    )
    yield _card("Slots, mean", f"{s.slots_mean:.1f}", f"{s.slots_min} to {s.slots_max}")
    if s.mode == "advise":
        advised = units.UNKNOWN if s.advised_slots is None else f"{s.advised_slots:.1f}"
        yield _card("Slots advised, mean", advised, f"{s.advices} advices, none applied")
        return
    yield _card(
        "Saved",
        units.share(s.peak_saving_share),
        f"{s.peak_saving / 3600:.1f} slot-hours against {s.slots_max} slots all the time",
    )
    yield _card(
        "Actions",
        str(s.actions),
        f"{s.scale_ups} ▲ and {s.scale_downs} ▼ of single pools",
    )


def _card(name: str, figure: str, note: str) -> str:
    return (
        f'<div class="card"><span class="name">{escape(name)}</span>'
        f"<b>{escape(figure)}</b><span>{escape(note)}</span></div>"
    )


def _rescales(rescales: Sequence[Rescale], run: Run) -> str:
    """What the actions cost, where that was measured; pools that changed together share a row."""
    costs = ("registered", "first_task", "steady", "downtime")
    start = _start(run)
    by_cost: dict[tuple[Any, ...], list[str]] = {}
    for r in rescales:
        key = (r.time, *(getattr(r, c) for c in costs))
        by_cost.setdefault(key, []).append(f"{r.pool} {r.before}→{r.after}")
    if not by_cost:
        return ""
    rows = "".join(
        f'<tr><td class="time">{units.clock(max(0.0, time - start))}</td>'
        f"<td>{escape(', '.join(pools))}</td>"
        + "".join(f'<td class="num">{units.seconds(v)}</td>' for v in values)
        + "</tr>"
        for (time, *values), pools in by_cost.items()
    )
    names = ("Slots there", "First task", "Steady", "Downtime")
    head = "".join(f'<th class="num">{n}</th>' for n in names)
    return (
        "<section><h2>What the actions cost</h2><details><summary>Seconds from asking until the "
        "slots were there, did their first task, and throughput was back</summary>"
        '<div class="scroll"><table><thead><tr><th>Time</th><th>Slots</th>'
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div></details></section>"
    )


def _start(run: Run) -> float:
    first = run.entries[0].decision.seen
    return first.time - first.window


def _data(ticks: Sequence[Tick], run: Run) -> dict[str, Any]:
    pools = pools_of(ticks)
    guards = run.header.guards
    limit = slots_limit(guards, len(pools))
    columns: dict[str, Callable[[Tick], float | None]] = {
        "time": lambda t: t.time,
        "offered": lambda t: t.offered,
        "processed": lambda t: t.processed,
        "lag": lambda t: t.lag_seconds,
        "latency": lambda t: t.latency,
        "total": lambda t: t.total,
        "target": lambda t: t.target_total,
        "raw": lambda t: t.raw_total,
    }
    return {
        **{name: [_short(of(t)) for t in ticks] for name, of in columns.items()},
        "pools": _stacked(ticks, pools),
        "limits": [guards.minimum * len(pools), limit],
        "top": view_top(ticks, limit),
        "marks": [
            [_short(t.time), t.growth, max(t.total, t.total + t.growth), t.decision.applied]
            for t in ticks
            if t.news and t.growth
        ],
        "decisions": [_row(t) for t in ticks],
    }


def _stacked(ticks: Sequence[Tick], pools: Sequence[str]) -> list[dict[str, Any]]:
    stacked, top = [], [0] * len(ticks)
    for pool in pools:
        own = [t.slots.get(pool, 0) for t in ticks]
        top = [a + b for a, b in zip(top, own, strict=True)]
        stacked.append({"name": pool, "own": own, "top": top})
    return stacked


def _row(t: Tick) -> list[Any]:
    d = t.decision
    raw = ", ".join(f"{c.raw:.2f}" for c in t.targets.values())
    effects = "; ".join([*guards_of(d), *d.notes])
    return [sizes(t), d.proposal.reason, raw, effects, int(t.news)]


def _short(value: float | None) -> float | None:
    """Six digits are more than a chart shows and keep the page small."""
    if value is None or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.6g}")
