"""Queries and executors as one ``Snapshot``. Pure: the same input, the same snapshot.

The unit of observation is the finished micro-batch. Each figure is defined in docs/metrics.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.batches.stage_work import Work
from penstock.batches.values import Executor
from penstock.batches.window import QueryWindow, query_window
from penstock.core.errors import NotReady
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
) -> Snapshot:
    """All queries of an application as one pipeline on one pool of executors.

    ``arrivals`` the newest of each query, by run id, if they are kept.
    """
    if not windows or not any(w.works for w in windows):
        raise NotReady("no streaming query has finished a batch yet")
    if not slots:
        raise NotReady("no executor is registered yet")
    operators: dict[str, Operator] = {}
    seen: dict[str, OperatorSeen] = {}
    edges: list[tuple[str, str]] = []
    queries: dict[str, QuerySeen] = {}
    cpu = _mean_cpu(windows, executors, slots)
    shares = [_shares(w, executors, len(slots)) for w in windows]
    busy = min(1.0, sum(share for share, _ in shares))
    busy_rate = sum(work.busy / w.span for w in windows for work in w.works)
    count = sum(len(w.works) for w in windows)
    for w, name, (own, waiting) in zip(windows, _names(windows), shares, strict=True):
        queries[name] = replace(w.seen, busy=own, backpressured=(1.0 - own) * waiting)
        prefix = f"{name}/" if len(windows) > 1 else ""
        for work in w.works:
            share = work.busy / w.span / busy_rate if busy_rate else 1.0 / count
            operators[prefix + work.name] = Operator(
                pool=POOL, stateful=work.stateful, partitions=work.tasks or None
            )
            edges += [(prefix + u, prefix + work.name) for u in work.upstream]
            seen[prefix + work.name] = replace(
                _operator(work, w.span),
                parallelism=share * len(slots),
                busy=busy,
                idle=(1.0 - busy) * (1.0 - waiting),
                backpressured=(1.0 - busy) * waiting,
                cpu=cpu,
                latency=w.latency if work is w.works[-1] else None,
                arrivals=(arrivals or {}).get(w.run_id) if work is w.works[0] else None,
            )
    return Snapshot(
        time=now,
        window=max(w.span for w in windows),
        age=max(0.0, now - max(w.end for w in windows)),
        pipeline=Pipeline(operators=operators, edges=tuple(edges)),
        operators=seen,
        pools={POOL: tuple(slots.values())},
        acting=acting,
        rescales=tuple(rescales),
        queries=queries,
        execution="micro-batch",
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


def _shares(w: QueryWindow, executors: Sequence[Executor], slots: int) -> tuple[float, float]:
    """The share of the executors' time in which they worked for a query, and the share of the
    rest in which its records waited.
    """
    paid = idle = waiting = 0.0
    known = _slot_seconds(executors, w.start, w.end) > 0
    for phase in w.phases:
        seconds = slots * (phase.end - phase.start)
        if known:
            seconds = _slot_seconds(executors, phase.start, phase.end)
        paid += seconds
        idle += max(0.0, seconds - phase.busy)
        waiting += max(0.0, seconds - phase.busy) * phase.waiting
    busy = min(1.0, sum(p.busy for p in w.phases) / paid) if paid else 0.0
    return busy, waiting / idle if idle else 0.0


def _slot_seconds(executors: Sequence[Executor], start: float, end: float) -> float:
    return sum(
        max(0.0, min(end, e.removed if e.removed is not None else end) - max(start, e.added))
        for e in executors
    )


def _mean_cpu(
    windows: Sequence[QueryWindow], executors: Sequence[Executor], slots: Mapping[str, Slot]
) -> float | None:
    """Mean CPU of the slots where it was measured, else by the CPU time that tasks report."""
    measured = [s.cpu for s in slots.values() if s.cpu is not None]
    if measured:
        return sum(measured) / len(measured)
    allowed = sum(_slot_seconds(executors, w.start, w.end) for w in windows) / len(windows)
    used = sum(work.cpu / w.span for w in windows for work in w.works)
    cores = max((e.cores for e in executors), default=1)
    mean_span = sum(w.span for w in windows) / len(windows)
    return used * mean_span / (allowed * cores) if allowed > 0 else None
