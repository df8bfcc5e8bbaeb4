"""What a run is judged by; every name and formula is in docs/bench.md.

All figures come from the series of a run, one value per second, and from the times of the
actions; nothing here loops over seconds. A simulated run and one on Spark are judged alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.comparison.oracle import Demand, total
from penstock.core.loop import Decision
from penstock.simulator import FluidEngine, FluidSpec, Series, Totals
from penstock.simulator.series import Floats

Scores = Mapping[str, float | None]
Stage = tuple[float, float, float]  # start s, end s, rate records/s

SETTLED = 600.0  # seconds without an action at the end of a stage that has converged
_SHARES = (("p50", 0.50), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))


@dataclass(slots=True)
class Actions:
    """When a run acted, and how often the number of slots changed."""

    times: list[float] = field(default_factory=list)
    reconfigurations: int = 0

    def add(self, decision: Decision) -> None:
        """Count a decision that was applied."""
        self.times.append(decision.seen.time)
        if any(c.slots != c.before for c in decision.targets.values()):
            self.reconfigurations += 1


def scores_of(
    engine: FluidEngine,
    demand: Demand,
    actions: Actions,
    *,
    stages: Sequence[Stage] = (),
    slo: float = 60.0,
    figures: Mapping[str, float] | None = None,
) -> dict[str, float | None]:
    """All scores of a simulated run; ``figures`` are what the policy kept of itself."""
    series = engine.series
    drain = drain_seconds(engine.spec, engine.totals(), _last(series))
    return series_scores(
        series, demand, actions, drain=drain, stages=stages, slo=slo, figures=figures
    )


def series_scores(
    series: Series,
    demand: Demand,
    actions: Actions,
    *,
    drain: float,
    stages: Sequence[Stage] = (),
    slo: float = 60.0,
    figures: Mapping[str, float] | None = None,
) -> dict[str, float | None]:
    """All scores of a run; ``drain`` seconds that what still waits at the end would take."""
    return {
        **slot_scores(series, demand),
        **latency_scores(series, slo),
        **flow_scores(series),
        "actions": float(len(actions.times)),
        "reconfigurations": float(actions.reconfigurations),
        "excess_time": drain / len(series.offered),
        **stage_scores(actions.times, stages, len(series.offered)),
        "forecast_error": (figures or {}).get("forecast_error"),
    }


LATE = 10.0  # an hour late costs so many times what the oracle pays for an hour, if nothing is said
TOTAL_COST = "total_cost"


def total_cost(
    scores: Scores, *, price: float | None = None, late_price: float | None = None
) -> float | None:
    """What a run cost, slots and lateness together; lower is better.

    price · slot-hours + late_price · hours beyond the objective. Without a price it is told in what
    the oracle pays: slot-seconds ÷ the oracle's + 10 · share of the time that is late, so that 1 is
    the oracle. An hour late costs ten hours of the oracle unless ``late_price`` says otherwise.

    >>> total_cost({"slots_mean": 2.0, "slot_seconds": 200.0, "oracle_slot_seconds": 100.0,
    ...             "slo_seconds": 5.0})
    2.5
    """
    paid, least = scores.get("slot_seconds"), scores.get("oracle_slot_seconds")
    late, mean = scores.get("slo_seconds"), scores.get("slots_mean")
    if paid is None or not least or late is None or not mean:
        return None
    if price is None:
        return paid / least + LATE * late * mean / paid
    if late_price is None:
        late_price = LATE * price * least * mean / paid
    return (price * paid + late_price * late) / 3600.0


def slot_scores(series: Series, demand: Demand) -> dict[str, float | None]:
    """What was paid for, and how far that was from the oracle's demand.

    accuracy_U = Σ_t Σ_pools max(0, demand − supply) / T,  accuracy_O likewise;
    timeshare_U = share of the time in which any pool has too few, timeshare_O too many.
    [arkian21, V-A; herbst16]
    """
    seconds = len(series.offered)
    wanted = total(demand)
    short, spare = np.zeros(seconds), np.zeros(seconds)
    slots = np.zeros(seconds)
    for pool, supply in series.slots.items():
        difference = supply - demand[pool]
        slots += supply
        spare += np.maximum(difference, 0.0)
        short -= np.minimum(difference, 0.0)
    paid, least = float(slots.sum()), float(wanted.sum())
    return {
        "slots_mean": paid / seconds,
        "slots_max": float(slots.max()),
        "slot_seconds": paid,
        "cost": paid / 60.0,
        "regret": paid / least - 1.0 if least else None,
        "oracle_slots_mean": least / seconds,
        "oracle_slots_max": float(wanted.max()),
        "oracle_slot_seconds": least,
        "accuracy_o": float(spare.sum()) / seconds,
        "accuracy_u": float(short.sum()) / seconds,
        "timeshare_o": float(np.count_nonzero(spare)) / seconds,
        "timeshare_u": float(np.count_nonzero(short)) / seconds,
    }


def latency_scores(series: Series, slo: float) -> dict[str, float | None]:
    """Queue time at the source and end-to-end latency, weighted by the time the job was up."""
    up = 1.0 - series.down
    delivering = np.where(series.delivered > 0.0, up, 0.0)
    late = np.count_nonzero(series.queue_latency > slo)
    return {
        **_spread("latency", series.queue_latency, up),
        **_spread("e2e", series.latency, delivering),
        "slo_seconds": float(late),
    }


def flow_scores(series: Series) -> dict[str, float | None]:
    """Records in and out, what was lost or left, CPU and downtime."""
    offered = float(series.offered.sum())
    up = 1.0 - series.down
    time_up = float(up.sum())
    return {
        "throughput": float(series.consumed.sum()) / offered if offered else None,
        "expired": float(series.expired.sum()),
        "lag_end": float(series.lag[-1]),
        "cpu_mean": float(series.cpu @ up) / time_up if time_up else None,
        "downtime": float(series.down.sum()),
    }


def stage_scores(
    times: Sequence[float], stages: Sequence[Stage], seconds: float
) -> dict[str, float | None]:
    """Per stage of constant rate: minutes to its last action, actions, whether it converged."""
    scores: dict[str, float | None] = {}
    for number, (start, planned_end, _) in enumerate(stages, 1):
        end = min(planned_end, seconds)
        within = [t for t in times if start <= t < end]
        last = within[-1] if within else start
        scores[f"stage{number}_minutes"] = (last - start) / 60.0
        scores[f"stage{number}_actions"] = float(len(within))
        scores[f"stage{number}_converged"] = float(last < end - SETTLED or not within)
    return scores


def drain_seconds(spec: FluidSpec, totals: Totals, slots: Mapping[str, int]) -> float:
    """Seconds to finish all waiting records if no more came: P_t − I_t of [arkian21, V-A].

    max over pools of Σ_i w_i / C_i(n): w_i records that operator i still has to process, its own
    and, by selectivity, those waiting above it; C_i(n) its capacity with all n slots of the pool.
    """
    pipeline = spec.pipeline
    work: dict[str, float] = {}
    for name in pipeline.order:
        above = sum(work[u] * pipeline.operators[u].selectivity for u in pipeline.upstream[name])
        work[name] = totals.operators[name].waiting + above
    by_pool = dict.fromkeys(pipeline.pools, 0.0)
    for name, records in work.items():
        pool = pipeline.operators[name].pool
        by_pool[pool] += records / spec.capacity(name, slots[pool])
    return max(by_pool.values())


def _last(series: Series) -> dict[str, int]:
    return {pool: int(slots[-1]) for pool, slots in series.slots.items()}


def _spread(name: str, values: Floats, weights: Floats) -> dict[str, float | None]:
    """Mean and quantiles: the smallest value that so large a share of the weight is at or below."""
    time = float(weights.sum())
    if not time:
        return {f"{name}_{what}": None for what in ("mean", *(w for w, _ in _SHARES))}
    order = np.argsort(values, kind="stable")
    ranked, below = values[order], np.cumsum(weights[order])
    # A hair less than the share, so that rounding in the sum does not skip to the next value.
    at = np.searchsorted(below, [share * below[-1] * (1.0 - 1e-12) for _, share in _SHARES])
    scores: dict[str, float | None] = {f"{name}_mean": float(values @ weights) / time}
    return scores | {
        f"{name}_{what}": float(ranked[i]) for (what, _), i in zip(_SHARES, at, strict=True)
    }
