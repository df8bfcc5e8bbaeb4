"""``docs/results/decentralized.md`` and the page: written by the command and by nothing else."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from penstock import __version__
from penstock.bench.decentralized.experiment import DEVIATION
from penstock.bench.decentralized.figures import CAPTIONS
from penstock.bench.grid import Grid
from penstock.bench.thesis.judging import Finding
from penstock.bench.thesis.page import CSS, finding_html

TITLE = "The decentralized protocol's evaluation, reproduced"
ABOUT = (
    "Five operators in a row, seven instances each at first, capacity 500, target ratio 0.7, a "
    "trial every 5 steps, 200 steps, every message sent and received. The paper calls the load of "
    f"each operator Brownian and says no more: here it moves by a normal {DEVIATION:g} records a "
    "step (half an instance's capacity), from what seven instances are for, reflected at the work "
    "of one; fixed before any run. The pseudo-code is repaired where it must be, see the page of "
    "the policy."
)


def text(
    findings: Sequence[Finding],
    tables: Sequence[Grid],
    *,
    seeds: int,
    first_seed: int,
    pictures: str,
) -> str:
    """Markdown; ``pictures`` stands before the names of the pictures."""
    command = f"python -m penstock.bench.decentralized --seeds {seeds}"
    if first_seed:
        command += f" --first-seed {first_seed}"
    means = "One seed" if seeds == 1 else f"Means over {seeds} seeds with 95 % intervals"
    parts = [
        f"# {TITLE}",
        f"Written by `{command}` (Penstock {__version__}); do not edit. {means}. {ABOUT}",
        "## Findings",
        *(_finding(finding) for finding in findings),
        "## Tables",
        *(table.markdown().strip() for table in tables),
        "## Pictures",
        f"Seed {first_seed}.",
        *(f"![{caption}]({pictures}{name})\n\n{caption}" for name, caption in CAPTIONS.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _finding(finding: Finding) -> str:
    return (
        f"**({finding.id}) {finding.verdict}**: {finding.claim}.  \n"
        f"Paper: {finding.paper}. Ours: {finding.ours}. {finding.why}".rstrip()
    )


def page(
    findings: Sequence[Finding], tables: Sequence[Grid], pictures: Sequence[Path], seeds: int
) -> str:
    """One HTML file with everything in it, no script, no network."""
    parts = [
        f"<h1>{escape(TITLE)}</h1>",
        f"<p>{seeds} seeds, means with 95 % intervals.</p><p>{escape(ABOUT)}</p><h2>Findings</h2>",
        *map(finding_html, findings),
        "<h2>Tables</h2>",
        *(table.html() for table in tables),
        "<h2>Figures</h2>",
    ]
    for picture in pictures:
        data = base64.b64encode(picture.read_bytes()).decode()
        caption = escape(CAPTIONS[picture.name])
        parts.append(f'<h3>{caption}</h3><img alt="{caption}" src="data:image/png;base64,{data}">')
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(TITLE)}</title><style>{CSS}</style></head><body>{body}</body></html>\n"
    )
