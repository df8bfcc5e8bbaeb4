"""The cap of a cluster: how a plan that is too large for it is made smaller."""

from __future__ import annotations

import heapq
from collections.abc import Mapping


def shrunk(planned: Mapping[str, int], room: int, minimum: int) -> dict[str, int]:
    """p' = m + round(f·(p − m)), f = (room − k·m) / (Σp − k·m); m the minimum, k the pools.

    With m = 1 this is the thesis's rule. Rounding may exceed the room by some slots: they are
    taken one by one from the pool that is largest then. Needs k·m ≤ room < Σp.

    >>> shrunk({"source": 10, "map": 30, "sink": 20}, 30, 1)
    {'source': 5, 'map': 15, 'sink': 10}
    """
    floor = minimum * len(planned)
    f = (room - floor) / (sum(planned.values()) - floor)
    sizes = {pool: minimum + round(f * (slots - minimum)) for pool, slots in planned.items()}
    excess = sum(sizes.values()) - room
    if excess > 0:
        # A heap: half of a thousand pools may have been rounded up.
        largest = [(-slots, place, pool) for place, (pool, slots) in enumerate(sizes.items())]
        heapq.heapify(largest)
        for _ in range(excess):
            slots, place, pool = largest[0]
            heapq.heapreplace(largest, (slots + 1, place, pool))
            sizes[pool] -= 1
    return sizes
