"""``docs/results/decentralized.md`` and the page: written by the command and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.bench.decentralized.experiment import DEVIATION
from penstock.bench.decentralized.figures import CAPTIONS
from penstock.bench.grid import Grid
from penstock.bench.reproduction_text import markdown, means
from penstock.bench.reproduction_text import page as html_page
from penstock.bench.thesis.judging import Finding

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
    command = f"penstock reproduce decentralized --seeds {seeds}"
    if first_seed:
        command += f" --first-seed {first_seed}"
    return markdown(
        title=TITLE,
        command=command,
        about=f"{means(seeds)}. {ABOUT}",
        findings=findings,
        tables=tables,
        pictures={f"{pictures}{name}": caption for name, caption in CAPTIONS.items()},
        first_seed=first_seed,
    )


def page(
    findings: Sequence[Finding], tables: Sequence[Grid], pictures: Sequence[Path], seeds: int
) -> str:
    """One HTML file with everything in it."""
    return html_page(
        title=TITLE,
        name="decentralized",
        about=ABOUT,
        findings=findings,
        tables=tables,
        pictures=pictures,
        captions=CAPTIONS,
        seeds=seeds,
    )
