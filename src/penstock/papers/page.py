"""The page of a reproduction: one HTML file with everything in it, no script, no network."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

from penstock import __version__
from penstock.papers.judging import Finding
from penstock.papers.thesis import accuracy, improved
from penstock.papers.thesis.reproduction import CALIBRATION, FITTED, Reproduction

CSS = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2933;max-width:1080px;margin:2em auto;
padding:0 1em}h1{font-size:1.7em}h2{margin-top:2.2em;border-bottom:1px solid #cbd2d9}
h3{margin:1.6em 0 .4em}table{border-collapse:collapse;font-size:13px}
th,td{padding:3px 9px;text-align:left;border-bottom:1px solid #e4e7eb}
th{background:#f5f7fa}.num{text-align:right;white-space:nowrap}.faint{color:#7b8794}
.scroll{overflow-x:auto}.note,.why{color:#52606d;font-size:13px}
.finding{border-left:5px solid #009e73;padding:.2em 1em;margin:1em 0;background:#f8fafb}
.tie{border-color:#e69f00}.not{border-color:#d55e00}
.finding b{margin-right:.6em}img{max-width:100%;margin:.5em 0}
"""


def render(found: Reproduction, pictures: Path) -> str:
    """The page as text."""
    plan = found.plan
    seeds = f"seeds {plan.numbers[0]} to {plan.numbers[-1]}"
    parts = [
        "<h1>The thesis's evaluation, reproduced</h1>",
        f"<p>{plan.seeds} runs of every cell ({seeds}; the queries were calibrated on seeds "
        f"{CALIBRATION}), means with 95 % intervals. In tables: the paper's figure / ours.</p>",
        f"<p>{escape(FITTED)}</p>",
    ]
    if found.findings:
        held = sum(f.holds for f in found.findings)
        parts.append(f"<h2>Findings: {held} of {len(found.findings)} held or tied</h2>")
        parts += map(finding_html, found.findings)
    if found.accuracy:
        parts.append(accuracy.grid(list(found.accuracy)).html())
        parts.append(accuracy.mismatches(found.tables).html())
    if found.duels:
        parts += [f"<h2>{escape(improved.TITLE)}</h2>", improved.summary(found.duels).html()]
        parts += [grid.html() for grid in improved.full(found.duels)]
    if found.tables or found.convergence:
        parts.append("<h2>Tables</h2>")
        parts += [table.full().html() for table in found.tables]
    if found.convergence:
        parts.append(found.convergence.html())
    if found.drawings:
        parts.append(f"<h2>Figures</h2><p>Seed {plan.numbers[0]}; the load is shaded.</p>")
    for drawing in found.drawings:
        data = base64.b64encode((pictures / drawing.file).read_bytes()).decode()
        caption = escape(f"Figure {drawing.id}. {drawing.caption}")
        parts.append(f'<h3>{caption}</h3><img alt="{caption}" src="data:image/png;base64,{data}">')
    for answer in found.answers:
        parts.append(f"<h2>{escape(answer.section.title)}</h2>")
        parts.append(f"<p>{escape(answer.section.about)} {answer.seeds} seeds.</p>")
        parts += [grid.html() for grid in answer.grids]
    parts.append(f'<p class="note">{escape(found.folder.name)} · Penstock {__version__}</p>')
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>penstock reproduce thesis</title><style>{CSS}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def finding_html(finding: Finding) -> str:
    """A claim, the paper's figures, ours, and the verdict."""
    kind = {"held": "held", "tie": "tie", "not held": "not"}[finding.verdict]
    return (
        f'<div class="finding {kind}"><p><b>({finding.id}) {finding.verdict}</b>'
        f"{escape(finding.claim)}.</p><p>Paper: {escape(finding.paper)}.<br>"
        f"Ours: {escape(finding.ours)}.</p>"
        f'<p class="why">{escape(finding.why)}</p></div>'
    )
