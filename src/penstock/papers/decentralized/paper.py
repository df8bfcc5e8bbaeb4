"""The decentralized protocol's paper as one to reproduce.

It takes a minute, so nothing is kept for going on with it: ``--resume`` begins again.
"""

from __future__ import annotations

from pathlib import Path

from penstock.papers.decentralized import evidence, figures, findings, tables
from penstock.papers.decentralized.evidence import Evidence
from penstock.papers.decentralized.experiment import DEVIATION, OTHERS
from penstock.papers.harness import Asked, Paper, Report
from penstock.papers.running import RunFolder

ABOUT = (
    "Five operators in a row, seven instances each at first, capacity 500, target ratio 0.7, a "
    "trial every 5 steps, 200 steps, every message sent and received. The paper calls the load of "
    f"each operator Brownian and says no more: here it moves by a normal {DEVIATION:g} records a "
    "step (half an instance's capacity), from what seven instances are for, reflected at the work "
    "of one; fixed before any run. The pseudo-code is repaired where it must be, see the page of "
    "the policy."
)


def measure(asked: Asked, folder: RunFolder) -> Evidence:
    """Run everything in this process."""
    return evidence.gather(
        asked.numbers, progress=lambda finished, total: folder.progress("runs", finished, total)
    )


def report(found: Evidence, asked: Asked, folder: Path) -> Report:
    """Findings, tables and pictures."""
    return Report(
        findings=findings.judge(found),
        tables=tables.all_tables(found),
        pictures=figures.draw_all(found, folder),
    )


PAPER = Paper(
    name="decentralized",
    title="The decentralized protocol's evaluation, reproduced",
    about=ABOUT,
    seeds=100,
    captions=figures.CAPTIONS,
    amount=lambda asked: f"{1 + len(OTHERS)} cells × {asked.seeds} seeds",
    measure=measure,
    report=report,
)
