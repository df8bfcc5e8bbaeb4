"""The Gesscale paper as one to reproduce on real Spark, at emulated sites: Table III, Figure 7."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.core.codec import from_json, to_json
from penstock.history.files import write_text
from penstock.papers.geo.spark.levels import Climb, climb
from penstock.papers.geo.spark.paper import sites_can_be_made, times
from penstock.papers.gesscale.simulated.figures import HEIGHT, follow
from penstock.papers.gesscale.simulated.paper import metric_rows
from penstock.papers.gesscale.simulated.published import NAMES
from penstock.papers.gesscale.spark import setup
from penstock.papers.gesscale.spark.findings import judge
from penstock.papers.gesscale.spark.taxi import TaxiOutcome, TaxiOutcomes, run
from penstock.papers.harness import Asked, Paper
from penstock.papers.pictures import canvas
from penstock.papers.running import CellRun, RunFolder
from penstock.report.table import NONE, Table, interval, number, percent

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
    f"{policy}.png": f"{name}: load and throughput, executors, and how many too many"
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


def tables(found: TaxiMeasured, asked: Asked) -> list[Table]:
    """Table III, what the policies did, and what it rests on."""
    return [table_3(found.outcomes), actions(found.outcomes), carried(found.levels)]


def table_3(outcomes: TaxiOutcomes) -> Table:
    """Every metric, the paper's figure above ours."""
    rows = metric_rows(outcomes, lambda policy: policy)
    for field, name in (("lag", "lag s"), ("missing", "records missing")):
        rows.append((name, "ours", *(interval(outcomes.estimate(p, field)) for p in NAMES)))
    errors = [outcomes.estimate(policy, "model_error") for policy in NAMES]
    rows.append(("model error", "ours", *(NONE if e is None else percent(e.mean) for e in errors)))
    return Table(
        title="Table III: the four auto-scalers",
        header=("metric", "", *NAMES.values()),
        rows=tuple(rows),
        notes=("the paper ran each once, for 288 minutes on single-board computers",),
        words=2,
    )


def actions(outcomes: TaxiOutcomes) -> Table:
    """Executors that came and went, and what was left to do."""
    fields = ("executors", "most", "ups", "catch_up", "downs", "behind")
    rows = [
        (name, *(interval(outcomes.estimate(policy, field)) for field in fields))
        for policy, name in NAMES.items()
    ]
    return Table(
        title="What they did",
        header=("policy", "mean", "most", "came", "catch-up", "went", "behind s"),
        rows=tuple(rows),
        notes=(
            f"executors while the load lasted; the ideal auto-scaler has {_ideal(outcomes)}",
            "catch-up: came while those in use carried the load; only a backlog waited",
            "behind: seconds of mean input that waited when the load ended",
        ),
    )


def _ideal(outcomes: TaxiOutcomes) -> str:
    return number(outcomes.runs[0].ideal) if outcomes.runs else NONE


def carried(found: Climb) -> Table:
    """What executors on the nearest sites take, and what was foretold of them."""
    rows = []
    for level in found.levels:
        foretold = [
            NONE if value is None else percent(value / level.rate - 1.0, sign=True)
            for value in (level.gesscale, level.plus)
        ]
        rows.append(
            (
                str(level.slots),
                level.site,
                f"{1e3 * level.delay:.0f}",
                f"{level.rate:,.0f} ({level.least:,.0f} to {level.most:,.0f})",
                *foretold,
            )
        )
    return Table(
        title="What executors on the nearest sites carry",
        header=("n", "the last on", "RTT ms", "records/s", "gesscale", "gesscale+"),
        rows=tuple(rows),
        notes=(
            "RTT: greatest between two of them; records/s: mean (slowest to fastest batch)",
            "gesscale, gesscale+: what they said of it before, against what was measured",
        ),
    )


def pictures(found: TaxiMeasured, asked: Asked, folder: Path) -> list[Path]:
    """Draw Figure 7 for each policy that has run with the first seed."""
    drawn = []
    for policy, name in NAMES.items():
        one = found.outcomes.run(policy, asked.first_seed)
        if one is not None:
            drawn.append(folder / f"{policy}.png")
            with canvas(drawn[-1], 3, height=HEIGHT, same_x=True) as places:
                follow(places, np.array(one.course), title=name, unit="seconds")
    return drawn


PAPER = Paper(
    name="gesscale",
    on_spark=True,
    title="The Gesscale paper's taxi load on real Spark",
    about=ABOUT,
    seeds=3,
    captions=CAPTIONS,
    amount=lambda asked: f"{asked.seeds * len(NAMES)} runs",
    measure=measure,
    findings=lambda found: judge(found.outcomes),
    tables=tables,
    pictures=pictures,
    require=sites_can_be_made,
    often=times,
    seeds_said=False,
)
