"""Robust fits of y = Σ bₖ·xₖ with no bₖ below 0, and what is known of each bₖ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.batches.batch_cost import OUTLIER

Floats = npt.NDArray[np.float64]

ROUNDS = 12
BELIEVED = 10.0  # that a further number must gain, as Bayes's information criterion counts
NORMAL = 1.4826  # standard deviations in a median absolute deviation
CLIPPED = 3.5  # robust standard deviations beyond which a value counts as so far off


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """``values`` of the coefficients with their standard ``errors``.

    ``left`` the weighted sum of squares that it does not explain.
    """

    values: tuple[float, ...]
    errors: tuple[float, ...]
    left: float

    def clear(self, place: int, times: float) -> bool:
        """Whether a coefficient is so many times its standard error."""
        return self.values[place] > times * self.errors[place]


def fit(columns: Sequence[Floats], y: Floats, *, relative: bool = True) -> Line:
    """Least squares, iterated: points far off lose weight (Huber), as one collection must not
    turn the line. ``relative`` takes deviations as shares of what the line says, as costs vary in
    proportion.
    """
    from scipy.optimize import nnls  # takes a moment to load

    x = np.column_stack(columns)
    scale = np.maximum(np.abs(x).max(axis=0), 1e-300)
    x = x / scale
    trust = weight = np.ones(len(y))
    least = max(1e-6 * float(np.abs(y).mean()), 1e-12)
    for _ in range(ROUNDS):
        values, _ = nnls(x * weight[:, None], y * weight)
        said = x @ values
        size = np.maximum(np.abs(said), 1e-3 * np.abs(said).max() + least) if relative else 1.0
        off = np.abs(y - said) / size
        usual = max(NORMAL * float(np.median(off)), 1e-9 if relative else least)
        trust = np.sqrt(np.minimum(1.0, OUTLIER * usual / np.maximum(off, 1e-12)))
        weight = trust / size
    left = float(np.sum((weight * (y - said)) ** 2))
    freedom = max(1, len(y) - x.shape[1])
    inverse = np.linalg.pinv((x * weight[:, None]).T @ (x * weight[:, None]))
    errors = np.sqrt(np.maximum(np.diag(inverse), 0.0) * left / freedom)
    return Line(
        values=tuple(float(v) for v in values / scale),
        errors=tuple(float(e) for e in errors / scale),
        left=left,
    )


def clearly(better: float, worse: float, count: int) -> bool:
    """Whether a further number is to be believed, by the squares that are left of ``count``."""
    if not (better > 0 and worse > 0):
        return worse > 0
    return count * math.log(worse / better) > BELIEVED + math.log(count)


def centre(values: Sequence[float]) -> tuple[float, float]:
    """A robust mean and its standard error."""
    line = fit([np.ones(len(values))], np.asarray(values, dtype=float), relative=False)
    return line.values[0], line.errors[0]


def deviation(values: Floats) -> float:
    """The standard deviation, values that are very far off counted as less so."""
    middle = float(np.median(values))
    usual = NORMAL * float(np.median(np.abs(values - middle)))
    if usual > 0:
        values = np.clip(values, middle - CLIPPED * usual, middle + CLIPPED * usual)
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0
