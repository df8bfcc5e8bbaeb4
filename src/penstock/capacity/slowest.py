"""The slowest of several: a step that ends when the last of its parts has."""

from __future__ import annotations

from typing import overload

import numpy as np
import numpy.typing as npt
from scipy.special import gamma, gammainc

SHAPE = 4.0  # p; of one part alone: standard deviation 0.42 of the mean

Floats = npt.NDArray[np.float64]
_REST = 1.0 - 1.0 / SHAPE


def slowest(times: npt.ArrayLike) -> float:
    """D = (Σ d_i^p)^(1/p): of parts that take about d_i each, the scale of the last to end.

    If the times of the parts vary as P(X_i ≤ x) = exp(−(d_i / x)^p), the Fréchet law of largest
    values, so does their maximum, with D for d_i. One more part that takes as long as the others
    therefore still costs: sixteen like ones take twice as long as one.

    >>> slowest([0.02]), slowest([0.02] * 16), round(slowest([0.02, 0.001]), 4)
    (0.02, 0.04, 0.02)
    """
    values = np.asarray(times, dtype=np.float64)
    most = float(values.max(initial=0.0))
    if most <= 0.0:
        return 0.0
    total = float(((values / most) ** SHAPE).sum())
    return float(most * total ** (1.0 / SHAPE))


@overload
def longer(ratio: float) -> float: ...
@overload
def longer(ratio: Floats) -> Floats: ...
def longer(ratio: float | Floats) -> float | Floats:
    """E max(1, X), X of scale ``ratio``: how much longer a step takes that ends with the later.

    = exp(−u) + ratio · γ(1 − 1/p, u), u = ratio^p, γ the lower incomplete gamma function. So 1 for
    a small ratio, and the ratio times Γ(1 − 1/p) for a large one.

    >>> [round(longer(ratio), 3) for ratio in (0.1, 0.5, 1.0, 2.0)]
    [1.0, 1.021, 1.313, 2.451]
    """
    power = np.power(ratio, SHAPE)
    most: float | Floats = np.exp(-power) + ratio * gammainc(_REST, power) * gamma(_REST)
    return most


@overload
def later(ratio: float) -> float: ...
@overload
def later(ratio: Floats) -> Floats: ...
def later(ratio: float | Floats) -> float | Floats:
    """The share of that time which passes in steps where X is above 1.

    >>> [round(later(ratio), 3) for ratio in (0.1, 0.5, 1.0, 2.0)]
    [0.0, 0.08, 0.72, 1.0]
    """
    share: float | Floats = 1.0 - np.exp(-np.power(ratio, SHAPE)) / longer(ratio)
    return share
