"""A run of micro-batches as a series of seconds: what the scores are computed from.

A micro-batch takes its records from the source when it is planned and delivers them when it is
committed. So, in a run of batches b with records (a_b, e_b] of the stream:

    taken(t)   = max e_b over the batches planned until t
    lag(t)     = offered(t) − taken(t)
    queue(t)   = t − the moment at which record taken(t) + 1 was offered, 0 if there is none
    latency    = commit − mean moment at which the records of a batch were offered

All in the time and the records of the load. Where those differ from the clock and the records of
Spark (a bench in compressed time), ``Times`` says how.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from penstock.batches.snapshot import POOL
from penstock.batches.values import Batch, Executor
from penstock.simulator.series import Floats, Series
from penstock.workloads.patterns import Pattern, offered_at

POINTS = 32  # at which the moments of a batch's records are looked up
NOTHING = 1e-6  # relative: less waiting is rounding


class Times(Protocol):
    """From the clock and the records of an engine to those of its load."""

    @property
    def weight(self) -> float:
        """Records of the load that one record of the engine stands for."""
        ...

    def moment(self, clock: float) -> float:
        """Seconds of the load at a moment on the clock."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTime:
    """A load as it is: ``start`` the moment on the clock at which it begins."""

    start: float = 0.0
    weight: float = 1.0

    def moment(self, clock: float) -> float:
        """Seconds since it began."""
        return clock - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What was measured: batches and executors on the clock, CPU in seconds of the load.

    ``cpu`` pairs of a moment and the mean share since the pair before.
    """

    batches: Sequence[Batch]
    executors: Sequence[Executor]
    cpu: Sequence[tuple[float, float]] = field(default=())


def series_of(pattern: Pattern, seconds: int, times: Times, observed: Observed) -> Series:
    """One figure per second of the load, which is ``pattern``.

    Spark's executors join and leave a running query, so it is never down; its source drops
    nothing.
    """
    edges = np.arange(seconds + 1, dtype=np.float64)
    offered = offered_at(pattern, edges)
    batches = [b for b in observed.batches if b.taken is not None and b.rows]
    taken = _taken(batches, times, edges, offered)
    queue = _waiting(taken, edges, offered)
    delivered, latency = _delivered(batches, times, edges, offered, queue)
    return Series(
        offered=np.diff(offered),
        consumed=np.diff(taken),
        delivered=delivered,
        lag=offered[1:] - taken[1:],
        queue_latency=queue[1:],
        latency=latency,
        down=np.zeros(seconds),
        cpu=_cpu(observed.cpu, seconds),
        expired=np.zeros(seconds),
        slots={POOL: _slots(observed.executors, times, edges[1:])},
    )


def together(series: Sequence[Series]) -> Series:
    """Several queries on the same executors as one: the sums of their records.

    The queue latency is that of the query that is furthest behind; latency and CPU are means, the
    former by what each delivers.
    """
    if len(series) == 1:
        return series[0]
    delivered = np.sum([s.delivered for s in series], axis=0)
    weighed = np.sum([s.delivered * s.latency for s in series], axis=0)
    queue = np.max([s.queue_latency for s in series], axis=0)
    return replace(
        series[0],
        offered=np.sum([s.offered for s in series], axis=0),
        consumed=np.sum([s.consumed for s in series], axis=0),
        delivered=delivered,
        lag=np.sum([s.lag for s in series], axis=0),
        queue_latency=queue,
        latency=np.divide(weighed, delivered, out=queue.copy(), where=delivered > 0),
    )


def _taken(batches: Sequence[Batch], times: Times, edges: Floats, offered: Floats) -> Floats:
    """Records taken until each moment, never more than were offered by then.

    A batch asks its source a few milliseconds after the time that it says it was planned at.
    """
    moments = np.array([times.moment(b.start) for b in batches])
    ends = np.array([0.0, *(times.weight * (b.taken or 0) for b in batches)])
    steps = ends[np.searchsorted(moments, edges, side="right")]
    return np.asarray(np.minimum(steps, offered))


def _waiting(taken: Floats, edges: Floats, offered: Floats) -> Floats:
    """Seconds that the first record which was not taken has waited at each moment."""
    waited = edges - _moment_of(taken, edges, offered)
    waits = offered - taken > NOTHING * max(1.0, float(offered[-1]))
    return np.where(waits, np.maximum(waited, 0.0), 0.0)


def _moment_of(records: Floats, edges: Floats, offered: Floats) -> Floats:
    """When each record was offered: the last moment until which no more than it were."""
    last = np.clip(np.searchsorted(offered, records, side="right") - 1, 0, len(edges) - 2)
    rate = offered[last + 1] - offered[last]
    part = np.divide(records - offered[last], rate, out=np.zeros_like(rate), where=rate > 0)
    return np.asarray(edges[last] + np.clip(part, 0.0, 1.0))


def _delivered(
    batches: Sequence[Batch], times: Times, edges: Floats, offered: Floats, queue: Floats
) -> tuple[Floats, Floats]:
    """Records committed in each second, and their mean age then."""
    seconds = len(edges) - 1
    delivered, aged = np.zeros(seconds), np.zeros(seconds)
    before = 0.0
    for b in batches:
        end, moment = times.weight * (b.taken or 0), times.moment(b.end)
        second = int(moment)
        if 0 <= second < seconds and end > before:
            at = before + (np.arange(POINTS) + 0.5) / POINTS * (end - before)
            age = moment - float(_moment_of(at, edges, offered).mean())
            delivered[second] += end - before
            aged[second] += max(0.0, age) * (end - before)
        before = max(before, end)
    some = delivered > 0
    mean = np.divide(aged, delivered, out=np.zeros(seconds), where=some)
    return delivered, np.where(some, mean, queue[1:])


def _cpu(cpu: Sequence[tuple[float, float]], seconds: int) -> Floats:
    """Each share holds from the look before until its own; the last one until the end."""
    if not cpu:
        return np.zeros(seconds)
    moments, shares = (np.array(values) for values in zip(*cpu, strict=True))
    ends = np.arange(1, seconds + 1, dtype=np.float64)
    return np.asarray(shares[np.minimum(np.searchsorted(moments, ends), len(shares) - 1)])


def _slots(executors: Sequence[Executor], times: Times, ends: Floats) -> Floats:
    """Executors at the end of each second: from their registration to their removal."""
    slots = np.zeros(len(ends))
    for e in executors:
        gone = np.inf if e.removed is None else times.moment(e.removed)
        slots += (times.moment(e.added) <= ends) & (ends < gone)
    return slots
