"""The oracle: the fewest slots that cover the offered rate at every instant, without downtime.

It knows the load and the service rates, changes its size for nothing and is never late. So it is
a reference that no auto-scaler can reach, and not a policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from penstock.capacity.curve import PowerCurve
from penstock.simulator import FluidSpec, Series
from penstock.simulator.series import Floats

Demand = Mapping[str, Floats]


def demand(spec: FluidSpec, series: Series) -> Demand:
    """Slots by pool, one figure per second, for the load that a run was offered."""
    return demand_for(spec, series.offered)


def demand_behind(spec: FluidSpec, series: Series, lag: float) -> Demand:
    """The same for an oracle that may be ``lag`` seconds behind."""
    return demand_for(spec, smoothed(series.offered, lag))


def demand_for(spec: FluidSpec, offered: Floats) -> Demand:
    """Slots by pool for each of some rates of all sources together."""
    sources = spec.pipeline.sources
    even = 1.0 / len(sources)
    rates = {name: offered * spec.source_shares.get(name, even) for name in sources}
    return {
        pool: np.asarray(slots, dtype=float)
        for pool, slots in spec.fewest_slots_series(rates).items()
    }


def demand_on(curve: PowerCurve, rates: Floats, most: int) -> Floats:
    """Slots of one pool whose throughput was measured, for each rate (records/s); ≤ ``most``.

    >>> demand_on(PowerCurve(alpha=100.0, beta=0.5), np.array([0.0, 100.0, 150.0, 900.0]), 8)
    array([1., 1., 3., 8.])
    """
    different, where = np.unique(rates, return_inverse=True)
    fewest = np.array([curve.fewest(float(rate), most) for rate in different], dtype=float)
    return np.asarray(fewest[where])


def total(demand: Demand) -> Floats:
    """Slots of all pools together."""
    return np.asarray(sum(demand.values(), np.zeros(1)))


def late_scores(demand: Demand, behind: Demand) -> dict[str, float]:
    """What an oracle has that may be as late as the objective allows; never more than the other.

    behind: the fewest slots for the smoothed load
    """
    now, later = float(total(demand).sum()), float(total(behind).sum())
    seconds = len(total(demand))
    return {
        "late_oracle_slots_mean": min(now, later) / seconds,
        "late_oracle_slot_seconds": min(now, later),
    }


def smoothed(rates: Floats, lag: float) -> Floats:
    """The rates, one per second, at which one works who may be ``lag`` seconds behind.

    The path that changes its rate least between what has come until a moment, and what had come
    ``lag`` seconds before: for costs that grow with the rate, and faster the higher it is, no other
    way is cheaper. All is done at the end. [salehi98]

    >>> smoothed(np.array([0.0, 9.0, 0.0, 0.0]), 2.0)
    array([0., 3., 3., 3.])
    """
    return _smoothed(rates.tobytes(), lag) if lag > 0 else rates


@lru_cache(maxsize=4)  # the policies of a comparison have the same load
def _smoothed(load: bytes, lag: float) -> Floats:
    rates = np.frombuffer(load)
    step = max(1, int(lag / FINENESS))
    edges = np.unique(np.append(np.arange(0, len(rates), step), len(rates))).astype(float)
    offered = np.concatenate(([0.0], np.cumsum(rates)))
    seconds = np.arange(len(offered), dtype=float)
    most = np.interp(edges, seconds, offered)
    least = np.interp(edges - lag, seconds, offered)
    least[-1] = most[-1]
    done = np.interp(seconds, *_tautest(edges, least, most))
    found = np.maximum(np.diff(done), 0.0)
    found.setflags(write=False)
    return np.asarray(found)


FINENESS = 8  # moments within a lag at which the path is kept within its bounds


def _tautest(times: Floats, least: Floats, most: Floats) -> tuple[Floats, Floats]:
    """The corners of the straightest path from the first point to the last within the bounds."""
    xs, ys = [float(times[0])], [float(most[0])]
    t, low, high = times.tolist(), least.tolist(), most.tolist()
    at, last = 0, len(t) - 1
    while at < last:
        x, y = t[at], ys[-1]
        steepest, flattest = float("inf"), float("-inf")
        up = down = i = at + 1
        while i <= last:
            width = t[i] - x
            above, below = (high[i] - y) / width, (low[i] - y) / width
            if below > steepest:  # it has to bend upwards where it touched the upper bound
                at, bend = up, high[up]
                break
            if above < flattest:
                at, bend = down, low[down]
                break
            if above <= steepest:
                steepest, up = above, i
            if below >= flattest:
                flattest, down = below, i
            i += 1
        else:
            at, bend = last, low[last]
        xs.append(t[at])
        ys.append(bend)
    return np.array(xs), np.array(ys)
