"""How long an operator takes to the right size after its load has changed.

The load is constant, then another constant; the size is right when no instance would act on its
load any more and every instance that was announced works. [belkhiria19, §5.2]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.decentralized import counted_steps
from penstock.decentralized.steps import Setup, stepped

FACTORS = (0.25, 0.5, 1.25, 1.5, 2.0, 4.0)
AT, STEPS = 20, 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Steps until the size was right, of every operator of every run, after one kind of change."""

    factor: float
    steps: tuple[int, ...]

    @property
    def median(self) -> float:
        """Half of them are at most so long."""
        return float(np.median(self.steps))

    @property
    def p90(self) -> float:
        """Nine tenths of them are."""
        return float(np.quantile(self.steps, 0.9))


def delays(factor: float, seeds: list[int], setup: Setup | None = None) -> Delays:
    """Delays of all operators; the change comes at different moments between two trials."""
    setup = setup or Setup()
    found: list[int] = []
    for seed in seeds:
        at = AT + seed % setup.period
        load = stepped(STEPS, setup.starts, factor=factor, at=at)
        course = counted_steps.simulate(setup, load, seed)
        busy = course.load / (course.instances * setup.capacity)
        up = np.array([policy.up for policy in setup.policies])
        down = np.array([policy.down for policy in setup.policies])
        right = (busy > down) & (busy < up) & (course.known == course.instances)
        for operator in range(setup.operators):
            wrong = np.flatnonzero(~right[at:, operator])
            found.append(int(wrong[-1]) + 1 if len(wrong) else 0)
    return Delays(factor=factor, steps=tuple(found))
