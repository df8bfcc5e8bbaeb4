"""What a week of replay costs: one policy on one-minute data in the micro-batch simulator.

``python -m benchmarks.replay`` prints CPU seconds of a week and the memory that it needs beside the
budget; exit code 1 when it is missed. Eight policies within a minute on two cores leave each 15
CPU seconds. ``--days`` plays less than a week and scales up what is done day by day; the memory is
as measured.

Every week is played in a process of its own, so that the memory is its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.policies import create
from penstock.simulator.microbatch import (
    ExecutorProfile,
    MicroBatchEngine,
    Profile,
    QueryProfile,
    SourceProfile,
    StageProfile,
    StateProfile,
    read_profile,
)
from penstock.workloads.patterns import Cosine

POLICIES = ("ds2", "ds2+", "dhalion", "dhalion+", "hpa-cpu", "hpa+", "hpa-varga", "proactive")
BUDGET = 60.0 * 2 / len(POLICIES)  # CPU seconds of a week under one policy
MOST_MEMORY = 500.0  # MB
PERIODS = (60.0, 15.0)  # seconds between decisions
DAY = 86400.0
WEEK = 7 * DAY
EXAMPLE = Path(__file__).parent.parent / "examples" / "twin" / "profiles" / "q5.json"
CASES = ("q5, trigger 10 s", "q5, trigger 0", "200 tasks, trigger 10 s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What one week took: CPU ``seconds`` and the most memory of its process, in MB."""

    case: str
    policy: str
    period: float
    batches: int
    seconds: float
    memory: float

    @property
    def within_budget(self) -> bool:
        """Whether it leaves time and memory for the others."""
        return self.seconds <= BUDGET and self.memory <= MOST_MEMORY


def profile_of(case: str) -> Profile:
    """The application of a case; q5 takes whatever there is, so that it does not fall behind."""
    if case == CASES[2]:
        return wide()
    known = read_profile(EXAMPLE)
    query = known.queries[0]
    sources = tuple(replace(source, max_rows=None) for source in query.sources)
    trigger = 10.0 if case == CASES[0] else 0.0
    return replace(known, queries=(replace(query, sources=sources, trigger=trigger),))


def wide(tasks: int = 200) -> Profile:
    """A windowed count over as many partitions as Spark shuffles into; its numbers are made up."""
    read = StageProfile(
        name="read", source="bid", tasks=tasks, fixed=0.01, per_record=1e-4, selectivity=0.5
    )
    count = StageProfile(
        name="count",
        upstream=("read",),
        tasks=tasks,
        fixed=0.02,
        per_record=2e-4,
        selectivity=0.01,
        state=StateProfile(operator="stateStoreSave", rows_per_record=0.1, most_rows=1e5),
    )
    query = QueryProfile(
        name="counts",
        sources=(SourceProfile(name="bid"),),
        stages=(read, count),
        trigger=10.0,
        planning=0.2,
        commit=0.1,
        batch_noise=0.05,
        task_noise=0.2,
    )
    executor = ExecutorProfile(
        cores=4, start=20.0, first_task=1.0, slowdown=5.0, warm_up=2.0, leave=2.0
    )
    return Profile(version=1, queries=(query,), executor=executor)


def play(case: str, policy: str, period: float, days: float) -> Replay:
    """Some days in this process, as seconds of a week."""
    times = [time.process_time()]
    load = Cosine(low=1e3, high=30e3, period=DAY, noise=1e3)  # one rate a minute
    engine = MicroBatchEngine(
        profile_of(case), load, seconds=days * DAY, start=4, window=60.0, limits=(1, 20), seed=1
    )
    guards = Guards(maximum=20, tolerance=0.1, cool_down=300.0)
    loop = Loop(engine, create(policy), guards, mode="act", seed=1)
    times.append(time.process_time())
    loop.run(period=period, ticks=int(days * DAY / period))
    engine.finish()
    times.append(time.process_time())
    record = engine.record()
    record.slot_seconds()
    batches = 0
    for query, some in record.batches.items():
        record.latency(query)
        batches += len(some)
    times.append(time.process_time())
    before, playing, after = np.diff(times)
    return Replay(
        case=case,
        policy=policy,
        period=period,
        batches=round(batches * WEEK / (days * DAY)),
        seconds=float(before + playing * WEEK / (days * DAY) + after),
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    )


def measure(days: float, runs: Iterable[tuple[str, str, float]]) -> list[Replay]:
    """Weeks one after the other, each in a fresh process."""
    fresh = multiprocessing.get_context("spawn")
    found = []
    for case, policy, period in runs:
        with fresh.Pool(1) as pool:
            pool.apply(play, (case, policy, period, 0.01))  # load what is compiled, fill caches
            found.append(pool.apply(play, (case, policy, period, days)))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say by the exit code whether the budget was kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay")
    parser.add_argument("--days", type=float, default=7.0, help="to play, scaled up to a week")
    days = parser.parse_args(arguments).days
    console = Console()
    runs = [(case, "ds2", period) for period in PERIODS for case in CASES]
    tables = {
        "A week under one policy": measure(days, runs),
        "A week under eight policies": measure(days, [(CASES[0], p, 60.0) for p in POLICIES]),
    }
    for title, replays in tables.items():
        table = Table(title=title)
        for column in ("case", "policy", "decisions every", "batches", "CPU s", "budget", "MB"):
            table.add_column(column, justify="left" if column in ("case", "policy") else "right")
        for r in replays:
            table.add_row(
                r.case,
                r.policy,
                f"{r.period:g} s",
                f"{r.batches:,}",
                f"{r.seconds:.1f}",
                f"{BUDGET:g}",
                f"{r.memory:.0f}",
            )
        console.print(table)
    missed = [r for replays in tables.values() for r in replays if not r.within_budget]
    for r in missed:
        console.print(
            f"[red]missed: {r.case}, {r.policy} every {r.period:g} s: {r.seconds:.1f} s and "
            f"{r.memory:.0f} MB, at most {BUDGET:g} s and {MOST_MEMORY:g} MB"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
