"""``docs/results/gesscale.md`` and the page: written by the command and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.bench.gesscale.paper import NAMES
from penstock.bench.gesscale.setups import LEAST, NODES, WARM_UP
from penstock.bench.grid import Grid
from penstock.bench.reproduction_text import markdown, means
from penstock.bench.reproduction_text import page as html_page
from penstock.bench.thesis.judging import Finding

TITLE = "The Gesscale paper's evaluation, reproduced"
CAPTIONS = {
    "figure-3.png": "Figure 3. Throughput around a reconfiguration",
    "figure-6.png": "Figure 6. The ideal auto-scaler",
    **{
        f"figure-7{letter}.png": f"Figure 7{letter}. {name}: load and throughput, replicas, and "
        "how many too many"
        for letter, name in zip("abcd", NAMES.values(), strict=True)
    },
}
SHOWN = ("figure-3.png", "figure-6.png", "figure-7a.png", "figure-7d.png")
ABOUT = (
    f"The taxi operator in the geo simulator, on {NODES} nodes whose round trips are drawn between "
    "0 and 300 ms for each seed. The load is New York's taxi drop-offs of 1 and 2 May 2013, three "
    "records per trip, ten times as fast; the paper used the pick-ups of the same days, so single "
    "figures differ. A change stops the job for 120 s. The policies look once a minute, with "
    "no other guard, as the paper's text has it. Its public code does not look for "
    f"{WARM_UP:.0f} s after a restart and keeps at least {LEAST} replicas: that is the set-up "
    "*code* in the table of other set-ups. The speed of a node was calibrated to what "
    "Table III tells of the ideal auto-scaler, on other seeds (docs/geo-simulator.md); what "
    "distance and waiting cost is our choice, and other choices are in the table of other set-ups. "
    "While a job is stopped it has no replica."
)


def text(
    findings: Sequence[Finding],
    tables: Sequence[Grid],
    *,
    seeds: int,
    first_seed: int,
    usual_seed: int,
    extended: bool = False,
    pictures: str,
) -> str:
    """Markdown; ``pictures`` stands before the names of the pictures."""
    command = f"penstock reproduce gesscale --seeds {seeds}"
    if first_seed != usual_seed:
        command += f" --first-seed {first_seed}"
    if extended:
        command += " --extended"
    return markdown(
        title=TITLE,
        command=command,
        about=f"{means(seeds)}, from seed {first_seed} on. {ABOUT}",
        findings=findings,
        tables=tables,
        pictures={f"{pictures}{name}": CAPTIONS[name] for name in SHOWN},
        first_seed=first_seed,
    )


def page(
    findings: Sequence[Finding], tables: Sequence[Grid], pictures: Sequence[Path], seeds: int
) -> str:
    """One HTML file with everything in it."""
    return html_page(
        title=TITLE,
        name="gesscale",
        about=ABOUT,
        findings=findings,
        tables=tables,
        pictures=pictures,
        captions=CAPTIONS,
        seeds=seeds,
    )
