"""DS2+: DS2 that counts the lag, the cost of a rescale and a busy ceiling. [kanis23, 8.3]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Proposal, Snapshot
from penstock.policies.signals.backlog import SOURCES_NOT_MEASURED, backlog_of, smoothed
from penstock.policies.signals.catch_up import Waste, check_pace, move_of, no_waste
from penstock.policies.signals.demand import demand_of
from penstock.policies.signals.learned import Learned, learn, load_of, steadied
from penstock.policies.signals.windows import Samples


class Memory(TypedDict):
    """What was learned of each operator, the rates offered of late, and what was wasted."""

    learned: dict[str, Learned]
    offered: Samples
    waste: Waste


@dataclass(frozen=True, slots=True, kw_only=True)
class DS2Plus:
    """slots_i = λ_i · f · g / (μ_i · κ_i),  g = 1 + (lag/λ + downtime) / ``catch_up``

    λ_i demand and μ_i measured service rate, as in DS2 [kalavri18, eq. 7] · f over-provisioning ·
    g makes room for the lag, and for what comes in while the job is stopped · κ_i the busy share
    that operator i reads when it can do no more: learned while records wait in front of it,
    ``busy_ceiling`` until then. DS2 takes it to be 1, and operators to be faster than they are.

    It acts when the pipeline is too small for the input, or its backlog drains too slowly. It
    shrinks when there is no backlog (``calm`` seconds of input are none) and what the smaller
    size would have saved so far comes to ``pay_back`` of what a stop costs, downtime · slots.
    ``downtime`` is for the first action, afterwards the measured one counts.

    >>> DS2Plus().catch_up
    1800.0
    """

    over_provisioning: float = 1.0
    catch_up: float = 1800.0
    pay_back: float = 0.5
    calm: float = 15.0
    downtime: float = 40.0
    busy_ceiling: float = 0.95

    def __post_init__(self) -> None:
        check_sizing("ds2+", self.over_provisioning, self.busy_ceiling)
        check_pace("ds2+", self)

    def start(self, seed: int) -> Memory:
        """Nothing learned yet."""
        return {"learned": {}, "offered": [], "waste": no_waste()}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """The sizes that carry the input and the backlog, if an action is worth its stop."""
        learned = learn(seen, memory["learned"])
        waiting = backlog_of(seen, downtime=self.downtime, calm=self.calm)
        backlog, offered, scale = smoothed(waiting, memory["offered"], seen.time)
        after: Memory = {"learned": learned, "offered": offered, "waste": memory["waste"]}
        if backlog is None:
            return SOURCES_NOT_MEASURED, after
        load = busy_slots(steadied(seen, learned, self.busy_ceiling), scale)
        if not load:
            return Proposal(
                reason="no change: demand or service rate not measured", term="demand-not-measured"
            ), after
        spare = dict.fromkeys(load, self.over_provisioning)
        move = move_of(self, seen, load, spare, backlog, memory["waste"])
        after["waste"] = move.waste
        return Proposal(needs=move.needs, reason=move.why, term=move.term), after


def busy_slots(seen: Snapshot, scale: float) -> dict[str, float]:
    """Slots that each operator would keep busy all the time: λ · scale / μ, where known."""
    cost = {n: 1.0 / o.service_rate for n, o in seen.operators.items() if o.service_rate}
    return load_of(demand_of(seen), cost, scale)


def check_sizing(policy: str, over_provisioning: float, busy_ceiling: float) -> None:
    """Refuse parameters that make no sense."""
    if not (math.isfinite(over_provisioning) and over_provisioning > 0):
        raise InputError(
            f"{policy}: over_provisioning = {over_provisioning} must be above 0; 1.0 to 1.4 "
            "are usual"
        )
    if not 0 < busy_ceiling <= 1:
        raise InputError(f"{policy}: busy_ceiling = {busy_ceiling} must be in (0, 1]")
