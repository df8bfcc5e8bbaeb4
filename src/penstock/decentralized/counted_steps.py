"""Steps for many instances: views held per operator, messages counted by the paper's formulas.

In steps all neighbours of an instance know the same of it at the end of every step, so one number
per operator is the view of them all. A duplication of k new instances costs 2·(|succs| + |preds|)
+ k messages, one that leaves 2·(|succs| + |preds|), half of them in the step of the decision and
half, the acknowledgements, in the next; the k starts arrive in the one after. [belkhiria19, §5.4]
"""

from __future__ import annotations

import math

import numpy as np

from penstock.decentralized.draws import Floats, Whole, draws, salt
from penstock.decentralized.policy import Probabilistic
from penstock.decentralized.steps import PLACES, Course, Recorder, Setup


def simulate(setup: Setup, load: Floats, seed: int) -> Course:
    """The same course as message by message, draw for draw."""
    recorder = Recorder(setup, load)
    counts, steps = recorder.counts, len(load)
    members = [_Operator(setup, seed, number) for number in range(setup.operators)]
    for step in range(steps):
        for member in members:
            member.start(step)
        known = [member.known for member in members]
        counts["known"][step] = known
        counts["instances"][step] = [len(member.serials) for member in members]
        for number, member in enumerate(members):
            share = float(load[step, number]) / known[number]
            grown, beginners, left = member.decide(step, share, setup.policies[number])
            counts["grown"][step, number] = grown
            counts["left"][step, number] = left
            told = (beginners + left) * setup.neighbours(known, number)
            for later, messages in enumerate((told, told, grown)):
                if step + later < steps:
                    counts["messages"][step + later, number] += messages
    return recorder.course()


class _Operator:
    """The instances of one operator: serials and the steps that trials are counted from."""

    def __init__(self, setup: Setup, seed: int, number: int) -> None:
        self.setup = setup
        self.salt = salt(seed, number)
        self.serials: Whole = np.arange(setup.instances)
        offsets = [setup.offset(seed, number, serial) for serial in range(setup.instances)]
        self.phases: Whole = np.array(offsets, dtype=np.int64)
        self.created = setup.instances
        self.waiting: list[tuple[int, int, int]] = []  # step of the start, serials from, to

    @property
    def known(self) -> int:
        """Those that work and those that were announced."""
        return len(self.serials) + sum(end - first for _, first, end in self.waiting)

    def start(self, step: int) -> None:
        """Those announced two steps ago begin to work."""
        while self.waiting and self.waiting[0][0] == step:
            _, first, end = self.waiting.pop(0)
            self.serials = np.concatenate([self.serials, np.arange(first, end)])
            self.phases = np.concatenate([self.phases, np.full(end - first, step)])

    def decide(self, step: int, share: float, policy: Probabilistic) -> tuple[int, int, int]:
        """New ones, how many began a duplication, how many left."""
        p = policy.factor(share, self.setup.capacity, self.known)
        if p == 0.0:
            return 0, 0, 0
        turn = (step - self.phases) % self.setup.period == 0
        turn &= self.phases < step
        serials = self.serials[turn]
        luck = draws(self.salt, step * PLACES + serials)
        if p < 0.0:
            goes = (luck < -p) & (serials > 0)
            stays = np.ones(len(self.serials), dtype=bool)
            stays[np.flatnonzero(turn)[goes]] = False
            self.serials, self.phases = self.serials[stays], self.phases[stays]
            return 0, 0, int(goes.sum())
        whole = math.floor(p)
        more = luck < p - whole
        grown = whole * len(serials) + int(more.sum())
        if grown:
            self.waiting.append((step + 2, self.created, self.created + grown))
            self.created += grown
        return grown, len(serials) if whole else int(more.sum()), 0
