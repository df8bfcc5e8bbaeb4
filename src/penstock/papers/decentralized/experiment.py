"""The paper's experiment, with other settings beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.decentralized import Probabilistic, counted_steps, message_steps
from penstock.decentralized.draws import Floats
from penstock.decentralized.steps import Course, Setup, brownian
from penstock.report.statistics import Estimate, estimate

STEPS = 200
DEVIATION = 250.0  # records per step, half an instance's capacity; the paper does not say
LONGEST_LAG = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting of the experiment; ``deviation`` is that of the load at every step."""

    label: str
    setup: Setup = field(default_factory=Setup)
    deviation: float = DEVIATION

    def load(self, seed: int) -> Floats:
        """Brownian, from what the first instances are for, never below the work of one."""
        least = min(p.ratio for p in self.setup.policies) * self.setup.capacity
        return brownian(seed, STEPS, self.setup.starts, deviation=self.deviation, least=least)

    def course(self, seed: int) -> Course:
        """A run in which messages are counted by the formulas."""
        return counted_steps.simulate(self.setup, self.load(seed), seed)

    def by_messages(self, seed: int) -> Course:
        """The same run, with the protocol and every message."""
        return message_steps.simulate(self.setup, self.load(seed), seed)


PAPER = Setting(label="the paper's")


def _thresholds(up: float, down: float) -> Setting:
    policy = Probabilistic(up=up, down=down)
    setup = replace(PAPER.setup, policies=(policy,) * PAPER.setup.operators)
    return Setting(label=f"up {up:g}, down {down:g}", setup=setup)


OTHERS = (
    _thresholds(0.75, 0.65),
    _thresholds(0.85, 0.55),
    _thresholds(0.9, 0.5),
    *(
        Setting(
            label=f"every {n} steps" if n > 1 else "every step",
            setup=replace(PAPER.setup, period=n),
        )
        for n in (1, 2, 10, 20)
    ),
    Setting(label="trials spread", setup=replace(PAPER.setup, spread=True)),
    *(Setting(label=f"load deviation {d:g}", deviation=d) for d in (DEVIATION / 2, DEVIATION * 2)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Figures of one run.

    accuracy: mean over the steps of all instances over the ideal
    local: mean of the same of each operator
    highest, lowest: of the middle operator
    throughput: what could be processed of all records
    lowest_throughput: of the middle operator at its worst step
    messages, actions: per step
    fewest: instances of any operator at any step
    lag: steps by which the number of instances follows the load
    peak: most instances
    """

    accuracy: float
    local: float
    highest: float
    lowest: float
    throughput: float
    lowest_throughput: float
    messages: float
    actions: float
    fewest: int
    lag: int
    peak: int


def scores(course: Course) -> Scores:
    """The figures of one run."""
    steps, operators = course.load.shape
    middle = operators // 2
    nodes = course.instances.sum(axis=1)
    local = course.instances / course.ideal
    return Scores(
        accuracy=float((nodes / course.ideal.sum(axis=1)).mean()),
        local=float(local.mean()),
        highest=float(local[:, middle].max()),
        lowest=float(local[:, middle].min()),
        throughput=float(course.throughput.sum() / course.load.sum()),
        lowest_throughput=float((course.throughput / course.load)[:, middle].min()),
        messages=float(course.messages.sum() / steps),
        actions=float((course.grown + course.left).sum() / steps),
        fewest=int(course.instances.min()),
        lag=_lag(course.load.sum(axis=1), nodes.astype(np.float64)),
        peak=int(nodes.max()),
    )


def mean(runs: Sequence[Scores], figure: str) -> Estimate:
    """Mean and interval of a figure over the seeds."""
    return estimate([float(getattr(run, figure)) for run in runs])


def _lag(load: Floats, nodes: Floats) -> int:
    """The shift at which the number of nodes is most like the load."""
    last = len(load) - LONGEST_LAG
    with np.errstate(invalid="ignore"):  # nothing is like what does not move
        likeness = [
            float(np.corrcoef(load[:last], nodes[shift : last + shift])[0, 1])
            for shift in range(LONGEST_LAG + 1)
        ]
    return int(np.argmax(np.nan_to_num(likeness, nan=-1.0)))
