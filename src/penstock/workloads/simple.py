"""Loads without chance: constant, one step, and the stages of the convergence experiment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from penstock.core.errors import InputError
from penstock.workloads.curve import Curve, Piecewise
from penstock.workloads.pattern import Floats, check_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """The same rate for ever: ``rps`` records/s."""

    rps: float = 1000.0

    def __post_init__(self) -> None:
        check_numbers(self)

    def rate(self, t: float) -> float:
        """The rate."""
        return self.rps

    def offered(self, t: float) -> float:
        """rate · t."""
        return self.rps * t

    def offered_many(self, t: Floats) -> Floats:
        """rate · t."""
        return self.rps * t


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """``low`` until ``at``, then ``high`` for ``hold`` seconds (for ever if 0), then ``low``."""

    low: float = 1000.0
    high: float = 4000.0
    at: float = 60.0
    hold: float = 0.0

    def __post_init__(self) -> None:
        check_numbers(self)

    def rate(self, t: float) -> float:
        """One of the two rates."""
        return self.high if self.at <= t < self._end else self.low

    def offered(self, t: float) -> float:
        """The time at each rate, times the rate."""
        above = max(0.0, min(t, self._end) - self.at)
        return self.low * (t - above) + self.high * above

    def offered_many(self, t: Floats) -> Floats:
        """The time at each rate, times the rate."""
        above = np.maximum(0.0, np.minimum(t, self._end) - self.at)
        return self.low * (t - above) + self.high * above

    @property
    def _end(self) -> float:
        return self.at + self.hold if self.hold else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence(Piecewise):
    """Nothing for ``wait`` seconds, then ``high`` and ``low`` for ``stage`` seconds each.

    The thesis's test of whether an auto-scaler comes to rest [kanis23, Figure 5.11]: 10 minutes,
    then twice 40. Afterwards the last rate holds.

    >>> Convergence().stages
    ((600.0, 3000.0, 2000000.0), (3000.0, 5400.0, 1000000.0))
    """

    high: float = 2e6
    low: float = 1e6
    wait: float = 600.0
    stage: float = 2400.0

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.stage == 0:
            raise InputError("convergence: stage = 0 must be above 0 seconds")

    @property
    def stages(self) -> tuple[tuple[float, float, float], ...]:
        """Start, end and rate of each stage in which an auto-scaler may converge."""
        first, second = self.wait, self.wait + self.stage
        return ((first, second, self.high), (second, second + self.stage, self.low))

    @property
    def duration(self) -> float:
        """Seconds until the end of the last stage."""
        return self.stages[-1][1]

    def curve(self, until: float) -> Curve:
        """Three pieces."""
        return _three_pieces(self)


@lru_cache(maxsize=64)
def _three_pieces(pattern: Convergence) -> Curve:
    starts = [0.0, *(start for start, _, _ in pattern.stages)]
    rates = [0.0, *(rate for _, _, rate in pattern.stages)]
    return Curve.of(np.array(starts), np.array(rates))
