"""HPA-CPU: the Kubernetes horizontal autoscaler on CPU, as the thesis runs it. [kanis23, 6.7.3]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Need, Proposal, Snapshot
from penstock.policies.signals.cpu import pool_cpu
from penstock.policies.signals.reason import foremost
from penstock.policies.signals.warm_up import WARM_UP, Sizes, no_sizes, remember_sizes, warming_up
from penstock.policies.signals.windows import Samples, most, remember


class Memory(TypedDict):
    """Desired sizes of the recent past by pool, and the sizes they were taken at."""

    desired: dict[str, Samples]
    sizes: Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaCpu:
    """slots = max over the last ``window`` seconds of  p · cpu / ``target``   [kanis23, eq. 4.3]

    p slots of the pool · cpu mean share of their allowance that they used. It sees a pool, not
    an operator, and sizes the pool. The maximum over 300 s is Kubernetes' stabilisation against
    early scale-down and belongs to the policy; Kubernetes' tolerance of 0.1 is a guard here.

    Until ``warm_up`` seconds after a change of size is in force, CPU is not counted and nothing
    is proposed: the catch-up after a restart takes all the CPU there is, and the maximum would
    keep it. ``strict`` counts it, as the thesis's set-up did.

    >>> HpaCpu(target=0.6)
    HpaCpu(target=0.6, window=300.0, warm_up=120.0, strict=False)
    """

    target: float = 0.7
    window: float = 300.0
    warm_up: float = WARM_UP
    strict: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.target <= 1:
            raise InputError(f"hpa-cpu: target = {self.target} must be in (0, 1]")
        for name in ("window", "warm_up"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"hpa-cpu: {name} = {value} s must be ≥ 0")

    def start(self, seed: int) -> Memory:
        """No history yet."""
        return {"desired": {}, "sizes": no_sizes()}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """The largest size that the recent CPU figures called for."""
        sizes = remember_sizes(seen, memory["sizes"])
        early = not self.strict and warming_up(seen, sizes, self.warm_up)
        desired: dict[str, Samples] = {}
        needs: dict[str, Need] = {}
        used: dict[str, float] = {}
        for pool in seen.pipeline.pools:
            cpu = None if early else pool_cpu(seen, pool)
            # A running slot never reads exactly zero: then it was not measured.
            now = seen.slots(pool) * cpu / self.target if cpu else None
            past = remember(memory["desired"].get(pool, []), seen.time, now, self.window)
            desired[pool] = past
            if cpu:
                needs[pool] = Need(slots=most(past))
                used[pool] = cpu
        after: Memory = {"desired": desired, "sizes": sizes}
        term = ""
        if early:
            term = "warm-up"
            reason = f"no change: less than {self.warm_up:.0f} s since the last change of size"
        elif not needs:
            term = "cpu-not-measured"
            reason = "no change: CPU not measured"
        else:
            names, more = foremost(needs, seen.slots)
            words = [f"{pool} CPU {used[pool]:.0%} against {self.target:.0%}" for pool in names]
            reason = f"{', '.join(words)}{more}, most of the last {self.window:.0f} s"
        return Proposal(pool_needs=needs, reason=reason, term=term), after
