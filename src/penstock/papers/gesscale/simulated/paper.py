"""The Gesscale paper as one to reproduce in the simulator."""

from __future__ import annotations

from pathlib import Path

from penstock.papers.document import means
from penstock.papers.gesscale.simulated import figures, findings, setups, tables
from penstock.papers.gesscale.simulated.experiment import GesscaleOutcome, GesscaleOutcomes, run
from penstock.papers.gesscale.simulated.published import NAMES
from penstock.papers.gesscale.simulated.setups import LEAST, MAIN, NODES, WARM_UP
from penstock.papers.harness import Asked, Paper, Report
from penstock.papers.running import CellRun, RunFolder

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


def measure(asked: Asked, folder: RunFolder) -> GesscaleOutcomes:
    """Run what the folder does not hold yet, seed by seed."""
    groups = [
        [
            CellRun(
                key=cell.key,
                cell=cell,
                seed=seed,
                detailed=seed == asked.first_seed and cell.setup == MAIN.name,
            )
            for cell in setups.all_cells(extended=asked.extended)
        ]
        for seed in asked.numbers
    ]
    return GesscaleOutcomes(runs=folder.in_processes(groups, run, GesscaleOutcome))


def report(found: GesscaleOutcomes, asked: Asked, folder: Path) -> Report:
    """Findings, tables and pictures."""
    return Report(
        findings=findings.judge(found),
        tables=tables.all_tables(found, extended=asked.extended),
        pictures=figures.draw_all(found, asked.first_seed, folder),
    )


PAPER = Paper(
    name="gesscale",
    title="The Gesscale paper's evaluation, reproduced",
    about=ABOUT,
    seeds=30,
    first_seed=3000,  # the fog was calibrated on seeds below that
    keeps=("seeds", "first_seed", "extended"),
    has=frozenset({"extended"}),
    captions=CAPTIONS,
    shown=SHOWN,
    amount=lambda asked: (
        f"{len(setups.all_cells(extended=asked.extended))} cells × {asked.seeds} seeds"
    ),
    measure=measure,
    report=report,
    often=lambda asked: f"{means(asked.seeds)}, from seed {asked.first_seed} on.",
)
