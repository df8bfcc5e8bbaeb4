"""HPA-CPU: the Kubernetes horizontal autoscaler on CPU, as the thesis runs it. [thesis, 4.1]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Need, Proposal, Snapshot


class Memory(TypedDict):
    """Desired sizes of the recent past: ``[time, slots]`` by pool, oldest first."""

    desired: dict[str, list[list[float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaCpu:
    """slots = max over the last ``window`` seconds of  p · cpu / ``target``   [thesis, eq. 4.1]

    p slots of the pool · cpu mean share of their allowance that they used. It sees a pool, not
    an operator, and sizes the pool. The maximum over 300 s is Kubernetes' stabilisation against
    early scale-down and belongs to the policy; Kubernetes' tolerance of 0.1 is a guard here.

    >>> HpaCpu(target=0.6)
    HpaCpu(target=0.6, window=300.0)
    """

    target: float = 0.7
    window: float = 300.0

    def __post_init__(self) -> None:
        if not 0 < self.target <= 1:
            raise InputError(f"hpa-cpu: target = {self.target} must be in (0, 1]")
        if not (math.isfinite(self.window) and self.window >= 0):
            raise InputError(f"hpa-cpu: window = {self.window} s must be ≥ 0")

    def start(self, seed: int) -> Memory:
        """No history yet."""
        return {"desired": {}}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """The largest size that the recent CPU figures called for."""
        desired: dict[str, list[list[float]]] = {}
        needs: dict[str, Need] = {}
        words = []
        for pool in seen.pipeline.pools:
            past = [v for v in memory["desired"].get(pool, []) if v[0] > seen.time - self.window]
            cpu = pool_cpu(seen, pool)
            if cpu:  # a running slot never reads exactly zero: then it was not measured
                past.append([seen.time, seen.slots(pool) * cpu / self.target])
                slots = max(v[1] for v in past)
                needs[pool] = Need(slots=slots)
                words.append(f"{pool} CPU {cpu:.0%} against {self.target:.0%}")
            desired[pool] = past
        if not needs:
            return Proposal(reason="no change: CPU not measured"), {"desired": desired}
        reason = f"{', '.join(words)}, most of the last {self.window:.0f} s"
        return Proposal(pool_needs=needs, reason=reason), {"desired": desired}


def pool_cpu(seen: Snapshot, pool: str) -> float | None:
    """Mean CPU use of a pool's slots, as a share of their allowance.

    From the slots themselves where each was measured, else from the operators of the pool,
    weighted by the slots they hold. ``None`` when neither is complete.
    """
    by_slot = [s.cpu for s in seen.pools[pool] if s.cpu is not None]
    if by_slot:
        # A slot that has just joined has no figure yet; the others speak for it.
        return sum(by_slot) / len(by_slot)
    seen_of = [seen.operators[m] for m in seen.pipeline.members(pool) if m in seen.operators]
    weight = sum(o.parallelism for o in seen_of)
    if not weight or any(o.cpu is None for o in seen_of):
        return None
    return sum(o.parallelism * (o.cpu or 0.0) for o in seen_of) / weight
