"""The geo study as a paper to reproduce on real Spark, at emulated sites."""

from __future__ import annotations

from pathlib import Path

from penstock.lab.sites import requirements
from penstock.papers.geo.spark import figures, findings, tables
from penstock.papers.geo.spark.conditions import (
    CONDITIONS,
    CPU,
    DELAY,
    MOST,
    SCALE,
    SparkCondition,
)
from penstock.papers.geo.spark.levels import SECONDS, WINDOWS, ClimbOutcome, ClimbOutcomes, climb
from penstock.papers.harness import Asked, Paper, Report
from penstock.papers.running import CellRun, RunFolder

ABOUT = (
    f"Real executors of {CPU:g} of a core at {MOST} emulated sites on one machine (real TCP over "
    f"delayed links, docs/sites.md). The first three sites are near, the first is home to the "
    f"driver; packets to the other three come {1e3 * DELAY:.0f} ms late, so that a round trip "
    f"between two of them takes {2e3 * DELAY:.0f} ms. Executors are added one by one on the "
    "nearest free site. At every level the job begins anew with hours of records waiting; "
    f"throughput is that of at least {WINDOWS * SECONDS:.0f} s of whole batches, after all "
    "executors have warmed up. Gesscale and gesscale+ look on: what each says of the next level, "
    "before it is reached, is held against what is measured there. The jobs are those of "
    f"docs/geo-pipelines.md at 1/{SCALE:.0f} of the study's sensors, 12 partitions; nothing was "
    "fitted to these runs."
)


def measure(asked: Asked, folder: RunFolder) -> ClimbOutcomes:
    """Measure what the folder does not hold yet, seed by seed."""
    runs = [CellRun(key=c.key, cell=c, seed=seed) for seed in asked.numbers for c in CONDITIONS]

    def work(run: CellRun[SparkCondition]) -> ClimbOutcome:
        condition, seed = run.cell, run.seed
        folder.say(f"{condition.job}, {condition.words}, seed {seed}")
        job = condition.pipeline(seed)
        sites = condition.sites()
        found = climb(sites, job, condition.rows, most=MOST, seed=seed, say=folder.say)
        return ClimbOutcome(key=run.key, seed=seed, climb=found)

    return ClimbOutcomes(runs=folder.one_by_one(runs, work, ClimbOutcome))


def report(found: ClimbOutcomes, asked: Asked, folder: Path) -> Report:
    """Findings, tables and the picture."""
    return Report(
        findings=findings.judge(found),
        tables=tables.all_tables(found),
        pictures=(figures.draw(found, folder),),
    )


def sites_can_be_made() -> None:
    """Raise if sites cannot be emulated on this machine."""
    requirements.choose("auto", jitter=False)


def times(asked: Asked) -> str:
    """How often everything was measured, in a sentence."""
    return f"All of it {'once' if asked.seeds == 1 else f'{asked.seeds} times'}."


PAPER = Paper(
    name="geo",
    on_spark=True,
    title="The geo study on real Spark",
    about=ABOUT,
    seeds=3,
    captions={figures.PICTURE: "Throughput by executors, measured and foretold"},
    pictures_of_all=True,
    amount=lambda asked: f"{asked.seeds * len(CONDITIONS)} runs",
    measure=measure,
    report=report,
    require=sites_can_be_made,
    often=times,
    seeds_said=False,
)
