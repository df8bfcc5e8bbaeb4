"""The geo study as a paper to reproduce in the simulator."""

from __future__ import annotations

from pathlib import Path

from penstock.papers.geo.simulated import cells, figures, findings, tables
from penstock.papers.geo.simulated.experiment import GeoOutcome, GeoOutcomes, run
from penstock.papers.harness import Asked, Paper, Report
from penstock.papers.running import CellRun, RunFolder

CAPTIONS = {
    "figure-6.png": "Figure 6. Busy shares of the instances, no delay",
    "figure-7.png": "Figure 7. Throughput and what was predicted, no delay",
    "figure-8.png": "Figure 8. Throughput and what was predicted, 25 ms on half of the nodes",
    "figure-9.png": "Figure 9. Throughput and what was predicted, 25 ± 10 ms on half of them",
    "figure-10.png": "Figure 10. Id-Id, 70 % of the nodes delayed: throughput and back pressure",
}
ABOUT = (
    "Three jobs on ten nodes of a rack in the geo simulator, 100,000 records/s offered (joins: two "
    "streams of 50,000); packets to half of the nodes, in Figure 10 to 70 %, come late, and those "
    "are used last. The source shares the node of the first instance. After each restart 180 s of "
    "warm-up, then a minute is measured. In *levels* every parallelism from 1 to 10 is measured in "
    "turn and both policies look on: what each predicts for the next level, before it is reached, "
    "is held against what is measured there. In the other runs a policy decides by itself, 16 "
    "times. The simulator was calibrated on seeds 0 to 99 and 1000 to 1029, without a policy; the "
    "model and the constants of gesscale+ were chosen on seeds 100 to 139; the runs here have "
    "others. The study made five runs of each, which differ: one goes on where four stop."
)


def measure(asked: Asked, folder: RunFolder) -> GeoOutcomes:
    """Run what the folder does not hold yet, seed by seed."""
    groups = [
        [CellRun(key=cell.key, cell=cell, seed=seed) for cell in cells.all_cells()]
        for seed in asked.numbers
    ]
    return GeoOutcomes(runs=folder.in_processes(groups, run, GeoOutcome))


def report(found: GeoOutcomes, asked: Asked, folder: Path) -> Report:
    """Findings, tables and pictures."""
    return Report(
        findings=findings.judge(found),
        tables=tables.all_tables(found),
        pictures=figures.draw_all(found, folder),
    )


PAPER = Paper(
    name="geo",
    title="Stream processing on nodes that are far apart: the study, reproduced",
    about=ABOUT,
    seeds=25,  # five times the study's runs
    first_seed=4000,  # none that anything was chosen on
    captions=CAPTIONS,
    pictures_of_all=True,
    amount=lambda asked: f"{len(cells.all_cells())} cells × {asked.seeds} seeds",
    measure=measure,
    report=report,
    often=lambda asked: (
        f"{asked.seeds} runs of every cell, seeds {asked.numbers[0]} to {asked.numbers[-1]}."
    ),
    seeds_said=False,
)
