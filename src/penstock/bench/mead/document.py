"""``docs/results/mead.md`` and the page: written by the command and by nothing else."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from penstock import __version__
from penstock.bench.grid import Grid
from penstock.bench.mead.traces import LM, SYNT
from penstock.bench.thesis.judging import Finding
from penstock.bench.thesis.page import CSS, finding_html

CAPTIONS = {
    "figure-2.png": "Figure 2. Arrival rates: an uncorrelated trace and a bursty one",
    "figure-3.png": "Figure 3. Models of the matcher and what it does, by utilisation",
    "figure-6.png": "Figure 6. Arrival rates of SYNT and BC",
    "figure-7.png": "Figure 7. Autocorrelation of the inter-arrival times",
    "figure-8.png": "Figure 8. Response time and CPU with targets of the mean",
    "figure-9.png": "Figure 9. Response time and CPU of the threshold policy",
    "figure-10.png": "Figure 10. Distribution of response times with targets of the p95",
}
SHOWN = ("figure-3.png", "figure-7.png", "figure-8.png", "figure-10.png")
ABOUT = (
    "The log-analysis application in the tuple simulator: parser → counter, parser → matcher, "
    "Erlang-2 services. The paper does not publish its service demands; here they are 0.15, 0.10 "
    "and 0.50 of the mean time between arrivals, for all traces and models. BC is the recorded "
    f"trace. SYNT is drawn from processes with the SCV and correlation time {SYNT}, five minutes "
    "each, twice. The Live Maps trace is not available: LM is drawn from a composition of the "
    f"blocks (r2, fast mean, correlation time) {LM}. Both were fixed without a policy. CPU is the "
    "mean over the three operators, response times are of the path to the matcher."
)


def _means(seeds: int) -> str:
    return "One seed" if seeds == 1 else f"Means over {seeds} seeds with 95 % intervals"


def text(
    findings: Sequence[Finding],
    tables: Sequence[Grid],
    *,
    seeds: int,
    first_seed: int,
    extended: bool = False,
    pictures: str,
) -> str:
    """Markdown; ``pictures`` stands before the names of the pictures."""
    command = f"penstock reproduce mead --seeds {seeds}"
    if first_seed:
        command += f" --first-seed {first_seed}"
    if extended:
        command += " --extended"
    parts = [
        "# The MEAD paper's evaluation, reproduced",
        f"Written by `{command}` (Penstock {__version__}); do not edit. {_means(seeds)}. {ABOUT}",
        "## Findings",
        *(_finding(finding) for finding in findings),
        "## Tables",
        *(table.markdown().strip() for table in tables),
        "## Pictures",
        f"Seed {first_seed}.",
        *(f"![{CAPTIONS[name]}]({pictures}{name})\n\n{CAPTIONS[name]}" for name in SHOWN),
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
        "<h1>The MEAD paper's evaluation, reproduced</h1>",
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
        f"<title>penstock reproduce mead</title><style>{CSS}</style></head>"
        f"<body>{body}</body></html>\n"
    )
