"""Statistics of proofs: the interval of a median, and whether a series grows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.report.statistics import CONFIDENCE

HOUR = 3600.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Median:
    """A median and its 95 % confidence interval; ``None`` where there are too few values."""

    value: float
    low: float | None
    high: float | None
    count: int


def median(values: Sequence[float]) -> Median:
    """The median with the interval between two order statistics, for any distribution.

    The k-th smallest and the k-th largest of n values enclose the median with probability
    1 − 2·P(B < k), B binomial(n, ½): the largest k that gives 95 %. Fewer than six values have no
    such k.

    >>> median([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    Median(value=5.5, low=2, high=9, count=10)
    """
    if not values:
        raise InputError("no values: a median needs at least one")
    ranked, count = sorted(values), len(values)
    k, below = 0, 0.0
    while (below := below + math.comb(count, k) / 2**count) <= (1 - CONFIDENCE) / 2:
        k += 1
    ends = (ranked[k - 1], ranked[count - k]) if k else (None, None)
    return Median(value=statistics.median(ranked), low=ends[0], high=ends[1], count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How a series grows: share of its level per hour, with a 95 % confidence interval.

    ``level`` is the median of the series.
    """

    level: float
    per_hour: float
    low: float
    high: float


def growth(seconds: Sequence[float], values: Sequence[float]) -> Growth:
    """The robust slope of a series relative to its level. (Theil and Sen.)

    The median of the slopes between all pairs of points: up to 29 % of them may be outliers. Its
    interval comes from the ranks (Kendall). Three points at least.
    """
    from scipy.stats import theilslopes  # takes a moment to load

    if len(values) < 3:
        raise InputError(f"{len(values)} points have no slope worth the name; take at least 3")
    slope, _, low, high = theilslopes(values, seconds, alpha=CONFIDENCE)
    level = statistics.median(values)
    scale = HOUR / level if level else HOUR
    return Growth(
        level=level,
        per_hour=float(slope) * scale,
        low=float(low) * scale,
        high=float(high) * scale,
    )


def drift(values: Sequence[float]) -> float:
    """The median of the last quarter of a series minus that of the first.

    >>> drift([5, 5, 9, 9, 5, 5, 5, 6])
    0.5
    """
    quarter = max(1, len(values) // 4)
    return statistics.median(values[-quarter:]) - statistics.median(values[:quarter])
