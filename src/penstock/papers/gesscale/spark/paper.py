"""The Gesscale paper as one to reproduce on real Spark, at emulated sites."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from penstock.core.codec import from_json, to_json
from penstock.history.files import write_text
from penstock.papers.geo.spark.levels import Climb, climb
from penstock.papers.geo.spark.paper import sites_can_be_made, times
from penstock.papers.gesscale.simulated.published import NAMES
from penstock.papers.gesscale.spark import figures, findings, setup, tables
from penstock.papers.gesscale.spark.taxi import TaxiOutcome, TaxiOutcomes, run
from penstock.papers.harness import Asked, Paper, Report
from penstock.papers.running import CellRun, RunFolder

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxiMeasured:
    """All runs, and what executors on the nearest sites carry."""

    outcomes: TaxiOutcomes
    levels: Climb


def measure(asked: Asked, folder: RunFolder) -> TaxiMeasured:
    """Measure what the folder does not hold yet, seed by seed."""
    levels = _levels(folder)
    carried = [level.rate for level in levels.levels]
    runs = [CellRun(key=p, cell=p, seed=seed) for seed in asked.numbers for p in NAMES]

    def work(one: CellRun[str]) -> TaxiOutcome:
        folder.say(f"{one.cell}, seed {one.seed}: {setup.LEAD + setup.SECONDS} s")
        found = run(one.cell, one.seed, carried, say=folder.say)
        folder.say(
            f"{found.reconfigurations:.0f} changes, {found.cost:.1f} executor-minutes, "
            f"{found.lag:.1f} s of lag"
        )
        return found

    outcomes = TaxiOutcomes(runs=folder.one_by_one(runs, work, TaxiOutcome))
    return TaxiMeasured(outcomes=outcomes, levels=levels)


def _levels(folder: RunFolder) -> Climb:
    """What executors carry, measured once for a folder."""
    path = folder.path / CARRIED
    if path.is_file():
        return from_json(Climb, json.loads(path.read_text(encoding="utf-8")))
    folder.say(f"what 1 to {setup.NODES} executors carry")
    found = climb(setup.fog(), setup.taxi(0), setup.ROWS, most=setup.NODES, seed=0, say=folder.say)
    write_text(path, json.dumps(to_json(found)))
    return found


def report(found: TaxiMeasured, asked: Asked, folder: Path) -> Report:
    """Findings, tables and pictures."""
    return Report(
        findings=findings.judge(found.outcomes),
        tables=tables.all_tables(found.outcomes, found.levels),
        pictures=figures.draw_all(found.outcomes, asked.first_seed, folder),
    )


PAPER = Paper(
    name="gesscale",
    on_spark=True,
    title="The Gesscale paper's taxi load on real Spark",
    about=ABOUT,
    seeds=3,
    captions=CAPTIONS,
    amount=lambda asked: f"{asked.seeds * len(NAMES)} runs",
    measure=measure,
    report=report,
    require=sites_can_be_made,
    often=times,
    seeds_said=False,
)
