"""The paper's simulator: a pipeline in discrete steps. [belkhiria19, §5.1]

In every step, in this order:

1. messages sent in the step before are received, and what they cause is sent;
2. the load of each operator is shared out evenly among the instances that its neighbours know;
3. instances whose turn it is decide, and begin all at once; their first message, *duplication* or
   *deletion*, is received in this same step, and what that causes is sent.

So growing takes three steps (announce and acknowledge, start, begin to work) and leaving two.
Messages count in the step in which they are received, as in the paper's Figure 4: there the
acknowledgements of three that leave in one step appear in the next.

A new instance is known, and gets its share, from the step in which it is announced; it stores its
records until it starts. That is why l·n is the load of the operator at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import InputError
from penstock.decentralized.draws import Floats, Whole, draw, salt
from penstock.decentralized.policy import Probabilistic

PLACES = 2**32  # instances an operator can ever have; draws are by step and serial


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A pipeline: operators in a row, each with a policy and so many instances at first.

    ``capacity`` records an instance can process in a step · ``period`` steps between two trials of
    an instance, counted from its start · ``spread`` whether the first instances have their first
    trial at different steps, at random; otherwise all together.
    """

    policies: tuple[Probabilistic, ...] = (Probabilistic(),) * 5
    instances: int = 7
    capacity: float = 500.0
    period: int = 5
    spread: bool = False

    def __post_init__(self) -> None:
        if len(self.policies) < 2:
            raise InputError("a pipeline of steps needs two operators: neighbours count siblings")
        if self.instances < 1 or self.period < 1:
            raise InputError(
                f"instances {self.instances} and period {self.period} must be at least 1"
            )
        if not self.capacity > 0.0:
            raise InputError(f"capacity {self.capacity} must be above 0")

    @property
    def operators(self) -> int:
        """How many operators there are."""
        return len(self.policies)

    @property
    def starts(self) -> list[float]:
        """The loads at which the first instances are what is needed: n·r·C."""
        return [self.instances * p.ratio * self.capacity for p in self.policies]

    def offset(self, seed: int, operator: int, serial: int) -> int:
        """The step that the trials of a first instance are counted from, 0 or before it."""
        if not self.spread:
            return 0
        return -int(draw(salt(seed, operator, 1), serial) * self.period)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Course:
    """What happened: arrays of steps × operators.

    load: records that came
    instances, known: instances that worked, and with them those that are announced
    ideal: L / (r·C)
    throughput: what the working instances can process of the load
    messages: of the operator's own scaling that were received
    tried: instances that decided
    grown, left: instances that were announced, and that began to leave
    """

    load: Floats
    instances: Whole
    known: Whole
    ideal: Floats
    throughput: Floats
    messages: Whole
    tried: Whole
    grown: Whole
    left: Whole


class Recorder:
    """Fills a course, step by step."""

    def __init__(self, setup: Setup, load: Floats) -> None:
        if load.ndim != 2 or load.shape[1] != setup.operators or not np.all(load > 0.0):
            raise InputError(
                f"the load must be above 0 for every step and each of {setup.operators} operators; "
                f"it has the shape {load.shape}"
            )
        self._setup = setup
        self.load = load
        self.counts = {
            name: np.zeros(load.shape, dtype=np.int64)
            for name in ("instances", "known", "messages", "tried", "grown", "left")
        }

    def course(self) -> Course:
        """What was filled in, and what follows from it."""
        ratios = np.array([policy.ratio for policy in self._setup.policies])
        capacity = self._setup.capacity
        return Course(
            load=self.load,
            ideal=self.load / (ratios * capacity),
            throughput=np.minimum(self.load, self.counts["instances"] * capacity),
            **self.counts,
        )


def brownian(
    seed: int, steps: int, starts: Sequence[float], *, deviation: float, least: float
) -> Floats:
    """L(t + 1) = L(t) + σ·N(0, 1), reflected at ``least``; operators are independent.

    ``starts`` L(0) of each operator · ``deviation`` σ. The paper says Brownian motion and no more.
    [belkhiria19, §5.1]

    >>> brownian(1, 3, [2450.0] * 5, deviation=250.0, least=350.0).shape
    (3, 5)
    """
    if not (deviation >= 0.0 and 0.0 < least <= min(starts)):
        raise InputError(
            f"a Brownian load needs a deviation ≥ 0, it has {deviation}, and a positive lower "
            f"bound of at most its start {min(starts)}, it has {least}"
        )
    moves = np.random.default_rng(seed).standard_normal((steps, len(starts))) * deviation
    loads = np.empty((steps, len(starts)))
    now = np.asarray(starts, dtype=np.float64)
    for step in range(steps):
        loads[step] = now
        now = least + np.abs(now + moves[step] - least)
    return loads


def stepped(steps: int, starts: Sequence[float], *, factor: float, at: int) -> Floats:
    """Constant, and ``factor`` times as much from step ``at`` on."""
    loads = np.tile(np.asarray(starts, dtype=np.float64), (steps, 1))
    loads[at:] *= factor
    return loads


def rising(steps: int, starts: Sequence[float], *, slope: float) -> Floats:
    """Grows by the same ``slope`` at every step, in every operator."""
    return np.asarray(starts, dtype=np.float64) + slope * np.arange(float(steps))[:, None]
