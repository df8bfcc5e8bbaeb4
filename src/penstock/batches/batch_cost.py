"""What a batch costs: busy executor-seconds = c₀ + c₁·n for a batch of n records.

Every task has a cost of its own, whatever it reads, so records per busy second depend on the size
of the batches that happened to run. Two numbers say what batches of another size would cost.
Derived in docs/metrics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.core.quick import maker

Floats = npt.NDArray[np.float64]

HISTORY = 50  # batches; those of another hour say little about this one
HALF_LIFE = 15.0  # batches after which one counts half
LEAST_BATCHES = 6
LEAST_SPREAD = 0.1  # standard deviation of n over its mean
MOST_ERROR = 0.25  # standard error of c₁·n at the mean n, as a share of the mean cost
OUTLIER = 1.5  # robust standard deviations beyond which a batch loses weight
ROUNDS = 5
EXPLAINED = 0.25  # a fit must give the busy seconds of the window within this share


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Busy executor-seconds of a batch: ``fixed`` + ``per_record`` · n.

    >>> Cost(fixed=0.5, per_record=1e-3).of(1500.0)
    2.0
    """

    fixed: float
    per_record: float

    def of(self, records: float) -> float:
        """The cost of a batch of so many records."""
        return self.fixed + self.per_record * records


_cost = maker(Cost)  # five for every stage of every observation


def fit(
    records: Sequence[float], busy: Sequence[float], weights: Sequence[float] | None = None
) -> Cost | None:
    """The cost of batches, given oldest first; ``None`` if they do not tell the two apart.

    Weighted least squares over the last 50: a batch counts half after 15 more, and less the
    further it lies off the line (Huber's weights), so that a batch that met a collection does not
    turn it. ``weights`` of their own, above 0: less for those on cold executors. Neither number is
    negative.
    """
    n = np.asarray(records[-HISTORY:], dtype=float)
    y = np.asarray(busy[-HISTORY:], dtype=float)
    if len(n) < LEAST_BATCHES or not n.sum() > 0 or not y.sum() > 0:
        return None
    least = 1e-6 * float(y.sum()) / len(y)
    recent = _recency(len(n))
    if weights is not None:
        recent = recent * np.asarray(weights[-HISTORY:], dtype=float)
    found = _line(n, y, recent)
    for _ in range(ROUNDS - 1):
        if found is None:
            return None
        off = found.off
        usual = max(1.4826 * _median(off), least)
        weight = recent * np.minimum(1.0, OUTLIER * usual / np.maximum(off, usual / 1e3))
        found = _line(n, y, weight)
    return found.cost if found is not None and found.error <= MOST_ERROR else None


def explains(cost: Cost, records: Sequence[float], busy: float) -> bool:
    """Whether some batches together took the seconds that a fit says.

    They do not after the query or its data have changed, nor where the cost comes in bursts that
    look like outliers.
    """
    return abs(sum(map(cost.of, records)) - busy) <= EXPLAINED * busy


@cache
def _recency(count: int) -> Floats:
    weight: Floats = 0.5 ** (np.arange(count)[::-1] / HALF_LIFE)
    weight.setflags(write=False)
    return weight


def _median(values: Floats) -> float:
    """Much faster for few values than numpy's own."""
    ordered = values.copy()
    ordered.sort()
    middle = len(ordered) // 2
    return float(ordered[middle] + ordered[~middle]) / 2


class _Line(NamedTuple):
    """A line and what it leaves: how far each batch is ``off`` it, by weights that sum to 1."""

    cost: Cost
    off: Floats
    weight: Floats
    spread: float
    mean_n: float
    mean_y: float

    @property
    def error(self) -> float:
        """The standard error of c₁·n at the mean n over the mean cost."""
        left = float(self.weight.dot(self.off * self.off))
        freedom = max(1.0, 1.0 / float(self.weight.dot(self.weight)) - 2.0)
        return math.sqrt(left / (self.spread * freedom)) * self.mean_n / self.mean_y


def _line(n: Floats, y: Floats, weight: Floats) -> _Line | None:
    """The line through the weighted batches. ``dot`` takes half the time of ``@`` for so few."""
    weight = weight / weight.sum()
    mean_n, mean_y = float(weight.dot(n)), float(weight.dot(y))
    away = n - mean_n
    spread = float(weight.dot(away * away))
    if not (spread > (LEAST_SPREAD * mean_n) ** 2 and mean_y > 0):
        return None
    slope = float(weight.dot(away * (y - mean_y))) / spread
    if slope < 0:
        cost = _cost(fixed=mean_y, per_record=0.0)
    elif slope * mean_n > mean_y:
        cost = _cost(fixed=0.0, per_record=float(weight.dot(n * y)) / float(weight.dot(n * n)))
    else:
        cost = _cost(fixed=mean_y - slope * mean_n, per_record=slope)
    off = np.abs(y - cost.fixed - cost.per_record * n)
    return _Line(cost, off, weight, spread, mean_n, mean_y)
