"""What the operators of a pool need together, and how a plan shrinks under the cap."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from math import inf

from penstock.core.model import Need, Proposal, Snapshot


def need_of(pool: str, members: tuple[str, ...], proposal: Proposal, seen: Snapshot) -> Need | None:
    """The need of a pool: its own, or the sum of its operators'; ``None`` if there is none."""
    need = proposal.pool_needs.get(pool)
    if need is None:
        if len(members) == 1:
            need = proposal.needs.get(members[0])
        else:
            need = _sum(members, proposal.needs, seen)
    if need is None or not 0.0 <= need.slots < inf:  # false for NaN
        return None
    return need


def _sum(members: tuple[str, ...], needs: Mapping[str, Need], seen: Snapshot) -> Need | None:
    """What operators on one pool need together; one without a need keeps what it has."""
    slots, share, known = 0.0, None, False
    for member in members:
        need = needs.get(member)
        if need is None:
            slots += seen.operators[member].parallelism if member in seen.operators else 0.0
            continue
        known = True
        slots += need.slots
        if need.cpu_share is not None:
            share = max(share or 0.0, need.cpu_share)
    return Need(slots=slots, cpu_share=share) if known else None


def shrunk(planned: Mapping[str, int], room: int, minimum: int) -> dict[str, int]:
    """The sizes of a plan that is larger than its room, shrunk in proportion.

    p' = m + round(f·(p − m)), f = (room − k·m) / (Σp − k·m); m the minimum, k the pools.

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
