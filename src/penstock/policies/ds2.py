"""DS2: size every operator in one step. [kalavri18]"""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.core.model import Need, Proposal, Snapshot
from penstock.policies.demand import demand_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DS2:
    """slots_i = λ_i · f / μ_i                                        [kalavri18, eq. 7]

    λ_i demand in records/s · μ_i service rate of one slot while busy · f over-provisioning.
    Assumes linear speed-up and no skew; ignores lag. f = 1.2 as in the thesis; the DS2 project
    itself uses 1.0.

    >>> DS2()
    DS2(over_provisioning=1.2)
    """

    over_provisioning: float = 1.2

    def __post_init__(self) -> None:
        if not (math.isfinite(self.over_provisioning) and self.over_provisioning > 0):
            raise InputError(
                f"ds2: over_provisioning = {self.over_provisioning} must be above 0; 1.0 to 1.4 "
                "are usual"
            )

    def start(self, seed: int) -> None:
        """No memory."""
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        """λ·f/μ for every operator whose demand and service rate are known."""
        demand = demand_of(seen)
        needs: dict[str, Need] = {}
        words = []
        for name, rate in demand.items():
            mu = seen.operators[name].service_rate
            if rate == 0:  # idle for sure
                needs[name] = Need(slots=0.0)
                words.append(f"{name} idle")
            elif mu:
                slots = rate * self.over_provisioning / mu
                needs[name] = Need(slots=slots)
                words.append(f"{name} {slots:.2f} ({rate:,.0f}/s at {mu:,.0f}/s a slot)")
        if not needs:
            return Proposal(reason="no change: demand or service rate not measured"), None
        return Proposal(needs=needs, reason="demand over service rate: " + ", ".join(words)), None
