"""All runs of the reproduction, once through. [belkhiria19, §5]"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.decentralized import counted_steps, message_steps
from penstock.decentralized.steps import Course, Setup, brownian
from penstock.papers.decentralized import changes, growth
from penstock.papers.decentralized.changes import Delays
from penstock.papers.decentralized.experiment import OTHERS, PAPER, STEPS, Scores, Setting, scores
from penstock.papers.decentralized.growth import Traffic

SIZES = (1_000, 100_000)  # instances in all
SPREAD = 0.02  # of the load of a large pipeline, per step
Progress = Callable[[int, int], None]  # finished pieces of work, all of them


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
    total = len(seeds) * (len(OTHERS) + 1) + len(changes.FACTORS) + len(growth.RATES) + 4
    finished = 0

    def done() -> None:
        nonlocal finished
        finished += 1
        progress(finished, total)

    runs, compared, differ, mistimed = [], 0, 0, 0
    shown = PAPER.by_messages(seeds[0])
    for seed in seeds:
        course = PAPER.by_messages(seed)
        formula = PAPER.course(seed)
        compared += course.messages.size
        differ += int((course.messages != formula.messages).sum())
        mistimed += mistimed_in(course, PAPER.setup)
        runs.append(scores(course))
        done()
    others = []
    for cell in OTHERS:
        found = []
        for seed in seeds:
            found.append(scores(cell.course(seed)))
            done()
        others.append((cell, tuple(found)))
    delays = []
    for factor in changes.FACTORS:
        delays.append(changes.delays(factor, list(seeds)))
        done()
    in_proportion = {}
    for rate in growth.RATES:
        in_proportion[rate] = tuple(growth.in_proportion(rate, seed) for seed in seeds)
        done()
    same = tuple(map(growth.by_the_same_amount, seeds))
    done()
    large = []
    for size, by_messages in ((SIZES[0], True), (SIZES[0], False), (SIZES[1], False)):
        large.append(_large(size, seeds[0], by_messages=by_messages))
        done()
    return Evidence(
        runs=tuple(runs),
        others=tuple(others),
        compared=compared,
        differ=differ,
        mistimed=mistimed,
        delays=tuple(delays),
        in_proportion=in_proportion,
        by_the_same_amount=same,
        large=tuple(large),
        shown=shown,
    )


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
