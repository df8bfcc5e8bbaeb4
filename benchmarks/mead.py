"""How long MEAD's computations take on one core, beside their budgets and the paper's figures.

``python -m benchmarks.mead`` prints the tables; exit code 1 when a budget is missed.
How costs are judged is in ``benchmarks.costs``; linear algebra runs on one thread.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
from rich.console import Console

from benchmarks.costs import Cost, Piece, Work, measure, on_one_thread, verdict
from penstock.core.errors import InputError
from penstock.core.model import Arrivals, Snapshot
from penstock.papers.mead import published
from penstock.papers.mead.traces import TRACES, arrivals
from penstock.policies.mead.mead import Mead
from penstock.queueing import MarkovianArrivalProcess, PhaseType, map_ph_1
from penstock.queueing.fitting import fit
from penstock.queueing.intervals import Intervals
from penstock.queueing.map2 import hyperexponential
from penstock.report.table import NONE, Table
from penstock.simulator.tuples import TupleEngine, log_analysis
from penstock.workloads.pattern import Floats

FIT_MS, MEAN_MS, P95_MS, DECISION_MS = 100.0, 3.0, 5.0, 500.0
WINDOW = 50_000  # arrivals; a decision also looks at the newer half
LOADS = (0.3, 0.5, 0.7, 0.85, 0.95)
PHASES = 2  # of the service
BLOCKS = ((1.4, 0.5, 3.0), (1.6, 0.5, 30.0), (1.3, 0.6, 150.0), (1.2, 0.6, 500.0))
"""r2, the mean of the fast phase, the arrivals that correlation lasts; each doubles the order."""
TARGETS: Mapping[str, tuple[float, float]] = {
    "synt": (0.2, 0.5),
    "bc": (0.3, 0.5),
    "lm": (1.5, 7.0),
    "taxi": (0.3, 1.0),
}
"""Seconds for the mean and for the 95th percentile, as in the paper's tables."""


def windows(trace: str, most: int, seed: int = 1) -> list[Floats]:
    """Times of arrivals, 50,000 intervals each, spread over a trace; the first one is at 0."""
    times = arrivals(trace, seed)
    count = (len(times) - 1) // WINDOW
    chosen = np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(np.intp))
    return [times[n * WINDOW : (n + 1) * WINDOW + 1] - times[n * WINDOW] for n in chosen.tolist()]


def seen_under(times: Floats) -> Snapshot:
    """What is seen of the three operators when these have arrived."""
    engine = TupleEngine(log_analysis(float(np.diff(times).mean())), times)
    engine.advance(engine.seconds)
    return engine.observe()


def unseen(seen: Snapshot, number: int) -> Snapshot:
    """The same with other arrivals, by less than matters: nothing kept of them can be of use."""
    source = seen.pipeline.sources[0]
    there = seen.operators[source]
    if there.arrivals is None:
        raise InputError(f"no arrivals were seen at {source}; a window takes at least 2")
    other = Arrivals(there.arrivals.intervals * (1.0 + 1e-9 * number))
    return replace(seen, operators={**seen.operators, source: replace(there, arrivals=other)})


def of_order(blocks: int) -> MarkovianArrivalProcess:
    """A process with 2^blocks phases."""
    parts = [
        hyperexponential(r2=r2, low=low, gamma=math.exp(-1.0 / tau))
        for r2, low, tau in BLOCKS[:blocks]
    ]
    return reduce(MarkovianArrivalProcess.composed, parts)


def measure_fits(pieces: Mapping[str, Sequence[Floats]], *, runs: int = 8) -> list[Cost]:
    """Fits of windows, by trace."""
    return [
        measure(
            f"fit, {trace.upper()}",
            [_fit_of(np.diff(times)) for times in mine],
            runs=runs,
            budget=FIT_MS,
            published=published.COSTS["fit of one window"],
        )
        for trace, mine in pieces.items()
    ]


def measure_queues(processes: Sequence[MarkovianArrivalProcess], *, runs: int = 12) -> list[Cost]:
    """Mean and 95th percentile of one queue at several utilisations, each from nothing."""
    queues = [(process, load) for process in processes for load in LOADS]
    return [
        measure(
            "mean of a queue",
            [_mean_of(*queue) for queue in queues],
            runs=runs,
            budget=MEAN_MS,
            published=published.COSTS["mean response time of a queue"],
        ),
        measure(
            "p95 of a queue",
            [_p95_of(*queue) for queue in queues],
            runs=runs,
            budget=P95_MS,
            published=published.COSTS["95th percentile"],
        ),
    ]


