"""MEAD for a query that runs in micro-batches: one queue, served in batches.

The CPU share of the executors is the speed of a :class:`BatchService`; arrivals go through it one
by one, those of the window or some drawn from a process like it. Derived in docs/policies/mead.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from penstock.core.model import Arrivals, OperatorSeen, QuerySeen, Snapshot
from penstock.policies.mead.demands import FADE, Demands, demand_seconds
from penstock.policies.mead.response import Load, fitted
from penstock.queueing.batches import BatchService, batched
from penstock.queueing.map_ph_1 import MOST
from penstock.queueing.matrices import Floats

DRAWN = 100_000  # arrivals of a process
KEPT = 64  # windows whose draws are kept
WAITS = 1.1  # times the length of a batch: batches further apart than that wait for a trigger
PARTS = ("overhead", "fixed", "record")

Streams = Callable[[Load], Iterable[Floats]]
"""Times of arrivals that a response time is to be kept under, by some model of them."""


def pool_of(seen: Snapshot, name: str) -> str:
    """The pool of an operator, or the pool of that name."""
    operator = seen.pipeline.operators.get(name)
    return name if operator is None else operator.pool


def sinks(seen: Snapshot) -> dict[str, float | None]:
    """Measured response times where records leave; of a query under the name of its pool."""
    if seen.execution == "micro-batch":
        last: OperatorSeen | None = seen.operators.get(seen.pipeline.order[-1])
        return dict.fromkeys(seen.pools, None if last is None else last.latency)
    return {name: o.latency for name, o in seen.operators.items() if o.latency is not None}


def why_not_batched(seen: Snapshot) -> str | None:
    """Why nothing can be said of queries in micro-batches; ``None`` if something can."""
    if len(seen.queries) > 1:
        return f"{len(seen.queries)} queries share the executors"
    if len(seen.pools) > 1:
        return f"the query has {len(seen.pools)} pools"
    return None


def remember_batches(seen: Snapshot, demands: Demands) -> Demands:
    """What batches take, in seconds of full CPU: overhead, fixed, per record; fading."""
    served, worked = dict(demands["served"]), dict(demands["worked"])
    slots = next(iter(seen.pools.values()), ())
    for q in seen.queries.values():
        costs = _costs(q)
        if not (slots and q.batches and q.rows and q.batch_duration and costs):
            continue
        fixed, record = (cost / len(slots) for cost in costs)
        work = (fixed * q.batches + record * q.rows) / slots[0].cpu_share
        overhead = max(0.0, q.batch_duration * q.batches - work)
        now = {
            "overhead": (q.batches, overhead),
            "fixed": (q.batches, fixed * q.batches),
            "record": (q.rows, record * q.rows),
        }
        for part, (count, seconds) in now.items():
            served[part] = FADE * served.get(part, 0.0) + count
            worked[part] = FADE * worked.get(part, 0.0) + seconds
    return {"served": served, "worked": worked}


def _costs(query: QuerySeen) -> tuple[float, float] | None:
    """Busy executor-seconds of a batch and of a record; ``None`` if they were not measured.

    Where batches do not tell the two apart, all of it counts as the records': batches go on having
    the size that they have.
    """
    if query.cost_fixed is not None and query.cost_per_record is not None:
        return (query.cost_fixed, query.cost_per_record) if query.cost_per_record else None
    return (0.0, query.busy_per_record) if query.busy_per_record else None


def service_of(seen: Snapshot, demands: Demands, each: float) -> BatchService | None:
    """What a batch takes at full CPU; an arrival stands for ``each`` records."""
    seconds = demand_seconds(demands)
    query = next(iter(seen.queries.values()), None)
    if query is None or any(part not in seconds for part in PARTS):
        return None
    length, apart = query.batch_duration or 0.0, query.batch_interval or 0.0
    return BatchService(
        overhead=seconds["overhead"],
        fixed=seconds["fixed"],
        per_arrival=seconds["record"] * each,
        trigger=apart if apart > WAITS * length else 0.0,
    )


def under(streams: Streams) -> Callable[[Load, BatchService, float], float]:
    """A model of a query: the mean or a percentile under the worst of some streams.

    Infinite where records come faster than they can be served.
    """

    def response(load: Load, service: BatchService, percentile: float) -> float:
        if any(rate * service.per_arrival >= MOST for rate in load.rates):
            return math.inf
        return max(_stay(times, service, percentile) for times in streams(load))

    return response


def _stay(times: Floats, service: BatchService, percentile: float) -> float:
    stays = batched(times, service) - times
    return float(np.quantile(stays, percentile)) if percentile else float(stays.mean())


def recorded(load: Load) -> Iterable[Floats]:
    """The arrivals of the windows themselves."""
    return [np.cumsum(window.intervals) for window in load.windows]


def like_process(load: Load) -> Iterable[Floats]:
    """Draws of the processes that were fitted to them."""
    return [times for window in load.windows for times in _drawn(window, load.maps)]


def poisson(load: Load) -> Iterable[Floats]:
    """Arrivals at the same rates, independent and exponential."""
    return [_renewal(rate, 1.0) for rate in load.rates]


def renewal(load: Load) -> Iterable[Floats]:
    """Arrivals at the same rates, independent and as variable."""
    return [_renewal(rate, scv) for rate, scv in zip(load.rates, load.scvs, strict=True)]


@lru_cache(maxsize=KEPT)
def _drawn(window: Arrivals, maps: int) -> tuple[Floats, ...]:
    rng = np.random.default_rng(0)
    return tuple(np.cumsum(process.sample(DRAWN, rng)) for process in fitted(window, maps))


def _renewal(rate: float, scv: float) -> Floats:
    scv = max(scv, 1e-3)  # an even stream, nearly
    return np.cumsum(np.random.default_rng(0).gamma(1.0 / scv, scv / rate, DRAWN))
