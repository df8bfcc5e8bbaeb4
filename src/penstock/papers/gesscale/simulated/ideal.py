"""The ideal auto-scaler: the fewest replicas, on the best nodes, for the input of this second.

It knows the load and the fog, changes at once and for nothing. [arkian21, Figure 6]
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np

from penstock.papers.gesscale.simulated.setups import Setup
from penstock.simulator.series import Floats


@lru_cache(maxsize=64)
def most(setup: Setup, seed: int) -> tuple[float, ...]:
    """Records/s that 1, 2, … replicas carry on the best nodes for so many, without noise.

    Of all sets of nodes; never less than fewer replicas carry.
    """
    spec = setup.spec(seed)
    best = [
        max(spec.capacity(nodes) for nodes in combinations(spec.nodes, count))
        for count in range(1, setup.most + 1)
    ]
    return tuple(np.maximum.accumulate(best).tolist())


def replicas(setup: Setup, seed: int, offered: Floats) -> Floats:
    """For each of a series of rates; where none is enough, as many as there may be.

    Never below the least that all policies must keep.
    """
    wanted = np.searchsorted(most(setup, seed), offered * (1.0 - 1e-12)) + 1.0
    return np.clip(wanted, setup.least, setup.most)
