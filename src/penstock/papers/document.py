"""A reproduction to read: Markdown for the documents, HTML for a page with everything in it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from penstock import __version__
from penstock.papers.judging import Finding
from penstock.report.table import Table

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


def means(seeds: int) -> str:
    """Say what the figures of so many seeds are."""
    return "One seed" if seeds == 1 else f"Means over {seeds} seeds with 95 % intervals"


def markdown(
    *,
    title: str,
    command: str,
    about: str,
    findings: Sequence[Finding],
    tables: Sequence[Table],
    pictures: Mapping[str, str],
    first_seed: int | None,
) -> str:
    """A document; ``pictures`` captions by path, of the ``first_seed`` or of all runs."""
    parts = [
        f"# {title}",
        f"Written by `{command}` (Penstock {__version__}); do not edit. {about}",
        "## Findings",
        *map(_finding, findings),
        "## Tables",
        *(table.markdown().strip() for table in tables),
        "## Pictures",
        "All runs." if first_seed is None else f"Seed {first_seed}.",
        *(f"![{caption}]({path})\n\n{caption}" for path, caption in pictures.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _finding(finding: Finding) -> str:
    return (
        f"**({finding.id}) {finding.verdict}**: {finding.claim}.  \n"
        f"Paper: {finding.paper}. Ours: {finding.ours}. {finding.why}".rstrip()
    )


def html(name: str, parts: Iterable[str]) -> str:
    """One page with everything in it: no script, no network."""
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>penstock reproduce {name}</title><style>{CSS}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def heading(level: int, text: str) -> str:
    """A heading of a page."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    """A paragraph of a page."""
    return f"<p>{escape(text)}</p>"


def finding_html(finding: Finding) -> str:
    """A claim, the paper's figures, ours, and the verdict."""
    kind = {"held": "held", "tie": "tie", "not held": "not"}[finding.verdict]
    return (
        f'<div class="finding {kind}"><p><b>({finding.id}) {finding.verdict}</b>'
        f"{escape(finding.claim)}.</p><p>Paper: {escape(finding.paper)}.<br>"
        f"Ours: {escape(finding.ours)}.</p>"
        f'<p class="why">{escape(finding.why)}</p></div>'
    )


def picture_html(path: Path, caption: str) -> str:
    """A picture inside a page, below its caption."""
    data = base64.b64encode(path.read_bytes()).decode()
    text = escape(caption)
    return f'<h3>{text}</h3><img alt="{text}" src="data:image/png;base64,{data}">'
