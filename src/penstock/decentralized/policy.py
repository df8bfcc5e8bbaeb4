"""The decision of one instance on what it sees itself. [belkhiria19, §4.1]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from penstock.core.errors import InputError


class LocalPolicy(Protocol):
    """Decides for one instance, on nothing but its own load and the number of its siblings."""

    def decide(self, load: float, capacity: float, siblings: int, draw: float) -> int:
        """How many instances this one adds: k > 0 new siblings, 0 none, −1 it leaves itself.

        ``load`` what it received and ``capacity`` what it can process in the same time ·
        ``siblings`` instances of its operator, itself among them · ``draw`` in [0, 1).
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Probabilistic:
    """p = (l·n / (r·C) − n) / n                                    [belkhiria19, §4.1 and Alg. 2]

    l ``load`` · C ``capacity`` · n ``siblings`` · r ``ratio``, the share of its capacity that an
    instance should have to do. At a load of ``up`` · C or more an instance adds ⌊p⌋ siblings, and
    one more with probability p − ⌊p⌋; at ``down`` · C or less it leaves with probability −p. All n
    instances together then change by what is missing, L / (r·C) − n, on average.

    As printed without the ⌊ ⌋ of Algorithm 2, n cancels: p = l / (r·C) − 1. An instance that does
    not know its siblings decides as well as one that does.

    >>> policy = Probabilistic()
    >>> policy.decide(400.0, 500.0, 7, 0.1), policy.decide(400.0, 500.0, 7, 0.2)
    (1, 0)
    >>> policy.decide(1200.0, 500.0, 7, 0.3), policy.decide(100.0, 500.0, 7, 0.3)
    (3, -1)
    """

    ratio: float = 0.7
    up: float = 0.8
    down: float = 0.6

    def __post_init__(self) -> None:
        check_thresholds("the policy of an instance", self.ratio, self.up, self.down)

    def factor(self, load: float, capacity: float, siblings: int) -> float:
        """p: what an instance adds on average; 0 between the thresholds, −p to leave."""
        busy = load / capacity
        if self.down < busy < self.up:
            return 0.0
        return (load * siblings / (self.ratio * capacity) - siblings) / siblings

    def decide(self, load: float, capacity: float, siblings: int, draw: float) -> int:
        """p with its broken part decided by the draw."""
        p = self.factor(load, capacity, siblings)
        whole = math.floor(p) if p > 0.0 else 0
        if draw < abs(p) - whole:
            return whole + 1 if p > 0.0 else -1
        return whole


def check_thresholds(what: str, ratio: float, up: float, down: float) -> None:
    """Refuse thresholds that would let an operator grow and shrink at the same load."""
    if not 0.0 <= down < ratio < up:
        raise InputError(f"{what}: 0 ≤ down {down} < ratio {ratio} < up {up} must hold")
    if not (ratio <= 1.0 and math.isfinite(up)):
        raise InputError(f"{what}: ratio {ratio} must be at most 1 and up {up} finite")
