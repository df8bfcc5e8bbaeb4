"""What ``penstock reproduce geo-on-spark`` runs and writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from penstock.papers import one_by_one
from penstock.papers.geo.spark import figures, findings, tables
from penstock.papers.geo.spark.conditions import CONDITIONS, CPU, DELAY, MOST, SCALE, SparkCondition
from penstock.papers.geo.spark.levels import (
    SECONDS,
    WINDOWS,
    ClimbOutcome,
    ClimbOutcomes,
    Say,
    climb,
)
from penstock.papers.harness import FIGURES, Reproduction
from penstock.papers.running import Progress
from penstock.papers.spark_plan import Plan
from penstock.papers.write_up import Told, WriteUp

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
CAPTIONS = {figures.PICTURE: "Throughput by executors, measured and foretold"}
WRITE_UP = WriteUp(
    name="geo-on-spark",
    title="The geo study on real Spark",
    about=ABOUT,
    captions=CAPTIONS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A condition with a seed."""

    condition: SparkCondition
    seed: int

    @property
    def key(self) -> str:
        """Of its condition."""
        return self.condition.key


def tasks(plan: Plan) -> list[Task]:
    """Seed by seed."""
    return [Task(condition=c, seed=seed) for seed in plan.numbers for c in CONDITIONS]


def told(plan: Plan) -> Told:
    """A plan in words."""
    return replace(plan.told(WRITE_UP.name), seed=None)


def reproduce(plan: Plan, folder: Path, *, say: Say, progress: Progress) -> Reproduction:
    """Run what the folder does not hold yet, judge it, and write everything that shows it."""

    def work(task: Task) -> ClimbOutcome:
        condition = task.condition
        say(f"{condition.job}, {condition.words}, seed {task.seed}")
        job = condition.pipeline(task.seed)
        found = climb(condition.sites(), job, condition.rows, most=MOST, seed=task.seed, say=say)
        return ClimbOutcome(key=task.key, seed=task.seed, climb=found)

    outcomes = ClimbOutcomes(
        runs=one_by_one.run(tasks(plan), work, ClimbOutcome, folder, progress=progress)
    )
    found = Reproduction(
        name=WRITE_UP.name,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(outcomes),
        tables=tuple(tables.all_tables(outcomes)),
        pictures=(figures.draw(outcomes, folder / FIGURES),),
    )
    WRITE_UP.finish(found, told(plan))
    return found
