"""MAP/PH/1/K: a server with room for K records, and what becomes of those that find it full.

Here they are lost. Where they wait outside instead, because the source keeps them (back pressure),
none is lost, all are served at the same times as with unlimited room, and the response time from
the arrival on is that of ``map_ph_1.solve``: the room only decides where a record waits. What
finite room between stations does is in ``blocking``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from penstock.core.errors import InputError
from penstock.queueing.map_ph_1 import Steps
from penstock.queueing.markovian import MarkovianArrivalProcess
from penstock.queueing.matrices import Floats, stationary
from penstock.queueing.phase_type import PhaseType

MOST_ROOM = 100_000
SOLVED = 256  # queues that are kept
SAME = 1e-14  # relative: from there on a level is as far from the full one as any below it
GONE = 1e-13  # a share of records that no percentile needs


@dataclass(frozen=True, eq=False)
class Finite:
    """A queue with finite room in equilibrium; response times are of the records it accepts.

    ``numbers[n]`` P(n records are there) at any time · ``loss`` share of the records that find it
    full · ``mean`` E[R] in seconds · ``behind[n, j]`` P(n others are there, phase j of the
    service) as an accepted record comes in; an empty server begins at once.
    """

    numbers: Floats
    loss: float
    mean: float
    behind: Floats
    service: PhaseType

    @property
    def busy(self) -> float:
        """Utilisation by what is accepted, below 1 whatever comes."""
        return 1.0 - float(self.numbers[0])

    def tail(self, time: float) -> float:
        """P(R > time) = Σ P(k steps in that time)·P(still there after k steps), uniformised."""
        if time <= 0.0:
            return 1.0
        left = self._left
        k = np.arange(len(left))
        steps = self._pace * time
        return float(np.exp(k * math.log(steps) - steps - gammaln(k + 1.0)) @ left)

    def percentile(self, q: float) -> float:
        """The time that a share q of the accepted records stays below.

        >>> queue = solve(MarkovianArrivalProcess.poisson(3.0), PhaseType.exponential(1.0), 1)
        >>> round(queue.percentile(0.95) / -math.log(0.05), 9)
        1.0
        """
        if not 0.0 < q < 1.0:
            raise InputError(f"percentile {q} must be in (0, 1)")
        high = self.mean
        while self.tail(high) > 1.0 - q:
            high *= 2.0
        return float(brentq(lambda t: self.tail(t) - (1.0 - q), 0.0, high, xtol=1e-12 * high))

    @property
    def _pace(self) -> float:
        """Steps per second of a chain that may also step to where it is."""
        return float(-np.diag(self.service.S).min())

    @cached_property
    def _left(self) -> Floats:
        """Share of the records still there after 0, 1, … steps; a service that ends is one less.

        It takes room² · phases² operations where the queue is mostly full.
        """
        steps = np.eye(self.service.order) + self.service.S / self._pace
        ends, alpha = self.service.exits / self._pace, self.service.alpha
        state = self.behind
        left = [float(state.sum())]
        while left[-1] > GONE:
            after = state @ steps
            after[:-1] += np.outer(state[1:] @ ends, alpha)
            while len(after) > 1 and after[-1].sum() < GONE / MOST_ROOM:
                after = after[:-1]
            state = after
            left.append(float(state.sum()))
        return np.array(left)


@lru_cache(maxsize=SOLVED)
def solve(arrivals: MarkovianArrivalProcess, service: PhaseType, room: int) -> Finite:
    """The queue that holds at most ``room`` records, the one in service included; any load.

    Levels are eliminated from the full one downwards: with n records, N_n = −(A1 + A0·N_(n+1)·A2)⁻¹
    and N_K = −(A1 + A0)⁻¹, as what comes then is lost; x_n = x_(n−1)·A0·N_n.

    >>> queue = solve(MarkovianArrivalProcess.poisson(2.0), PhaseType.exponential(1.0), 2)
    >>> round(queue.loss, 12), round(queue.mean, 12)
    (0.571428571429, 1.666666666667)
    """
    if not 1 <= room <= MOST_ROOM:
        raise InputError(
            f"room for {room} records must be from 1 to {MOST_ROOM}; "
            "more is unlimited for a queue that has a steady state"
        )
    steps = Steps.of(arrivals, service)
    inverses = _eliminated(steps, room)
    first = stationary(steps.empty + steps.begin @ inverses[0] @ steps.end)
    rows, weights = [first], [0.0]
    for level, inverse in enumerate(inverses):
        row = rows[-1] @ (steps.up if level else steps.begin) @ inverse
        mass = float(row.sum())  # kept apart: an overload grows beyond any number
        rows.append(row / mass)
        weights.append(weights[-1] + math.log(mass))
    numbers = np.exp(np.array(weights) - max(weights))
    numbers /= numbers.sum()
    coming = arrivals.D1.sum(axis=1) / arrivals.rate
    found = np.array([coming @ row.reshape(len(coming), -1) for row in rows[1:]])
    found *= numbers[1:, None]  # by those who come, how many are there and the phase of the service
    alone = float(coming @ rows[0] * numbers[0]) * service.alpha
    loss = float(found[-1].sum())
    behind = np.vstack([alone, found[:-1]]) / (1.0 - loss)
    number = float(np.arange(room + 1) @ numbers)
    mean = number / (arrivals.rate * (1.0 - loss))
    return Finite(numbers, loss, mean, behind, service)


def _eliminated(steps: Steps, room: int) -> list[Floats]:
    """N_1 … N_K; far from the full level they are all the same.

    A level is only left downwards, at the rates A2·1. The diagonal is set by that: under an
    overload, an error in what leaves would grow from level to level.
    """
    leaving = steps.down.sum(axis=1)
    local = steps.local + steps.up
    found: list[Floats] = []
    while len(found) < room:
        np.fill_diagonal(local, 0.0)
        np.fill_diagonal(local, -local.sum(axis=1) - leaving)
        found.append(np.asarray(np.linalg.inv(-local)))
        local = steps.local + steps.up @ found[-1] @ steps.down
        if len(found) > 1:
            change = np.abs(found[-1] - found[-2]).max()
            if change <= SAME * np.abs(found[-1]).max():
                found.extend(found[-1:] * (room - len(found)))
    return found[::-1]