def measure_decisions(pieces: Mapping[str, Sequence[Floats]], *, runs: int = 4) -> list[Cost]:
    """Whole decisions for three operators with two windows and five fits of each."""
    works: dict[str, list[Piece]] = {"mean": [], "p95": []}
    numbers = itertools.count(1)
    for trace, mine in pieces.items():
        by_mean, by_p95 = TARGETS[trace]
        for seen in map(seen_under, mine):
            works["mean"].append(_decision(Mead(target=by_mean), seen, numbers))
            tail = Mead(target=by_p95, percentile=0.95)
            works["p95"].append(_decision(tail, seen, numbers))
    return [
        measure(f"decision by the {what}", work, runs=runs, budget=DECISION_MS)
        for what, work in works.items()
    ]


def measure_orders(*, runs: int = 12) -> list[tuple[int, Cost, Cost]]:
    """Mean and 95th percentile of a queue against the number of phases of its arrivals."""
    return [
        (
            process.order,
            measure("mean", [_mean_of(process, load) for load in LOADS], runs=runs),
            measure("p95", [_p95_of(process, load) for load in LOADS], runs=runs),
        )
        for process in map(of_order, range(1, len(BLOCKS) + 1))
    ]


def table(costs: Sequence[Cost]) -> Table:
    """Measured beside budget and paper."""
    return Table(
        title="MEAD on one core, ms of CPU",
        header=("what", "pieces", "quiet", "mean", "worst", "budget", "paper"),
        rows=tuple(
            (
                cost.what,
                str(cost.pieces),
                *(f"{ms:.1f}" for ms in (cost.quiet, cost.mean, cost.worst)),
                NONE if cost.budget is None else f"{cost.budget:g}",
                cost.published,
            )
            for cost in costs
        ),
        notes=(
            "quiet: the slowest piece, fastest quarter of its runs",
            f"fits are of {WINDOW:,} intervals; nothing is kept between runs",
        ),
    )


def orders_table(orders: Sequence[tuple[int, Cost, Cost]]) -> Table:
    """Cost against the order."""
    return Table(
        title="A queue by phases of its arrivals, ms",
        header=("phases", "mean", "its worst", "p95", "its worst"),
        rows=tuple(
            (str(order), *(f"{ms:.2f}" for c in (mean, p95) for ms in (c.quiet, c.worst)))
            for order, mean, p95 in orders
        ),
        words=0,
    )


def _fit_of(intervals: Floats) -> Piece:
    return lambda: lambda: fit(Intervals(intervals))


def _mean_of(process: MarkovianArrivalProcess, load: float) -> Piece:
    return lambda: lambda: _solved(process, load).mean


def _p95_of(process: MarkovianArrivalProcess, load: float) -> Piece:
    return lambda: lambda: _solved(process, load).percentile(0.95)


def _solved(process: MarkovianArrivalProcess, load: float) -> map_ph_1.Sojourn:
    fresh = MarkovianArrivalProcess(process.D0, process.D1)  # a process keeps what it computes
    service = PhaseType.erlang(PHASES, mean=load * process.mean)
    return map_ph_1.solve.__wrapped__(fresh, service)  # not what was kept


def _decision(policy: Mead, seen: Snapshot, numbers: Iterator[int]) -> Piece:
    def prepare() -> Work:
        fresh = unseen(seen, next(numbers))
        return lambda: policy.decide(fresh, policy.start(0))

    return prepare


def main() -> int:
    """Measure, print, and say by the exit code whether the budgets were kept."""
    progress, console = Console(stderr=True), Console()
    progress.print("windows …")
    every = {trace: windows(trace, most=20) for trace in TRACES}
    few = {trace: mine[:: max(1, len(mine) // 3)][:3] for trace, mine in every.items()}
    progress.print(f"fits of {sum(map(len, every.values()))} windows …")
    costs = measure_fits(every)
    progress.print("queues and decisions …")
    found = [fit(Intervals(np.diff(times))).process for mine in few.values() for times in mine]
    costs += measure_queues(found)
    costs += measure_decisions(few)
    console.print(table(costs).rich())
    console.print(orders_table(measure_orders()).rich())
    return verdict(costs, console)


if __name__ == "__main__":
    on_one_thread("benchmarks.mead")
    sys.exit(main())
