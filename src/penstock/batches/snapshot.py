"""Queries and executors as one ``Snapshot``. Pure: the same input, the same snapshot.

The unit of observation is the finished micro-batch. Each figure is defined in docs/metrics.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from penstock.batches.shares import ExecutorTime, StageTimes, Used, cpu_of, shares_of
from penstock.batches.stage_work import Work
from penstock.batches.values import Executor, cores_of, tasks_at_once
from penstock.batches.window import QueryWindow, query_window
from penstock.core.errors import NotReady
from penstock.core.facts import JoinTime, PoolFacts
from penstock.core.findings import Finding
from penstock.core.model import Arrivals, OperatorSeen, QuerySeen, Rescale, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline

__all__ = ["POOL", "QueryWindow", "query_window", "snapshot"]

POOL = "executors"


def snapshot(
    windows: Sequence[QueryWindow],
    executors: Sequence[Executor],
    *,
    now: float,
    slots: Mapping[str, Slot],
    acting: bool = False,
    rescales: Sequence[Rescale] = (),
    arrivals: Mapping[str, Arrivals] | None = None,
    join: JoinTime | None = None,
    unmeasured: Sequence[str] = (),
    findings: Sequence[Finding] = (),
) -> Snapshot:
    """All queries of an application as one pipeline on one pool of executors.

    ``arrivals`` the newest of each query, by run id, if they are kept · ``join`` how long new
    executors take to be there, if that is known · ``unmeasured`` names of queries that run and
    have no window · ``findings`` what else is known.
    """
    if not windows or not any(w.works for w in windows):
        raise NotReady("no streaming query has finished a batch yet", findings)
    if not slots:
        raise NotReady("no executor is registered yet", findings)
    operators: dict[str, Operator] = {}
    seen: dict[str, OperatorSeen] = {}
    edges: list[tuple[str, str]] = []
    queries: dict[str, QuerySeen] = {}
    time = ExecutorTime(executors)
    shares = [_shares(w, time, len(slots)) for w in windows]
    cpu = _cpu(windows, executors, slots, time, min(1.0, sum(share for share, _ in shares)))
    busy_rate = sum(work.busy / w.span for w in windows for work in w.works)
    count = sum(len(w.works) for w in windows)
    for w, name, (own, waiting) in zip(windows, _names(windows), shares, strict=True):
        queries[name] = replace(w.seen, busy=own, backpressured=(1.0 - own) * waiting)
        prefix = f"{name}/" if len(windows) > 1 else ""
        spent = shares_of(
            {x.name: StageTimes(upstream=x.upstream, spells=x.spells) for x in w.works},
            w.phases,
            time,
            len(slots),
        )
        for work in w.works:
            share = work.busy / w.span / busy_rate if busy_rate else 1.0 / count
            operators[prefix + work.name] = Operator(
                pool=POOL, stateful=work.stateful, partitions=work.tasks or None
            )
            edges += [(prefix + u, prefix + work.name) for u in work.upstream]
            seen[prefix + work.name] = replace(
                _operator(work, w.span),
                parallelism=share * len(slots),
                busy=spent[work.name].busy,
                idle=spent[work.name].idle,
                backpressured=spent[work.name].held,
                cpu=cpu.get((w.run_id, work.name)),
                latency=w.latency if work is w.works[-1] else None,
                arrivals=(arrivals or {}).get(w.run_id) if work is w.works[0] else None,
            )
    at_once = tasks_at_once(executors)
    return Snapshot(
        time=now,
        window=max(w.span for w in windows),
        age=max(0.0, now - max(w.end for w in windows)),
        pipeline=_pipeline(tuple(operators.items()), tuple(edges), at_once),
        operators=seen,
        pools={POOL: tuple(slots.values())},
        acting=acting,
        rescales=tuple(rescales),
        queries=queries,
        execution="micro-batch",
        facts={POOL: PoolFacts(cores=cores_of(executors) or 1.0, join=join)},
        unmeasured=tuple(unmeasured),
        findings=tuple(findings),
    )


@lru_cache(maxsize=16)
def _pipeline(
    operators: tuple[tuple[str, Operator], ...], edges: tuple[tuple[str, str], ...], at_once: float
) -> Pipeline:
    """Made once: from one look to the next it seldom changes."""
    return Pipeline(
        operators=dict(operators), edges=edges, slot_tasks={POOL: at_once} if at_once != 1 else {}
    )


def _names(windows: Sequence[QueryWindow]) -> list[str]:
    """The names of the queries, with the beginning of their run ids where two have the same."""
    often = Counter(w.name for w in windows)
    return [w.name if often[w.name] == 1 else f"{w.name}-{w.run_id[:8]}" for w in windows]


def _operator(work: Work, span: float) -> OperatorSeen:
    return OperatorSeen(
        parallelism=0.0,
        offered_rate=work.offered_rate,
        arrival_rate=work.records_in / span,
        output_rate=None if work.records_out is None else work.records_out / span,
        service_rate=work.service_rate,
        lag=work.lag,
    )


def _shares(w: QueryWindow, time: ExecutorTime, slots: int) -> tuple[float, float]:
    """The share of the executors' time in which they worked for a query, and the share of the
    rest in which its records waited.
    """
    paid = idle = waiting = 0.0
    known = time.between(w.start, w.end) > 0
    for phase in w.phases:
        seconds = slots * (phase.end - phase.start)
        if known:
            seconds = time.between(phase.start, phase.end)
        paid += seconds
        idle += max(0.0, seconds - phase.busy)
        waiting += max(0.0, seconds - phase.busy) * phase.waiting
    busy = min(1.0, sum(p.busy for p in w.phases) / paid) if paid else 0.0
    return busy, waiting / idle if idle else 0.0


def _cpu(
    windows: Sequence[QueryWindow],
    executors: Sequence[Executor],
    slots: Mapping[str, Slot],
    time: ExecutorTime,
    busy: float,
) -> dict[tuple[str, str], float]:
    """The CPU of every stage, by run id and name; none if it was not measured."""
    pool = _mean_cpu(windows, executors, slots, time)
    if pool is None:
        return {}
    names = [(w.run_id, work.name) for w in windows for work in w.works]
    used = [
        Used(busy=work.busy / w.span, cpu=work.cpu / w.span) for w in windows for work in w.works
    ]
    return dict(zip(names, cpu_of(used, pool, busy), strict=True))


def _mean_cpu(
    windows: Sequence[QueryWindow],
    executors: Sequence[Executor],
    slots: Mapping[str, Slot],
    time: ExecutorTime,
) -> float | None:
    """Mean CPU of the slots where it was measured, else by the CPU time that tasks report."""
    measured = [s.cpu for s in slots.values() if s.cpu is not None]
    if measured:
        return sum(measured) / len(measured)
    allowed = sum(time.between(w.start, w.end) for w in windows) / len(windows)
    used = sum(work.cpu / w.span for w in windows for work in w.works)
    cores = cores_of(executors) or 1.0
    mean_span = sum(w.span for w in windows) / len(windows)
    return used * mean_span / (allowed * cores) if allowed > 0 else None
