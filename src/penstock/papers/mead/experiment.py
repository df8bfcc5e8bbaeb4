"""One run: an application under a trace, a policy that sets its CPU shares."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.comparison.processes import leave_if_stopping
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.papers.mead.cells import MeadCell
from penstock.papers.mead.traces import arrivals
from penstock.papers.running import CellRun, Outcomes
from penstock.simulator.tuples import TupleEngine, log_analysis
from penstock.workloads.pattern import Floats

SINK = "matcher"  # the path that the paper reports: parser → matcher
BIN = 10.0  # seconds of a picture's points
MINUTE, WORST = 60.0, 0.05  # the worst of the minutes, by the delay of what came in them
CDF = np.geomspace(1e-4, 1e3, 141)  # response times in seconds, of the pictures


@dataclass(frozen=True, slots=True, kw_only=True)
class MeadOutcome:
    """Response times along parser → matcher in seconds, and what they cost.

    cpu: mean share of all operators, percent
    other: mean response time along parser → counter
    worst: the share of all delay that records of the worst twentieth of the minutes had
    decision_seconds: CPU time of a decision
    course: time, response time and CPU share, in steps of ten seconds
    below: the share of records with at most the response time of ``CDF``
    """

    key: str
    seed: int
    mean: float
    p95: float
    cpu: float
    other: float
    worst: float
    decisions: int
    decision_seconds: float
    course: tuple[tuple[float, float, float], ...] = ()
    below: tuple[float, ...] = ()


MeadOutcomes = Outcomes[MeadOutcome]


def groups(cells: Sequence[MeadCell], seeds: Sequence[int]) -> list[list[CellRun[MeadCell]]]:
    """All runs, by trace and seed: those of a group share their windows, and so the fits.

    So do all seeds of BC, which is why they follow one another. The first seed is detailed.
    """
    return [
        [
            CellRun(key=cell.key, cell=cell, seed=seed, detailed=seed == seeds[0])
            for cell in cells
            if cell.trace == trace
        ]
        for trace in dict.fromkeys(cell.trace for cell in cells)
        for seed in seeds
    ]


def run(one: CellRun[MeadCell], *, seconds: float = math.inf) -> MeadOutcome:
    """Run a cell on the first ``seconds`` of its trace."""
    times = arrivals(one.cell.trace, one.seed, seconds)
    return run_on(one.cell, one.seed, times, detailed=one.detailed, check=leave_if_stopping)


def run_on(
    cell: MeadCell,
    seed: int,
    times: Floats,
    *,
    detailed: bool = False,
    check: Callable[[], None] = lambda: None,
) -> MeadOutcome:
    """Run a cell on arrivals; the demands of the records are those of the seed, for any policy.

    ``detailed`` with what the pictures need · ``check`` is called before every decision and may
    raise to end the run.
    """
    application = log_analysis(float((times[-1] - times[0]) / (len(times) - 1)))
    engine = TupleEngine(application, times, seed=seed, window=cell.arrivals)
    policy = cell.create()
    decisions, seconds = 0, 0.0
    if policy is None:
        engine.advance(engine.seconds)
    else:
        loop = Loop(engine, policy, Guards(), mode="act", seed=seed)
        while engine.advance(cell.period):
            check()
            begun = time.process_time()
            loop.tick()
            seconds += time.process_time() - begun
            decisions += 1
    shares = engine.mean_share()
    steps = list(engine.shares)
    engine.drain()
    begins, stays = engine.responses(SINK)
    return MeadOutcome(
        key=cell.key,
        seed=seed,
        mean=float(stays.mean()),
        p95=float(np.quantile(stays, 0.95)),
        cpu=100.0 * shares,
        other=float(engine.responses("counter")[1].mean()),
        worst=_worst(begins, stays),
        decisions=decisions,
        decision_seconds=seconds / decisions if decisions else 0.0,
        course=_course(begins, stays, steps) if detailed else (),
        below=_below(stays) if detailed else (),
    )


def _worst(begins: Floats, stays: Floats) -> float:
    delays = np.sort(np.bincount((begins / MINUTE).astype(np.int64), weights=stays))
    count = max(1, round(WORST * len(delays)))
    return float(delays[-count:].sum() / delays.sum())


def _course(
    begins: Floats, stays: Floats, steps: list[tuple[float, dict[str, float]]]
) -> tuple[tuple[float, float, float], ...]:
    edges = np.arange(0.0, float(begins[-1]) + BIN, BIN)
    place = np.digitize(begins, edges) - 1
    counts = np.bincount(place, minlength=len(edges))
    sums = np.bincount(place, weights=stays, minlength=len(edges))
    since = np.array([at for at, _ in steps])
    shares = np.array([sum(s.values()) / len(s) for _, s in steps])
    now = shares[np.searchsorted(since, edges, side="right") - 1]
    return tuple(
        (float(edge), float(total / count), float(100.0 * share))
        for edge, total, count, share in zip(edges, sums, counts, now, strict=True)
        if count
    )


def _below(stays: Floats) -> tuple[float, ...]:
    ordered = np.sort(stays)
    return tuple((np.searchsorted(ordered, CDF, side="right") / len(ordered)).round(6).tolist())
