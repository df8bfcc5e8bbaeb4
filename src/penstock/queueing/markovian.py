"""Markovian arrival processes: arrivals come faster in some phases than in others. [neuts79]"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from penstock.core.errors import InputError
from penstock.queueing.matrices import TOLERANCE, Floats, kron, matrix, sampled_chain, stationary

LEAST_DRAWS = 256  # transitions drawn at a time


@dataclass(frozen=True, eq=False)
class MarkovianArrivalProcess:
    """Phases that change at the rates ``D0`` without and ``D1`` with an arrival.  [neuts79]

    D0 + D1 is the generator of the phases. P = (−D0)⁻¹·D1 is the chain of the phases that arrivals
    leave behind, π its equilibrium; X_k are the times between arrivals.

    >>> poisson = MarkovianArrivalProcess([[-2.0]], [[2.0]])
    >>> poisson.mean, poisson.scv
    (0.5, 1.0)
    """

    D0: Floats
    D1: Floats

    def __init__(self, D0: npt.ArrayLike, D1: npt.ArrayLike) -> None:
        object.__setattr__(self, "D0", matrix(D0))
        object.__setattr__(self, "D1", matrix(D1))
        _check(self.D0, self.D1)

    @cached_property
    def _bytes(self) -> bytes:
        return self.D0.tobytes() + self.D1.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MarkovianArrivalProcess) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    @classmethod
    def poisson(cls, rate: float) -> Self:
        """Independent, exponentially distributed times."""
        return cls([[-rate]], [[rate]])

    @property
    def order(self) -> int:
        """The number of phases."""
        return len(self.D0)

    @cached_property
    def _inverse(self) -> Floats:
        """(−D0)⁻¹."""
        return np.asarray(np.linalg.inv(-self.D0))

    @cached_property
    def embedded(self) -> Floats:
        """P = (−D0)⁻¹·D1, from one arrival to the next."""
        return self._inverse @ self.D1

    @cached_property
    def phases(self) -> Floats:
        """Equilibrium of the phases at any time."""
        return stationary(self.D0 + self.D1)

    @cached_property
    def at_arrivals(self) -> Floats:
        """π, the equilibrium of the phases that arrivals leave behind."""
        weights = self.phases @ self.D1
        return np.asarray(weights / weights.sum())

    @cached_property
    def rate(self) -> float:
        """λ, arrivals per second."""
        return float(self.phases @ self.D1.sum(axis=1))

    @cached_property
    def mean(self) -> float:
        """E[X]."""
        return self.moment(1)

    @cached_property
    def scv(self) -> float:
        """Squared coefficient of variation, Var[X]/E[X]²; 1 for a Poisson process."""
        return self.moment(2) / self.mean**2 - 1.0

    def moment(self, k: int) -> float:
        """E[X^k] = k!·π·(−D0)^(−k)·1.                               [russo21, eq. 1]"""
        vector = np.ones(self.order)
        for _ in range(k):
            vector = self._inverse @ vector
        return math.factorial(k) * float(self.at_arrivals @ vector)

    def autocorrelation(self, lags: npt.ArrayLike) -> Floats:
        """ρ_k = (π·(−D0)⁻¹·P^k·(−D0)⁻¹·1 − E[X]²) / Var[X], for each lag k ≥ 0.

        [russo21, eq. 2] subtracts E[X²]; what is subtracted must be E[X]².
        """
        wanted = np.asarray(lags, dtype=np.intp)
        ordered, places = np.unique(wanted, return_inverse=True)
        row = self.at_arrivals @ self._inverse - self.mean * self.at_arrivals
        column = self._inverse.sum(axis=1)
        products, before = np.empty(len(ordered)), 0
        for place, lag in enumerate(ordered.tolist()):
            row = row @ np.linalg.matrix_power(self.embedded, lag - before)
            products[place], before = float(row @ column), lag
        rho = products / (self.moment(2) - self.mean**2)
        return np.where(wanted == 0, 1.0, rho[places].reshape(wanted.shape))

    def dispersion(self) -> float:
        """Limit of Var[N(t)]/E[N(t)], the index of dispersion of counts; 1 for a Poisson process.

        I = 1 + 2·(λ − φ·D1·(1φ − D0 − D1)⁻¹·D1·1 / λ), with φ the phases at any time.
        """
        ones = np.ones(self.order)
        rows = self.D1 @ ones
        fundamental = np.linalg.inv(np.outer(ones, self.phases) - self.D0 - self.D1)
        spread = float(self.phases @ self.D1 @ fundamental @ rows) / self.rate
        return 1.0 + 2.0 * (spread - self.rate)

    def scaled(self, mean: float) -> MarkovianArrivalProcess:
        """The same process on another clock, so that ``mean`` seconds lie between arrivals."""
        if not (math.isfinite(mean) and mean > 0.0):
            raise InputError(f"mean {mean} of the times between arrivals must be > 0")
        factor = self.mean / mean
        return MarkovianArrivalProcess(self.D0 * factor, self.D1 * factor)

    def thinned(self, keep: float) -> MarkovianArrivalProcess:
        """The process with each arrival kept with this probability, whatever becomes of others."""
        if not 0.0 < keep <= 1.0:
            raise InputError(f"the share {keep} of arrivals to keep must be in (0, 1]")
        return MarkovianArrivalProcess(self.D0 + (1.0 - keep) * self.D1, keep * self.D1)

    def composed(self, other: MarkovianArrivalProcess) -> MarkovianArrivalProcess:
        """Kronecker product composition: D0 = −D0₁⊗D0₂, D1 = D1₁⊗D1₂.           [casale10]

        The moments r_k = E[X^k]/k! multiply, and so do 1 + SCV·ρ_k of blocks whose D0 is diagonal.
        One of the two must be such a block, or the result might be no arrival process.
        """
        return MarkovianArrivalProcess(-kron(self.D0, other.D0), kron(self.D1, other.D1))

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """So many times between arrivals, beginning in equilibrium after an arrival."""
        path = self._path(rng)
        pieces: list[Floats] = []
        have = 0
        while have < count:
            pieces.append(path(int((count - have) * self._steps * 1.02) + LEAST_DRAWS))
            have += len(pieces[-1])
        return np.concatenate([*pieces, np.empty(0)])[:count]

    def stream(self, about: int, rng: np.random.Generator) -> Iterator[Floats]:
        """One path without end, in pieces of about so many times between arrivals."""
        path = self._path(rng)
        while True:
            yield path(int(about * self._steps) + LEAST_DRAWS)

    @cached_property
    def _steps(self) -> float:
        """Transitions of the phase per arrival."""
        return float(self.phases @ -np.diag(self.D0)) / self.rate

    def _path(self, rng: np.random.Generator) -> Callable[[int], Floats]:
        """The times between arrivals that the next so many transitions bring."""
        exits = -np.diag(self.D0)
        hidden = np.where(np.eye(self.order, dtype=bool), 0.0, self.D0)
        steps = np.hstack([hidden, self.D1]) / exits[:, None]
        state = int(rng.choice(self.order, p=self.at_arrivals))
        carried = 0.0

        def further(draws: int) -> Floats:
            nonlocal state, carried
            path, what = sampled_chain(steps, state, rng.random(draws))
            held = np.cumsum(rng.standard_exponential(draws) / exits[path])
            ends = held[what >= self.order]
            gaps = np.diff(ends, prepend=-carried)
            carried = float(held[-1] - ends[-1]) if len(ends) else carried + float(held[-1])
            state = int(what[-1]) % self.order
            return np.asarray(gaps)

        return further


def _check(D0: Floats, D1: Floats) -> None:
    if D0.ndim != 2 or D0.shape[0] != D0.shape[1] or D0.shape != D1.shape or not D0.size:
        raise InputError(f"D0 {D0.shape} and D1 {D1.shape} must be square and of the same size")
    if not (np.isfinite(D0).all() and np.isfinite(D1).all()):
        raise InputError("D0 and D1 must be finite")
    scale = float(np.abs(D0).max())
    off = D0 - np.diag(np.diag(D0))
    if (least := float(min(off.min(), D1.min()))) < -TOLERANCE * scale:
        raise InputError(f"rates must be ≥ 0; the least beside the diagonal of D0 is {least}")
    if (gap := float(np.abs((D0 + D1).sum(axis=1)).max())) > TOLERANCE * scale:
        raise InputError(f"the rows of D0 + D1 must sum to 0; one sums to {gap}")
    if not (np.diag(D0) < 0.0).all() or not D1.any():
        raise InputError("every phase must be left, and some transition must bring an arrival")
