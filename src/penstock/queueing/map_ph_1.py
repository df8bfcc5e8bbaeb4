"""MAP/PH/1: one server, served in order, and how long arrivals stay there. [he12, ozawa06]

With service (α, S), s = −S·1, the numbers in the system are a quasi birth and death process:
A0 = D1⊗I up, A1 = D0⊕S, A2 = I⊗sα down. G solves A2 + A1·G + A0·G² = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import expm

from penstock.core.errors import InputError
from penstock.queueing.markovian import MarkovianArrivalProcess
from penstock.queueing.matrices import Floats, kron, stationary
from penstock.queueing.phase_type import PhaseType

MOST = 0.98  # utilisation: above it the figures mean nothing, and soon the numerics neither
MASS = 1e-4  # by which probabilities may miss 1
ROUNDS = 60  # of cyclic reduction, each of which doubles the levels it reaches
SOLVED = 4096  # queues that are kept: a policy asks for the same ones again
DIVISIONS = 64  # of the mean, for percentiles


@dataclass(frozen=True, eq=False)
class Sojourn:
    """A response time: P(R > t) = η·e^(Tt)·1, E[R] = η·(−T)⁻¹·1; η may sum to less than 1."""

    eta: Floats
    T: Floats

    @cached_property
    def mean(self) -> float:
        """E[R] in seconds."""
        return float(self.eta @ np.linalg.solve(-self.T, np.ones(len(self.eta))))

    def tail(self, time: float) -> float:
        """P(R > time)."""
        return float((self.eta @ expm(self.T * time)).sum())

    def percentile(self, q: float) -> float:
        """The time that a share q stays below: by squares of e^(Th), then by Newton's method.

        >>> import math
        >>> r = solve(MarkovianArrivalProcess.poisson(0.5), PhaseType.exponential(1.0))
        >>> round(r.percentile(0.95) / (-math.log(0.05) * 2.0), 9)
        1.0
        """
        if not 0.0 < q < 1.0:
            raise InputError(f"percentile {q} must be in (0, 1)")
        left = 1.0 - q
        if float(self.eta.sum()) <= left:
            return 0.0
        step = self.mean / DIVISIONS
        powers = [expm(self.T * step)]
        while float((self.eta @ powers[-1]).sum()) > left:
            powers.append(powers[-1] @ powers[-1])
        time, row = 0.0, self.eta
        for k in range(len(powers) - 1, -1, -1):
            further = row @ powers[k]
            if float(further.sum()) > left:
                time, row = time + step * 2.0**k, further
        return time + self._rest(row, left, step)

    def scaled(self, mean: float) -> Sojourn:
        """The same law on another clock, so that its mean is this."""
        return Sojourn(self.eta, self.T * (self.mean / mean))

    def __add__(self, other: Sojourn) -> Sojourn:
        """One after the other, as if they were independent."""
        ends = -self.T.sum(axis=1)
        corner = np.outer(ends, other.eta)
        below = np.zeros((len(other.eta), len(self.eta)))
        zero = (1.0 - float(self.eta.sum())) * other.eta
        return Sojourn(
            np.concatenate([self.eta, zero]), np.block([[self.T, corner], [below, other.T]])
        )

    def _rest(self, row: Floats, left: float, step: float) -> float:
        """Newton's method for the last piece, shorter than a step; the tail is smooth there."""
        rest = 0.0
        for _ in range(20):
            here = row @ expm(self.T * rest)
            miss = float(here.sum()) - left
            slope = float((here @ self.T).sum())
            move = -miss / slope if slope else 0.0
            rest = min(max(rest + move, 0.0), 2.0 * step)
            if abs(move) <= 1e-12 * step:
                break
        return rest


@dataclass(frozen=True, eq=False)
class Steps:
    """Rates between the states of a queue, per mean service so that none is badly scaled.

    From one number of records to the next higher, to the same and to the next lower; ``empty``,
    ``begin`` and ``end`` within the empty queue, out of it and into it.
    """

    up: Floats
    local: Floats
    down: Floats
    empty: Floats
    begin: Floats
    end: Floats

    @classmethod
    def of(cls, arrivals: MarkovianArrivalProcess, service: PhaseType) -> Steps:
        """A0 = D1⊗I, A1 = D0⊕S, A2 = I⊗sα; D0, D1⊗α, I⊗s."""
        D0, D1 = arrivals.D0 * service.mean, arrivals.D1 * service.mean
        S, s = service.S * service.mean, service.exits * service.mean
        phases, steps = np.eye(len(D0)), np.eye(len(S))
        return cls(
            up=kron(D1, steps),
            local=kron(D0, steps) + kron(phases, S),
            down=kron(phases, np.outer(s, service.alpha)),
            empty=D0,
            begin=kron(D1, service.alpha[None, :]),
            end=kron(phases, s[:, None]),
        )


@lru_cache(maxsize=SOLVED)
def solve(arrivals: MarkovianArrivalProcess, service: PhaseType) -> Sojourn:
    """The response time in equilibrium; refuses a utilisation from 0.98 on."""
    load = arrivals.rate * service.mean
    if not load < MOST:
        raise InputError(f"utilisation {load:.4g} must be < {MOST:g}: there is no steady state")
    steps = Steps.of(arrivals, service)
    A0, A1, A2 = steps.up, steps.local, steps.down
    G = first_passage(A0, A1, A2)
    inner = np.linalg.inv(-A1 - A0 @ G)
    up = inner @ A0
    x0 = stationary(steps.empty + steps.begin @ inner @ steps.end) * (1.0 - load)
    z = x0 @ steps.begin / load
    eta = np.linalg.solve((np.eye(len(up)) - up).T, z)
    mass = float(eta.sum())
    if not abs(mass - 1.0) < MASS:
        raise InputError(
            f"the response time at utilisation {load:.4g} has the mass {mass:.6g} instead of 1: "
            "the arrivals are correlated over too long a time to be computed"
        )
    T = kron(np.eye(arrivals.order), service.S) + up @ A2 / service.mean
    return Sojourn(np.asarray(eta / mass), T)


def first_passage(A0: Floats, A1: Floats, A2: Floats) -> Floats:
    """G, by cyclic reduction on the shifted equation.                          [bini05, §8.5]

    The shift takes the eigenvalue 1 of G away, which makes it slow near utilisation 1.
    """
    size = len(A1)
    shift = np.full((size, size), 1.0 / size)
    down, local, up = A2 - A2 @ shift, A1 + A0 @ shift, A0
    hat, first = local, down
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(-local)
        left, right = up @ inverse, down @ inverse
        forth, back = left @ down, right @ up
        local = local + forth + back
        hat = hat + forth
        up, down = left @ up, right @ down
        if min(float(np.abs(up).max()), float(np.abs(down).max())) < 1e-16:
            break
    G = np.linalg.solve(-hat, first) + shift
    return np.asarray(G)
