"""The oracle: the fewest slots that cover the offered rate at every instant, without downtime.

It knows the load and the service rates, changes its size for nothing and is never late. So it is
a reference that no auto-scaler can reach, and not a policy.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penstock.capacity.curve import PowerCurve
from penstock.simulator import FluidSpec, Series
from penstock.simulator.series import Floats

Demand = Mapping[str, Floats]


def demand(spec: FluidSpec, series: Series) -> Demand:
    """Slots by pool, one figure per second, for the load that a run was offered."""
    sources = spec.pipeline.sources
    even = 1.0 / len(sources)
    rates = {name: series.offered * spec.source_shares.get(name, even) for name in sources}
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
