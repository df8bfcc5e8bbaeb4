"""Phase-type distributions: the time until a Markov chain with a few phases stops. [neuts81]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import expm

from penstock.core.errors import InputError
from penstock.queueing.markovian import MarkovianArrivalProcess
from penstock.queueing.matrices import TOLERANCE, Floats, matrix

LEAST_SCV = 1.0 / 64.0  # Erlang-64: more phases tell no more of a queue


@dataclass(frozen=True, eq=False)
class PhaseType:
    """Begins in a phase by ``alpha``, changes phases at the rates ``S``, stops at −S·1.

    P(X > t) = α·e^(St)·1.

    >>> PhaseType.erlang(2, mean=3.0).scv
    0.5
    """

    alpha: Floats
    S: Floats

    def __init__(self, alpha: npt.ArrayLike, S: npt.ArrayLike) -> None:
        object.__setattr__(self, "alpha", matrix(alpha))
        object.__setattr__(self, "S", matrix(S))
        _check(self.alpha, self.S)

    @cached_property
    def _bytes(self) -> bytes:
        return self.alpha.tobytes() + self.S.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PhaseType) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    @classmethod
    def exponential(cls, mean: float) -> Self:
        """The exponential distribution: one phase."""
        return cls.erlang(1, mean=mean)

    @classmethod
    def erlang(cls, phases: int, *, mean: float) -> Self:
        """So many equal phases in a row; its squared coefficient of variation is 1/phases."""
        if phases < 1 or not (math.isfinite(mean) and mean > 0.0):
            raise InputError(f"{phases} phases and the mean {mean} must be ≥ 1 and > 0")
        rate = phases / mean
        return cls(np.eye(phases)[0], rate * (np.eye(phases, k=1) - np.eye(phases)))

    @classmethod
    def of(cls, *, mean: float, scv: float) -> Self:
        """The usual choice for two moments: a mix of two Erlangs, or of two exponentials.

        SCV ≤ 1: Erlang-k with probability 1 − p, else one phase less, 1/k ≤ SCV ≤ 1/(k−1);
        SCV > 1: two exponentials with equal shares of the mean.                [tijms03, §B.2]
        """
        if not (math.isfinite(scv) and scv >= 0.0):
            raise InputError(f"squared coefficient of variation {scv} must be ≥ 0")
        if scv > 1.0:
            p = (1.0 + math.sqrt((scv - 1.0) / (scv + 1.0))) / 2.0
            return cls([p, 1.0 - p], np.diag([-2.0 * p / mean, -2.0 * (1.0 - p) / mean]))
        scv = max(scv, LEAST_SCV)
        k = math.ceil(1.0 / scv - 1e-12)
        if k == 1:
            return cls.exponential(mean)
        p = (k * scv - math.sqrt(max(0.0, k * (1.0 + scv) - k**2 * scv))) / (1.0 + scv)
        rate = (k - p) / mean
        S = rate * (np.eye(k, k=1) - np.eye(k))
        begin = np.zeros(k)
        begin[0], begin[1] = 1.0 - p, p
        return cls(begin, S)

    @property
    def order(self) -> int:
        """The number of phases."""
        return len(self.alpha)

    @property
    def exits(self) -> Floats:
        """s = −S·1."""
        return np.asarray(-self.S.sum(axis=1))

    @cached_property
    def mean(self) -> float:
        """E[X]."""
        return self.moment(1)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return self.moment(2) / self.mean**2 - 1.0

    def moment(self, k: int) -> float:
        """E[X^k] = k!·α·(−S)^(−k)·1."""
        vector: Floats = np.ones(self.order)
        for _ in range(k):
            vector = np.asarray(np.linalg.solve(-self.S, vector), dtype=np.float64)
        return math.factorial(k) * float(self.alpha @ vector)

    def tail(self, time: float) -> float:
        """P(X > time)."""
        return float(self.alpha @ expm(self.S * time) @ np.ones(self.order))

    def scaled(self, mean: float) -> PhaseType:
        """The same shape with another mean."""
        if not (math.isfinite(mean) and mean > 0.0):
            raise InputError(f"mean {mean} must be > 0")
        return PhaseType(self.alpha, self.S * (self.mean / mean))

    def renewal(self) -> MarkovianArrivalProcess:
        """Arrivals with independent times of this law between them."""
        return MarkovianArrivalProcess(self.S, np.outer(self.exits, self.alpha))

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """So many independent values."""
        return self.renewal().sample(count, rng)


def _check(alpha: Floats, S: Floats) -> None:
    if alpha.ndim != 1 or S.shape != (len(alpha), len(alpha)) or not len(alpha):
        raise InputError(f"alpha {alpha.shape} and S {S.shape} must be of the same size")
    if not (np.isfinite(alpha).all() and np.isfinite(S).all()):
        raise InputError("alpha and S must be finite")
    if alpha.min() < -TOLERANCE or abs(float(alpha.sum()) - 1.0) > TOLERANCE:
        raise InputError(f"alpha {alpha.tolist()} must be probabilities that sum to 1")
    scale = float(np.abs(S).max())
    off = S - np.diag(np.diag(S))
    if off.min() < -TOLERANCE * scale or S.sum(axis=1).max() > TOLERANCE * scale:
        raise InputError("S must have rates ≥ 0 beside its diagonal and rows that sum to ≤ 0")
    if not (np.diag(S) < 0.0).all() or not (S.sum(axis=1) < -TOLERANCE * scale).any():
        raise InputError("S must come to an end from every phase")
