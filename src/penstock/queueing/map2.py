"""Markovian arrival processes with two phases: which exist, and the one with given moments.

Times are scaled to the mean 1; r_k = E[X^k]/k!, γ is the factor by which the autocorrelation
decays from one lag to the next. With h2 = r2 − 1 and h3 = r3 − r2²                  [heindl06]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import InputError
from penstock.queueing.markovian import MarkovianArrivalProcess

EDGE = 1e-12  # how close to a bound counts as on it
SLOWEST = 1.0 - 1e-9  # a γ of 1 would never change its phase
SLACK = 1e-7  # of a probability that rounding has brought out of [0, 1]


@dataclass(frozen=True, slots=True)
class Range:
    """From ``low`` to ``high``, both included unless they are infinite."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value is inside."""
        return self.low - EDGE <= value <= self.high + EDGE

    def clip(self, value: float) -> float:
        """The nearest value inside."""
        return min(max(value, self.low), self.high)


def third_moments(r2: float) -> Range | None:
    """The r3 that a MAP(2) with this r2 can have; ``None`` where no MAP(2) has that r2.

    r2 > 1: r3 > r2²; ¾ ≤ r2 < 1: h2·(1 − h2 − 2·√(−h2)) ≤ h3 ≤ −h2²; r2 = 1: exponential.
    """
    h2 = r2 - 1.0
    if h2 > EDGE:
        return Range(r2**2, math.inf)
    if h2 >= -EDGE:
        return Range(1.0, 1.0)
    if h2 < -0.25 - EDGE:
        return None
    low = h2 * (1.0 - h2 - 2.0 * math.sqrt(-h2))
    return Range(r2**2 + low, r2**2 - h2**2)


def decays(r2: float, r3: float) -> Range | None:
    """The γ that a MAP(2) with these moments can have; ``None`` where there is no such MAP(2).

    With b = h3 + h2² − h2 and c = √(b² + 4·h2³): r2 > 1: γ ≥ (b−c)/(b+c) if b ≥ 0, else
    γ ≥ −(h3 + h2²)/h2; always γ < 1. r2 < 1: −(h3 + h2²)/h2 ≤ γ ≤ −(h2 + √−h3)²/h2.
    """
    thirds = third_moments(r2)
    if thirds is None or not thirds.holds(r3):
        return None
    h2, h3 = r2 - 1.0, r3 - r2**2
    if abs(h2) <= EDGE or (h2 > 0.0 and h3 <= EDGE):
        return Range(0.0, 0.0)
    if h2 > 0.0:
        b = h3 + h2**2 - h2
        c = math.sqrt(b**2 + 4.0 * h2**3)
        low = (b - c) / (b + c) if b >= 0.0 else -(h3 + h2**2) / h2
        return Range(low, SLOWEST)
    return Range(-(h3 + h2**2) / h2, -((h2 + math.sqrt(-h3)) ** 2) / h2)


def map2(*, mean: float, r2: float, r3: float, gamma: float) -> MarkovianArrivalProcess:
    """The MAP(2) with these moments and this decay, as one of two canonical forms.

    [bodrog08, definitions 4 and 5]
    """
    possible = decays(r2, r3)
    if possible is None:
        thirds = third_moments(r2)
        bound = f"r3 in [{thirds.low:g}, {thirds.high:g}]" if thirds else "r2 ≥ 0.75"
        raise InputError(f"no MAP(2) has r2 {r2:g} and r3 {r3:g}; it takes {bound}")
    if not possible.holds(gamma):
        raise InputError(
            f"decay {gamma:g} of a MAP(2) with r2 {r2:g} and r3 {r3:g} must be in "
            f"[{possible.low:g}, {possible.high:g}]"
        )
    if abs(r2 - 1.0) <= EDGE:
        return MarkovianArrivalProcess.poisson(1.0 / mean)
    return _canonical(r2, r3, possible.clip(gamma)).scaled(mean)


def hyperexponential(*, r2: float, low: float, gamma: float) -> MarkovianArrivalProcess:
    """Two phases with a mean of ``low`` and of more than 1 between arrivals, kept with γ ≥ 0.

    m2 = low, m1 = (r2 − m2)/(1 − m2), π1 = (1 − m2)/(m1 − m2); D0 = −diag(1/m),
    D1 = diag(1/m)·(γ·I + (1−γ)·1π): its D0 is diagonal, so it can be composed.
    """
    if not (r2 > 1.0 and 0.0 < low < 1.0 and 0.0 <= gamma < 1.0):
        raise InputError(f"r2 {r2}, low {low}, γ {gamma} must be > 1, in (0, 1), in [0, 1)")
    means = np.array([(r2 - low) / (1.0 - low), low])
    share = (1.0 - low) / (means[0] - low)
    chain = gamma * np.eye(2) + (1.0 - gamma) * np.array([[share, 1.0 - share]] * 2)
    return MarkovianArrivalProcess(-np.diag(1.0 / means), chain / means[:, None])


def _canonical(r2: float, r3: float, gamma: float) -> MarkovianArrivalProcess:
    """1/m1 and 1/m2 are the rates of the phases: m² − s·m + p = 0 by the first three moments.

    Phase 1 leads to phase 2, D0 = [[−1/m1, (1−a)/m1], [0, −1/m2]], and
    γ ≥ 0: D1 = [[a/m1, 0], [(1−b)/m2, b/m2]], γ = a·b, m2·a² − (m1 + m2 − 1 + γ)·a + γ·m1 = 0;
    γ < 0: D1 = [[0, a/m1], [b/m2, (1−b)/m2]], γ = −a·b, b = (1 − m2 − γ)/m1.
    """
    h2, h3 = r2 - 1.0, r3 - r2**2
    s, p = (r3 - r2) / h2, h3 / h2
    root = math.sqrt(max(0.0, s**2 - 4.0 * p))
    longer = (s + root) / 2.0
    for m1, m2 in ((longer, p / longer), (p / longer, longer)):
        for a, b in _shares(m1, m2, gamma):
            if -SLACK <= a <= 1.0 + SLACK and -SLACK <= b <= 1.0 + SLACK:
                return _form(m1, m2, min(max(a, 0.0), 1.0), min(max(b, 0.0), 1.0), gamma >= 0.0)
    raise InputError(f"no MAP(2) found for r2 {r2!r}, r3 {r3!r}, γ {gamma!r}")


def _shares(m1: float, m2: float, gamma: float) -> list[tuple[float, float]]:
    """The a and b that could be."""
    if gamma < 0.0:
        b = (1.0 - m2 - gamma) / m1
        return [(-gamma / b, b)] if b > 0.0 else []
    half = (m1 + m2 - 1.0 + gamma) / 2.0
    root = math.sqrt(max(0.0, half**2 - m2 * gamma * m1))
    larger = (half + math.copysign(root, half)) / m2
    smaller = gamma * m1 / (m2 * larger) if larger else 0.0
    shares = [(a, gamma / a) for a in (smaller, larger) if a > 0.0]
    return [*shares, (0.0, 1.0 - (1.0 - m2) / m1)] if gamma == 0.0 else shares


def _form(m1: float, m2: float, a: float, b: float, first: bool) -> MarkovianArrivalProcess:
    D0 = [[-1.0 / m1, (1.0 - a) / m1], [0.0, -1.0 / m2]]
    if first:
        return MarkovianArrivalProcess(D0, [[a / m1, 0.0], [(1.0 - b) / m2, b / m2]])
    return MarkovianArrivalProcess(D0, [[0.0, a / m1], [b / m2, (1.0 - b) / m2]])
