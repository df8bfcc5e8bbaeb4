"""The slowest of several: a step that ends when the last of its parts has."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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


def stretched(ratio: npt.ArrayLike) -> tuple[Floats, Floats]:
    """How a step is stretched that takes 1 alone and waits for X, of scale ``ratio``.

    E max(1, X) = exp(−u) + ratio · γ(1 − 1/p, u), u = ratio^p, γ the lower incomplete gamma
    function: 1 for a small ratio, ratio · Γ(1 − 1/p) for a large one. And the share of that time
    which passes in steps where X is above 1.

    >>> longer, later = stretched([0.1, 0.5, 1.0, 2.0])
    >>> longer.round(3).tolist(), later.round(3).tolist()
    ([1.0, 1.021, 1.275, 2.451], [0.0, 0.08, 0.711, 1.0])
    """
    from scipy.special import gamma, gammainc  # here: most commands have no use for it

    values = np.asarray(ratio, dtype=np.float64)
    power = values**SHAPE
    alone = np.exp(-power)
    longer: Floats = alone + values * gammainc(_REST, power) * gamma(_REST)
    later: Floats = 1.0 - alone / longer
    return longer, later
