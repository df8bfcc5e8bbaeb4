"""Student's distribution: how wide an interval is by what few measurements tell."""

from __future__ import annotations

from functools import lru_cache

CONFIDENCE = 0.95


@lru_cache(maxsize=256)
def errors_wide(freedom: float) -> float:
    """Half the width of a 95 % interval in standard errors, with so many degrees of freedom.

    >>> round(errors_wide(1), 1), round(errors_wide(100), 2)
    (12.7, 1.98)
    """
    from scipy.special import stdtrit  # here: most commands have no use for it

    return float(stdtrit(freedom, (1.0 + CONFIDENCE) / 2.0))
