"""``docs/results/thesis.md``: the results to read, written by the command and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from penstock import __version__
from penstock.papers.thesis import accuracy, improved, mechanisms
from penstock.papers.thesis.reproduction import CALIBRATION, FIRST_SEED, FITTED, Reproduction
from penstock.report.grid import Grid

SHOWN = ("7.3", "7.7", "7.9", "7.10", "7.20")
"""The figures that the document shows."""


def text(found: Reproduction, *, pictures: str | None) -> str:
    """The document; ``pictures`` the folder of the figures, or beside it as ``thesis-…``."""
    return "\n\n".join(part.strip() for part in _parts(found, pictures)) + "\n"


def _parts(found: Reproduction, pictures: str | None) -> Iterator[str]:
    yield "# The thesis's evaluation, reproduced"
    yield _made(found)
    if found.findings:
        yield from _findings(found)
    if found.accuracy:
        yield "## How near"
        yield accuracy.grid(list(found.accuracy)).markdown()
        yield accuracy.mismatches(found.tables).markdown()
        yield mechanisms.DISTANCES
    if found.duels:
        yield "## What improved"
        yield improved_about()
        yield improved.summary(found.duels).markdown()
        for grid in improved.full(found.duels):
            yield grid.markdown()
    if found.drawings:
        yield "## Pictures"
        yield f"Seed {found.plan.numbers[0]}; the load is shaded. All of them are in the page."
        yield from _pictures(found, pictures)
    if found.tables or found.convergence:
        yield "## Tables"
        yield (
            "The paper's figure / ours with the half-width of its 95 % interval. Latencies in "
            "seconds. The oracle is the fewest slots that cover the load at every instant. – was "
            "not published; what the thesis could not run is run here."
        )
    for table in found.tables:
        yield table.full().markdown()
    if found.convergence:
        yield found.convergence.markdown()


def _made(found: Reproduction) -> str:
    plan = found.plan
    command = f"penstock reproduce thesis --seeds {plan.seeds}"
    if plan.first_seed != FIRST_SEED:
        command += f" --first-seed {plan.first_seed}"
    if plan.only:
        command += f" --only {','.join(plan.only)}"
    limited = "" if plan.minutes is None else f" At most {plan.minutes:g} minutes of each run."
    return (
        f"Written by `{command}` (Penstock {__version__}); do not edit.{limited}\n\n"
        f"Every cell ran with seeds {plan.numbers[0]} to {plan.numbers[-1]}; the thesis [kanis23] "
        f"ran each once. The queries were calibrated on seeds {CALIBRATION}, one calibration for "
        f"all auto-scalers. {FITTED}\n\n"
        "Guards, period, cool-down and start sizes are the thesis's, and its auto-scalers run "
        "with the faults of its set-up (`strict`). Figures are means over the "
        "seeds with 95 % intervals; comparisons are paired by seed, and a tie is an interval that "
        "holds 0."
    )


def _findings(found: Reproduction) -> Iterator[str]:
    held = sum(f.holds for f in found.findings)
    yield f"## Findings: {held} of {len(found.findings)} held or tied"
    rows = tuple((f.id, f.claim, f.paper, f.ours, f.verdict) for f in found.findings)
    header = ("", "claim", "paper", "ours", "verdict")
    grid = Grid(title="Claims and figures", header=header, rows=rows, words=5)
    yield grid.markdown()
    yield "### Why"
    yield "\n".join(f"- **({f.id}) {f.verdict}.** {f.why}" for f in found.findings)


def _pictures(found: Reproduction, folder: str | None) -> Iterator[str]:
    for drawing in found.drawings:
        if drawing.id in SHOWN:
            path = f"thesis-{drawing.file}" if folder is None else f"{folder}/{drawing.file}"
            yield f"![Figure {drawing.id}. {drawing.caption}]({path})"


def improved_about() -> str:
    """How the improved auto-scalers are judged."""
    return (
        "Each new auto-scaler against its original without the faults of the thesis's set-up, "
        "with the thesis's guards, on every query and workload. A cell is judged by mean queue "
        "latency and slot-seconds: *dominates* if neither is really worse (95 % interval of the "
        "paired difference) and at least one is really better, *dominated* the other way round, "
        "*trade-off* if one is better and the other worse."
    )


def extended_text(found: Reproduction) -> str:
    """The extended sections as a document of their own."""
    parts = [
        "# What the thesis leaves for the future",
        f"Written by `penstock reproduce thesis --extended` (Penstock {__version__}); do not "
        "edit. Thesis guards and repaired auto-scalers unless said otherwise. Late: the share of "
        "the time with more than 60 s of queue latency. Done: consumed / offered. Regret: "
        "slot-seconds beyond the oracle's.",
    ]
    for answer in found.answers:
        parts.append(f"## {answer.section.title}")
        parts.append(f"{answer.section.about} {answer.seeds} seeds.")
        parts += [grid.markdown() for grid in answer.grids]
    return "\n\n".join(part.strip() for part in parts) + "\n"
