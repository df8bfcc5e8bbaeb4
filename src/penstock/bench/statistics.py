"""Means with confidence intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.errors import InputError


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


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and Student's interval of independent values.

    >>> estimate([1.0, 2.0, 3.0]).mean
    2.0
    """
    if not values:
        raise InputError("no values to average")
    from scipy.stats import t  # a second to load

    count = len(values)
    half = None
    if count > 1:
        quantile = float(t.ppf(0.975, count - 1))
        half = quantile * statistics.stdev(values) / math.sqrt(count)
    return Estimate(mean=statistics.fmean(values), half_width=half, count=count)
