"""The oracle: the fewest slots that cover the offered rate at every instant, without downtime.

It knows the load and the service rates, changes its size for nothing and is never late. So it is
a reference that no auto-scaler can reach, and not a policy.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

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


def total(demand: Demand) -> Floats:
    """Slots of all pools together."""
    return np.asarray(sum(demand.values(), np.zeros(1)))
