"""The pseudo-code as it is printed, place by place. [belkhiria19, Algorithms 2 to 11]

Nothing here is used to scale anything. Every place is a function or a switch of its own, so that
the checker can put it alone into the repaired protocol and show what goes wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.decentralized.instance import Instance
from penstock.decentralized.messages import NOBODY, Address, Addresses, Deletion, Duplication, Role
from penstock.decentralized.protocol import ScalingProtocol


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
    """Algorithm 5 alone."""
    if isinstance(message, Duplication):
        return by_membership(me, sender, message)
    return message.role


def deletion_by_membership(
    me: Instance, sender: Address, message: Duplication | Deletion
) -> Role | None:
    """Algorithm 9 alone."""
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

    ``floored`` Algorithm 2: ⌊n_diff⌋ · ``above_one`` Algorithm 4, line 5: n > 1 · ``whole``
    Algorithm 4, line 4: the draw is held against p, not p − ⌊p⌋ · ``negative`` Algorithm 8: a
    negative p is passed on · ``absolute`` Algorithm 11: l_t itself is held against the thresholds ·
    ``swapped`` the list of parameters: thres↓ = 0.8 and thres↑ = 0.6.

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
