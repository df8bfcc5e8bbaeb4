"""The faults of the pseudo-code, one by one. [belkhiria19, Algorithms 2 to 11]"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.decentralized import literal
from penstock.decentralized.literal import PrintedPolicy
from penstock.decentralized.protocol import ScalingProtocol

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
        protocol=replace(REPAIRED, role=literal.duplication_by_membership),
        actions=2,
    ),
    ProtocolFault(
        where="Algorithm 9, lines 2 and 8",
        says="p ∈ succs, p ∈ preds: an instance that has not started has neither",
        protocol=replace(REPAIRED, role=literal.deletion_by_membership),
        actions=2,
    ),
    ProtocolFault(
        where="Algorithms 4 and 8, nbAck ← 0",
        says="a trial while an action is under way begins another and counts anew",
        protocol=replace(REPAIRED, free=literal.whenever_started),
        actions=2,
    ),
    ProtocolFault(
        where="Algorithm 10, line 4",
        says="a leaving instance sends its last records to successors that have forgotten it",
        protocol=replace(REPAIRED, targets=literal.whole_view),
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
