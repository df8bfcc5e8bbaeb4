"""All runs of the reproduction, once through. [belkhiria19, §5]

**Changes** [§5.2]: how long an operator takes to the right size after its load has changed. The
load is constant, then another constant; the size is right when no instance would act on its load
any more and every instance that was announced works.

**Growth** [§5.4]: how the traffic grows with the number of nodes under a load that only rises.
Messages are added up over a trial period, in which every instance tries once. The exponent is the
slope of log(messages) over log(nodes). Under a load that rises in proportion to itself, as many
more instances come in every period, so a period's traffic is quadratic. Under one that rises by
the same amount at every step the same number comes in every period: a period's traffic is then
linear, and all traffic up to a size quadratic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from penstock.decentralized import counted_steps, message_steps
from penstock.decentralized.draws import Floats
from penstock.decentralized.steps import Course, Setup, brownian, rising, stepped
from penstock.papers.decentralized.experiment import OTHERS, PAPER, STEPS, Scores, Setting, scores

FACTORS = (0.25, 0.5, 1.25, 1.5, 2.0, 4.0)  # by which the load changes
CHANGE_AT, CHANGE_STEPS = 20, 120
RATES = (0.01, 0.02, 0.03)  # of the load, per step, by which it rises
SLOPE = 250.0  # records per step, per operator
GROWN, FEWEST = 5, 5  # times the first size, and periods, for the exponent of all traffic
SIZES = (1_000, 100_000)  # instances in all
SPREAD = 0.02  # of the load of a large pipeline, per step
Progress = Callable[[int, int], None]  # finished pieces of work, all of them

One = TypeVar("One")
Other = TypeVar("Other")


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
        """Nine tenths of them are at most so long."""
        return float(np.quantile(self.steps, 0.9))


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
        large = self.nodes >= GROWN * self.nodes[0]
        if large.sum() < FEWEST:
            return None
        return _slope(self.nodes[large], np.cumsum(self.messages)[large])


@dataclass(frozen=True, slots=True, kw_only=True)
class Large:
    """A large pipeline: how it ended and how long it took."""

    instances: int
    engine: str
    accuracy: float
    messages: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that tables, findings and pictures are made of.

    runs: of the paper's experiment, message by message
    others: settings with their runs
    compared: figures of messages held against the formulas, of which so many ``differ``
    mistimed: steps at which the number of working instances is not what three steps to grow and
        two to leave make it
    in_proportion: traffic by the rate at which the load rises
    shown: the first run
    """

    runs: tuple[Scores, ...]
    others: tuple[tuple[Setting, tuple[Scores, ...]], ...]
    compared: int
    differ: int
    mistimed: int
    delays: tuple[Delays, ...]
    in_proportion: Mapping[float, tuple[Traffic, ...]]
    by_the_same_amount: tuple[Traffic, ...]
    large: tuple[Large, ...]
    shown: Course


def gather(seeds: Sequence[int], *, progress: Progress = lambda finished, total: None) -> Evidence:
    """Run everything; a minute for a hundred seeds."""
    total = len(seeds) * (len(OTHERS) + 1) + len(FACTORS) + len(RATES) + 4
    finished = 0

    def each(work: Callable[[One], Other], items: Iterable[One]) -> tuple[Other, ...]:
        nonlocal finished
        found = []
        for item in items:
            found.append(work(item))
            finished += 1
            progress(finished, total)
        return tuple(found)

    courses = each(PAPER.by_messages, seeds)
    differing = [
        course.messages != PAPER.course(seed).messages
        for course, seed in zip(courses, seeds, strict=True)
    ]
    proportional = each(lambda rate: tuple(in_proportion(rate, seed) for seed in seeds), RATES)
    (same_amount,) = each(lambda some: tuple(map(by_the_same_amount, some)), [seeds])
    sizes = ((SIZES[0], True), (SIZES[0], False), (SIZES[1], False))
    return Evidence(
        runs=tuple(map(scores, courses)),
        others=tuple((cell, each(partial(_scored, cell), seeds)) for cell in OTHERS),
        compared=sum(counts.size for counts in differing),
        differ=sum(int(counts.sum()) for counts in differing),
        mistimed=sum(mistimed_in(course, PAPER.setup) for course in courses),
        delays=each(lambda factor: delays(factor, seeds), FACTORS),
        in_proportion=dict(zip(RATES, proportional, strict=True)),
        by_the_same_amount=same_amount,
        large=each(lambda run: _large(run[0], seeds[0], by_messages=run[1]), sizes),
        shown=courses[0],
    )


def _scored(cell: Setting, seed: int) -> Scores:
    return scores(cell.course(seed))


def delays(factor: float, seeds: Sequence[int]) -> Delays:
    """Delays of all operators; the change comes at different moments between two trials."""
    setup = PAPER.setup
    up = np.array([policy.up for policy in setup.policies])
    down = np.array([policy.down for policy in setup.policies])
    found: list[int] = []
    for seed in seeds:
        at = CHANGE_AT + seed % setup.period
        load = stepped(CHANGE_STEPS, setup.starts, factor=factor, at=at)
        course = counted_steps.simulate(setup, load, seed)
        busy = course.load / (course.instances * setup.capacity)
        right = (busy > down) & (busy < up) & (course.known == course.instances)
        for operator in range(setup.operators):
            wrong = np.flatnonzero(~right[at:, operator])
            found.append(int(wrong[-1]) + 1 if len(wrong) else 0)
    return Delays(factor=factor, steps=tuple(found))


def in_proportion(rate: float, seed: int) -> Traffic:
    """Traffic under a load that rises by a share of itself at every step."""
    factors = (1.0 + rate) ** np.arange(STEPS)
    return _traffic(np.outer(factors, PAPER.setup.starts), seed)


def by_the_same_amount(seed: int) -> Traffic:
    """Traffic under a load that rises by the same amount at every step."""
    return _traffic(rising(STEPS, PAPER.setup.starts, slope=SLOPE), seed)


def _traffic(load: Floats, seed: int) -> Traffic:
    course, period = counted_steps.simulate(PAPER.setup, load, seed), PAPER.setup.period
    periods = len(load) // period
    nodes, messages = (
        counts.sum(axis=1)[: periods * period].reshape(periods, period)
        for counts in (course.known, course.messages)
    )
    return Traffic(nodes=nodes.mean(axis=1), messages=messages.sum(axis=1).astype(np.float64))


def _slope(x: Floats, y: Floats) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def mistimed_in(course: Course, setup: Setup) -> int:
    """Working at t: the first ones, those announced at t − 2, less those that left at t − 1."""
    grown, left = (np.cumsum(counts, axis=0) for counts in (course.grown, course.left))
    expected = np.full_like(course.instances, setup.instances)
    expected[2:] += grown[:-2]
    expected[1:] -= left[:-1]
    return int((course.instances != expected).sum())


def _large(size: int, seed: int, *, by_messages: bool) -> Large:
    setup = Setup(instances=size // Setup().operators)
    load = brownian(
        seed, STEPS, setup.starts, deviation=SPREAD * setup.starts[0], least=setup.capacity
    )
    simulate = message_steps.simulate if by_messages else counted_steps.simulate
    begun = time.process_time()
    course = simulate(setup, load, seed)
    return Large(
        instances=size,
        engine="every message" if by_messages else "by the formulas",
        accuracy=scores(course).accuracy,
        messages=int(course.messages.sum()),
        seconds=time.process_time() - begun,
    )
