"""How the traffic grows with the number of nodes under a load that only rises. [belkhiria19, §5.4]

Messages are added up over a trial period, in which every instance tries once. The exponent is the
slope of log(messages) over log(nodes). Under a load that rises in proportion to itself, as many
more instances come in every period, so a period's traffic is quadratic. Under one that rises by
the same amount at every step the same number comes in every period: a period's traffic is then
linear, and all traffic up to a size quadratic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.decentralized import counted_steps
from penstock.decentralized.draws import Floats
from penstock.decentralized.steps import Setup, rising

STEPS = 200
RATES = (0.01, 0.02, 0.03)  # of the load, per step
SLOPE = 250.0  # records per step, per operator
LARGE, FEWEST = 5, 5  # times the first size, and periods, for the exponent of all traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """One run: nodes and messages of each trial period, and all messages up to it."""

    nodes: Floats
    messages: Floats

    @property
    def per_period(self) -> float:
        """The exponent of a period's traffic."""
        some = self.messages > 0
        return _slope(self.nodes[some], self.messages[some])

    @property
    def in_all(self) -> float | None:
        """The exponent of all traffic so far; of a pipeline that stays small, nothing is known."""
        large = self.nodes >= LARGE * self.nodes[0]
        if large.sum() < FEWEST:
            return None
        return _slope(self.nodes[large], np.cumsum(self.messages)[large])


def in_proportion(rate: float, seed: int, setup: Setup | None = None) -> Traffic:
    """Under a load that rises by a share of itself at every step."""
    setup = setup or Setup()
    factors = (1.0 + rate) ** np.arange(STEPS)
    return _traffic(setup, np.outer(factors, setup.starts), seed)


def by_the_same_amount(seed: int, setup: Setup | None = None) -> Traffic:
    """Under a load that rises by the same amount at every step."""
    setup = setup or Setup()
    return _traffic(setup, rising(STEPS, setup.starts, slope=SLOPE), seed)


def _traffic(setup: Setup, load: Floats, seed: int) -> Traffic:
    course = counted_steps.simulate(setup, load, seed)
    periods = len(load) // setup.period
    nodes, messages = (
        counts.sum(axis=1)[: periods * setup.period].reshape(periods, setup.period)
        for counts in (course.known, course.messages)
    )
    return Traffic(nodes=nodes.mean(axis=1), messages=messages.sum(axis=1).astype(np.float64))


def _slope(x: Floats, y: Floats) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
