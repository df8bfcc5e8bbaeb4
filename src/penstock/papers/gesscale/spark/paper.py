"""What ``penstock reproduce gesscale-on-spark`` runs and writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from penstock.core.codec import from_json, to_json
from penstock.papers import one_by_one
from penstock.papers.geo.spark.levels import Climb, climb
from penstock.papers.gesscale.simulated.published import NAMES
from penstock.papers.gesscale.spark import figures, findings, setup, tables
from penstock.papers.gesscale.spark.taxi import Outcomes, Say, TaxiOutcome, run
from penstock.papers.harness import FIGURES, Reproduction
from penstock.papers.running import Progress
from penstock.papers.spark_plan import Plan
from penstock.papers.write_up import Told, WriteUp

CARRIED = "carried.json"
ABOUT = (
    f"Real executors of {setup.CPU:g} of a core at {setup.NODES} emulated sites on one machine "
    f"(docs/sites.md), whose round trips are up to {2e3 * setup.FARTHEST:.0f} ms. First it is "
    f"measured what 1 to {setup.NODES} executors on the nearest sites carry; that gives the ideal "
    f"auto-scaler, and the load: New York's taxi drop-offs from 03:00 on 1 May 2013, a day in "
    f"{setup.SECONDS} s, with its peak at {100 * setup.SPARE:.0f} % of what {setup.CARRIED} "
    f"executors carry. The paper used pick-ups. The policies look every {setup.PERIOD:.0f} s, not "
    "once a minute, and there is no other guard. A change does not stop the job: an executor takes "
    "some seconds to start, and leaves by decommission. Sites and load are the same in all runs; "
    "rides, and the draws of the policies that choose nodes at random, differ by seed."
)
CAPTIONS = {
    figures.NAMES[policy]: f"{name}: load and throughput, executors, and how many too many"
    for policy, name in NAMES.items()
}
WRITE_UP = WriteUp(
    name="gesscale-on-spark",
    title="The Gesscale paper's taxi load on real Spark",
    about=ABOUT,
    captions=CAPTIONS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A policy with a seed."""

    policy: str
    seed: int

    @property
    def key(self) -> str:
        """Of the policy."""
        return self.policy


def tasks(plan: Plan) -> list[Task]:
    """Seed by seed."""
    return [Task(policy=policy, seed=seed) for seed in plan.numbers for policy in NAMES]


def told(plan: Plan) -> Told:
    """A plan in words."""
    return plan.told(WRITE_UP.name)


def reproduce(plan: Plan, folder: Path, *, say: Say, progress: Progress) -> Reproduction:
    """Run what the folder does not hold yet, judge it, and write everything that shows it."""
    levels = _levels(folder, say)
    carried = [level.rate for level in levels.levels]

    def work(task: Task) -> TaxiOutcome:
        say(f"{task.policy}, seed {task.seed}: {setup.LEAD + setup.SECONDS} s")
        found = run(task.policy, task.seed, carried, say=say)
        say(
            f"{found.reconfigurations:.0f} changes, {found.cost:.1f} executor-minutes, "
            f"{found.lag:.1f} s of lag"
        )
        return found

    outcomes = Outcomes(
        runs=one_by_one.run(tasks(plan), work, TaxiOutcome, folder, progress=progress)
    )
    found = Reproduction(
        name=WRITE_UP.name,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(outcomes),
        tables=tuple(tables.all_tables(outcomes, levels)),
        pictures=tuple(figures.draw_all(outcomes, plan.first_seed, folder / FIGURES)),
    )
    WRITE_UP.finish(found, told(plan))
    return found


def _levels(folder: Path, say: Say) -> Climb:
    """What executors carry, measured once for a folder."""
    path = folder / CARRIED
    if path.is_file():
        return from_json(Climb, json.loads(path.read_text(encoding="utf-8")))
    say(f"what 1 to {setup.NODES} executors carry")
    found = climb(setup.fog(), setup.taxi(0), setup.ROWS, most=setup.NODES, seed=0, say=say)
    partial = path.with_name(path.name + ".part")
    partial.write_text(json.dumps(to_json(found)), encoding="utf-8")
    partial.replace(path)
    return found
