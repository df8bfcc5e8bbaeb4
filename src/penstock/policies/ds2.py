"""DS2: size every operator in one step. [kalavri18]"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.core.model import Need, Proposal, Snapshot
from penstock.core.quick import maker
from penstock.policies.signals.demand import demand_of
from penstock.policies.signals.reason import NAMED, foremost

_need, _proposal = maker(Need), maker(Proposal)
BOUNDLESS = 1e6  # slots; stands for the infinite parallelism of a division by a busy time of 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DS2:
    """slots_i = λ_i · f / μ_i                                        [kalavri18, eq. 7]

    λ_i demand in records/s · μ_i service rate of one slot while busy · f over-provisioning.
    Assumes linear speed-up and no skew; ignores lag. f = 1.2 as in the thesis; the DS2 project
    itself uses 1.0.

    ``strict`` divides by a busy time of 0 as the thesis's set-up did: an operator that processed
    nothing in the window (the sink below a window that has not fired) needs boundless slots.

    >>> DS2()
    DS2(over_provisioning=1.2, strict=False)
    """

    over_provisioning: float = 1.2
    strict: bool = False

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
        for name, rate in demand.items():
            if rate == 0.0:  # idle for sure
                needs[name] = _need(slots=0.0)
            elif mu := seen.operators[name].service_rate:
                needs[name] = _need(slots=rate * self.over_provisioning / mu)
        if self.strict:
            for name, o in seen.operators.items():
                if o.busy == 0.0 and demand.get(name) != 0.0:
                    needs[name] = _need(slots=BOUNDLESS)
        if not needs:
            return Proposal(
                reason="no change: demand or service rate not measured", term="demand-not-measured"
            ), None
        return _proposal(needs=needs, reason=_reason(seen, demand, needs)), None


def _reason(seen: Snapshot, demand: dict[str, float], needs: dict[str, Need]) -> str:
    """One clause per operator, the largest need first; of many only those that change most."""
    operators = seen.operators
    names: Iterable[str] = needs
    more = ""
    if len(needs) > NAMED:
        names, more = foremost(needs, lambda name: operators[name].parallelism)
    names = sorted(names, key=lambda name: -needs[name].slots)
    # Formatting is most of what a decision costs, so rates are plain numbers, or thousands.
    large = max(demand.values(), default=0.0) >= 1e5
    clause = "%s %.2f (%.0fk/s at %.0fk/s a slot)" if large else "%s %.2f (%.0f/s at %.0f/s a slot)"
    unit = 1e-3 if large else 1.0
    words = []
    for name in names:
        slots, mu = needs[name].slots, operators[name].service_rate
        if slots == BOUNDLESS:
            words.append(f"{name} without bound (busy time 0)")
        elif slots and mu:
            words.append(clause % (name, slots, demand[name] * unit, mu * unit))
        else:
            words.append(f"{name} idle")
    return "demand over service rate: " + ", ".join(words) + more
