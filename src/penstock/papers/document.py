"""A reproduction to read: Markdown for the documents, and a page with everything in it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from penstock import __version__
from penstock.papers.judging import Finding
from penstock.papers.page import CSS, finding_html
from penstock.report.grid import Grid


def means(seeds: int) -> str:
    """What the figures are."""
    return "One seed" if seeds == 1 else f"Means over {seeds} seeds with 95 % intervals"


def markdown(
    *,
    title: str,
    command: str,
    about: str,
    findings: Sequence[Finding],
    tables: Sequence[Grid],
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


def page(
    *,
    title: str,
    name: str,
    about: str,
    findings: Sequence[Finding],
    tables: Sequence[Grid],
    pictures: Sequence[Path],
    captions: Mapping[str, str],
    seeds: int,
) -> str:
    """One HTML file with everything in it, no script, no network."""
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{seeds} seeds, means with 95 % intervals.</p><p>{escape(about)}</p><h2>Findings</h2>",
        *map(finding_html, findings),
        "<h2>Tables</h2>",
        *(table.html() for table in tables),
        "<h2>Figures</h2>",
    ]
    for picture in pictures:
        data = base64.b64encode(picture.read_bytes()).decode()
        caption = escape(captions[picture.name])
        parts.append(f'<h3>{caption}</h3><img alt="{caption}" src="data:image/png;base64,{data}">')
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>penstock reproduce {name}</title><style>{CSS}</style></head>"
        f"<body>{body}</body></html>\n"
    )
