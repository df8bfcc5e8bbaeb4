"""Steps for many instances: views held per operator, messages counted by the paper's formulas.

In steps all neighbours of an instance know the same of it at the end of every step, so one number
per operator is the view of them all. A duplication of k new instances costs 2·(|succs| + |preds|)
+ k messages, one that leaves 2·(|succs| + |preds|), half of them in the step of the decision and
half, the acknowledgements, in the next; the k starts arrive in the one after. [belkhiria19, §5.4]
"""

from __future__ import annotations

import numpy as np

from penstock.decentralized.draws import Floats, Whole, draws, salt
from penstock.decentralized.steps import PLACES, Course, Recorder, Setup


def simulate(setup: Setup, load: Floats, seed: int) -> Course:
    """The same course as message by message, draw for draw."""
    recorder = Recorder(setup, load)
    counts, steps = recorder.counts, len(load)
    instances = _Instances(setup, seed)
    announced = np.zeros((steps + 2, setup.operators), dtype=np.int64)  # by the step of the start
    told = np.zeros_like(announced)  # acknowledgements, by the step of their receipt
    for step in range(steps):
        instances.start(step, announced[step])
        working = instances.working()
        known = working + announced[step + 1]
        shares = load[step] / known
        factors = np.array(
            [
                policy.factor(share, setup.capacity, n)
                for policy, share, n in zip(
                    setup.policies, shares.tolist(), known.tolist(), strict=True
                )
            ]
        )
        tried, grown, left = instances.decide(step, factors)
        begun = (np.minimum(grown, tried) + left) * _neighbours(known)
        announced[step + 2], told[step + 1] = grown, begun
        counts["instances"][step] = working
        counts["known"][step] = known
        counts["tried"][step] = tried
        counts["grown"][step] = grown
        counts["left"][step] = left
        counts["messages"][step] = begun + told[step] + announced[step]
    return recorder.course()


def _neighbours(known: Whole) -> Whole:
    """|succs| + |preds| of an instance of each operator in a row."""
    found = np.zeros_like(known)
    found[1:] += known[:-1]
    found[:-1] += known[1:]
    return found


class _Instances:
    """All that work: operators, serials, and the steps that trials are counted from."""

    def __init__(self, setup: Setup, seed: int) -> None:
        self._setup = setup
        each = range(setup.instances)
        self._salts = np.array([salt(seed, o) for o in range(setup.operators)], dtype=np.uint64)
        self._operators: Whole = np.repeat(np.arange(setup.operators), setup.instances)
        self._serials: Whole = np.tile(np.arange(setup.instances), setup.operators)
        self._phases: Whole = np.array(
            [setup.offset(seed, o, serial) for o in range(setup.operators) for serial in each]
        )
        self._created = np.full(setup.operators, setup.instances)

    def working(self) -> Whole:
        """How many there are of each operator."""
        return np.bincount(self._operators, minlength=self._setup.operators)

    def start(self, step: int, counts: Whole) -> None:
        """So many of each operator begin to work."""
        total = int(counts.sum())
        if not total:
            return
        operators = np.repeat(np.arange(self._setup.operators), counts)
        ends = np.cumsum(counts)
        serials = self._created[operators] + np.arange(total) - (ends - counts)[operators]
        self._created += counts
        self._operators = np.concatenate([self._operators, operators])
        self._serials = np.concatenate([self._serials, serials])
        self._phases = np.concatenate([self._phases, np.full(total, step)])

    def decide(self, step: int, factors: Floats) -> tuple[Whole, Whole, Whole]:
        """How many tried, how many they announced and how many left, by operator."""
        most = self._setup.operators
        turn = np.flatnonzero(
            ((step - self._phases) % self._setup.period == 0) & (self._phases < step)
        )
        operators, serials = self._operators[turn], self._serials[turn]
        tried = np.bincount(operators, minlength=most)
        none = np.zeros(most, dtype=np.int64)
        if not np.any(factors[tried > 0]):
            return tried, none, none
        p = factors[operators]
        whole = np.floor(np.maximum(p, 0.0))
        luck = draws(self._salts[operators], step * PLACES + serials)
        hit = luck < np.abs(p) - whole
        new = np.where(p > 0.0, whole + hit, 0.0)
        grown = np.bincount(operators, weights=new, minlength=most).astype(np.int64)
        goes = hit & (p < 0.0) & (serials > 0)
        left = np.bincount(operators[goes], minlength=most)
        if np.any(goes):
            stays = np.ones(len(self._serials), dtype=bool)
            stays[turn[goes]] = False
            self._operators = self._operators[stays]
            self._serials = self._serials[stays]
            self._phases = self._phases[stays]
        return tried, grown, left
