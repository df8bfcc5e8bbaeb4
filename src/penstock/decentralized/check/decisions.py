"""Whether the decisions of single instances add up to what the operator needs.

All n instances of an operator see the same load l. Their decisions, averaged over the draws, must
change the operator by L / (r·C) − n = n·(l / (r·C) − 1) where l / C is outside the thresholds, by
nothing where it is between them, and must not depend on the unit of l and C. [belkhiria19, §4.1]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from penstock.decentralized.policy import LocalPolicy, Probabilistic

DRAWS = 500  # in the middle of as many equal parts of [0, 1)
SIBLINGS = range(2, 7)
CAPACITIES = (500.0, 1.0)
SHARES = tuple(step / 20 for step in range(1, 41))  # of the capacity: 0.05 to 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """A load at which an operator changes by something else than what is missing, on average."""

    siblings: int
    load: float
    capacity: float
    expected: float
    found: float

    def __str__(self) -> str:
        return (
            f"{self.siblings} instances with a load of {self.load:g} of {self.capacity:g} each: "
            f"{self.expected:+.2f} instances needed, {self.found:+.2f} decided on average"
        )


def deviations(policy: LocalPolicy, wanted: Probabilistic) -> Iterator[Deviation]:
    """Everywhere on a grid, small operators first."""
    draws = [(n + 0.5) / DRAWS for n in range(DRAWS)]
    for siblings in SIBLINGS:
        for capacity in CAPACITIES:
            for share in SHARES:
                load = share * capacity
                found = siblings * fmean(
                    policy.decide(load, capacity, siblings, draw) for draw in draws
                )
                between = wanted.down < share < wanted.up
                expected = 0.0 if between else siblings * (share / wanted.ratio - 1.0)
                if abs(found - expected) > siblings / DRAWS:
                    yield Deviation(
                        siblings=siblings,
                        load=load,
                        capacity=capacity,
                        expected=expected,
                        found=found,
                    )
