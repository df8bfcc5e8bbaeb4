"""CPU: how much of their allowance the slots of a pool used."""

from __future__ import annotations

from penstock.core.model import Snapshot


def pool_cpu(seen: Snapshot, pool: str) -> float | None:
    """Mean CPU use of a pool's slots, as a share of their allowance.

    From the slots themselves where each was measured, else from the operators of the pool,
    weighted by the slots they hold. ``None`` when neither is complete.
    """
    by_slot = [s.cpu for s in seen.pools[pool] if s.cpu is not None]
    if by_slot:
        # A slot that has just joined has no figure yet; the others speak for it.
        return sum(by_slot) / len(by_slot)
    weight = used = 0.0
    for name in seen.pipeline.members(pool):
        o = seen.operators.get(name)
        if o is None:
            continue
        if o.cpu is None:
            return None
        weight += o.parallelism
        used += o.parallelism * o.cpu
    return used / weight if weight else None
