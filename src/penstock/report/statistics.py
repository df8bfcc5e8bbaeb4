"""Means with confidence intervals, and differences of runs that saw the same load."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from penstock.core.errors import InputError

Verdict = Literal["lower", "higher", "tie"]
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean and the half-width of its 95 % confidence interval (``None`` for a single value)."""

    mean: float
    half_width: float | None
    count: int

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.mean - (self.half_width or 0.0)

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.mean + (self.half_width or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Estimate):
    """The mean of a − b over pairs; ``base`` is the mean of b."""

    base: float

    @property
    def verdict(self) -> Verdict:
        """Whether a is lower or higher than b; a tie where the interval holds 0.

        A single pair has no interval and so decides nothing: a tie.
        """
        if self.half_width is None or self.low <= 0.0 <= self.high:
            return "tie"
        return "lower" if self.mean < 0.0 else "higher"

    @property
    def relative(self) -> float | None:
        """The difference as a share of b's mean; ``None`` where that is 0."""
        return self.mean / self.base if self.base else None


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and Student's interval of independent values: m ± t(0.975, n − 1) · s / √n.

    >>> estimate([1.0, 2.0, 3.0]).mean
    2.0
    """
    mean, half_width = _interval(values)
    return Estimate(mean=mean, half_width=half_width, count=len(values))


def paired(a: Sequence[float], b: Sequence[float]) -> Difference:
    """The difference a − b of values that belong together pair by pair (the same seed).

    >>> paired([2.0, 3.0, 4.5], [1.0, 2.0, 3.0]).verdict
    'higher'
    """
    if len(a) != len(b):
        raise InputError(f"{len(a)} values cannot be paired with {len(b)}; run the same seeds")
    mean, half_width = _interval([x - y for x, y in zip(a, b, strict=True)])
    base = statistics.fmean(b)
    return Difference(mean=mean, half_width=half_width, count=len(a), base=base)


def _interval(values: Sequence[float]) -> tuple[float, float | None]:
    if not values:
        raise InputError("no values to average")
    count = len(values)
    mean = statistics.fmean(values)
    if count == 1:
        return mean, None
    # Not statistics.stdev: its exact fractions cost a hundred times as much.
    variance = math.fsum((v - mean) ** 2 for v in values) / (count - 1)
    return mean, _quantile(count - 1) * math.sqrt(variance / count)


@lru_cache(maxsize=256)
def _quantile(freedom: int) -> float:
    from scipy.special import stdtrit  # takes a moment to load

    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2))
