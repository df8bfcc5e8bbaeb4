"""The faults of the pseudo-code, one by one. [belkhiria19, Algorithms 2 to 11]"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from penstock.decentralized.instance import Instance
from penstock.decentralized.messages import NOBODY, Address, Addresses, Deletion, Duplication, Role
from penstock.decentralized.protocol import ScalingProtocol

# The pseudo-code as it is printed, place by place. [belkhiria19, Algorithms 2 to 11]
#
# Nothing here is used to scale anything. Every place is a function or a switch of its own, so that
# the checker can put it alone into the repaired protocol and show what goes wrong.


def whenever_started(me: Instance) -> bool:
    """Algorithms 4 and 8: any trial begins, and sets the count of acknowledgements to 0."""
    return me.phase in ("active", "duplicating", "leaving")


def by_membership(me: Instance, sender: Address, message: Duplication | Deletion) -> Role | None:
    """Algorithms 5 and 9: p ∈ succs, else p ∈ preds; an instance not started has neither."""
    if me.phase == "inactive":
        return None
    if sender in me.succs:
        return "successor"
    return "predecessor" if sender in me.preds else None


def duplication_by_membership(
    me: Instance, sender: Address, message: Duplication | Deletion
) -> Role | None:
    """The role of a sender by Algorithm 5, that of a deletion as it is stated."""
    if isinstance(message, Duplication):
        return by_membership(me, sender, message)
    return message.role


def deletion_by_membership(
    me: Instance, sender: Address, message: Duplication | Deletion
) -> Role | None:
    """The role of a sender by Algorithm 9, that of a duplication as it is stated."""
    if isinstance(message, Deletion):
        return by_membership(me, sender, message)
    return message.role


def whole_view(me: Instance) -> Addresses:
    """Algorithm 10, line 4: while it waits, a leaving instance sends to all it knows."""
    return NOBODY if me.phase in ("inactive", "terminated") else me.succs


PRINTED = ScalingProtocol(
    free=whenever_started, role=by_membership, targets=whole_view, hands_down=False, alone=False
)
"""All of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedPolicy:
    """Algorithms 2, 3, 4, 8 and 11 to the letter; each switch is one place of them.

    floored: Algorithm 2: ⌊n_diff⌋
    above_one: Algorithm 4, line 5: n > 1
    whole: Algorithm 4, line 4: the draw is held against p, not p − ⌊p⌋
    negative: Algorithm 8: a negative p is passed on
    absolute: Algorithm 11: l_t itself is held against the thresholds
    swapped: the list of parameters: thres↓ = 0.8 and thres↑ = 0.6

    >>> PrintedPolicy().decide(450.0, 500.0, 7, 0.01)
    0
    """

    ratio: float = 0.7
    top: float = 0.8
    bottom: float = 0.6
    floored: bool = True
    above_one: bool = True
    whole: bool = True
    negative: bool = True
    absolute: bool = True
    swapped: bool = True

    def decide(self, load: float, capacity: float, siblings: int, draw: float) -> int:
        """Algorithm 11; as in a ``LocalPolicy``."""
        up, down = (self.bottom, self.top) if self.swapped else (self.top, self.bottom)
        held = load if self.absolute else load / capacity
        if held >= up:
            return self._scale_out(self._probability(load, capacity, siblings), draw)
        if held <= down:
            p = self._probability(load, capacity, siblings)
            return -1 if draw < (p if self.negative else -p) else 0
        return 0

    def _probability(self, load: float, capacity: float, siblings: int) -> float:
        difference = load * siblings / (self.ratio * capacity) - siblings
        return (math.floor(difference) if self.floored else difference) / siblings

    def _scale_out(self, p: float, draw: float) -> int:
        n = math.floor(p) + (draw < (p if self.whole else p - math.floor(p)))
        return n if n > (1 if self.above_one else 0) else 0


REPAIRED = ScalingProtocol()
CLEAN = PrintedPolicy(
    floored=False, above_one=False, whole=False, negative=False, absolute=False, swapped=False
)
"""The printed procedures with every place repaired: the same decisions as ``Probabilistic``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolFault:
    """One place as it is printed, everything else repaired; it needs so many actions to show."""

    where: str
    says: str
    protocol: ScalingProtocol
    actions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFault:
    """One place of the decision as it is printed, everything else repaired."""

    where: str
    says: str
    policy: PrintedPolicy


PROTOCOL = (
    ProtocolFault(
        where="Algorithm 5, lines 2 and 8",
        says="p ∈ succs, p ∈ preds: an instance that has not started has neither",
        protocol=replace(REPAIRED, role=duplication_by_membership),
        actions=2,
    ),
    ProtocolFault(
        where="Algorithm 9, lines 2 and 8",
        says="p ∈ succs, p ∈ preds: an instance that has not started has neither",
        protocol=replace(REPAIRED, role=deletion_by_membership),
        actions=2,
    ),
    ProtocolFault(
        where="Algorithms 4 and 8, nbAck ← 0",
        says="a trial while an action is under way begins another and counts anew",
        protocol=replace(REPAIRED, free=whenever_started),
        actions=2,
    ),
    ProtocolFault(
        where="Algorithm 10, line 4",
        says="a leaving instance sends its last records to successors that have forgotten it",
        protocol=replace(REPAIRED, targets=whole_view),
        actions=2,
    ),
    ProtocolFault(
        where="Algorithm 6, line 5",
        says="new instances start without a neighbour that is about to tell them that it leaves",
        protocol=replace(REPAIRED, hands_down=False),
        actions=3,
    ),
    ProtocolFault(
        where="Algorithms 4 and 8, nbAckExpected",
        says="an instance without neighbours waits for the first of no acknowledgements",
        protocol=replace(REPAIRED, alone=False),
        actions=1,
    ),
)
DECISION = (
    DecisionFault(
        where="Algorithm 2, line 2",
        says="⌊n_diff⌋: a broken number of instances is rounded down; the text does not",
        policy=replace(CLEAN, floored=True),
    ),
    DecisionFault(
        where="Algorithm 4, line 4",
        says="applyProba(p) of the whole p: above 1 it always adds one more",
        policy=replace(CLEAN, whole=True),
    ),
    DecisionFault(
        where="Algorithm 4, line 5",
        says="n > 1: an instance that should create one creates none",
        policy=replace(CLEAN, above_one=True),
    ),
    DecisionFault(
        where="Algorithm 8, lines 2 and 3",
        says="applyProba of a negative p: nobody ever leaves",
        policy=replace(CLEAN, negative=True),
    ),
    DecisionFault(
        where="Algorithm 11, lines 1 and 3",
        says="l_t, in records, is held against thresholds that are shares of the capacity",
        policy=replace(CLEAN, absolute=True),
    ),
    DecisionFault(
        where="Section 5.1, parameters",
        says="thres↓ = 0.8 and thres↑ = 0.6: grows from 0.6 on",
        policy=replace(CLEAN, swapped=True),
    ),
)
