"""How throughput grows with slots, as a power of their number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.capacity.student import errors_wide
from penstock.core.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCurve:
    """C(n) = α·n^β, in records/s.

    ``alpha`` throughput of one slot · ``beta`` 1 is linear growth, less is what slots cost each
    other · ``beta_half_width`` of its 95 % interval; ``None`` where two points leave no error.

    >>> PowerCurve(alpha=1000.0, beta=0.5).at(4)
    2000.0
    """

    alpha: float
    beta: float
    beta_half_width: float | None = None

    def __post_init__(self) -> None:
        if not (self.alpha > 0 and math.isfinite(self.alpha) and math.isfinite(self.beta)):
            raise InputError(
                f"C(n) = {self.alpha}·n^{self.beta} is not a throughput; α must be above 0"
            )

    def at(self, slots: float) -> float:
        """Records/s of so many slots."""
        return float(self.alpha * slots**self.beta)

    def fewest(self, rate: float, most: int) -> int:
        """The fewest slots that do ``rate`` records/s, at most ``most``.

        >>> PowerCurve(alpha=1000.0, beta=0.5).fewest(2000.0, most=8)
        4
        """
        return next((n for n in range(1, most) if self.at(n) >= rate * (1 - 1e-9)), most)

    def __str__(self) -> str:
        width = "" if self.beta_half_width is None else f" ±{self.beta_half_width:.2f}"
        return f"C(n) = {self.alpha:,.0f}·n^{self.beta:.2f}{width}"


def fit(sizes: Sequence[int], rates: Sequence[float]) -> PowerCurve:
    """Least squares of ln C = ln α + β·ln n over all measurements.

    >>> str(fit([1, 2, 4], [1000.0, 1900.0, 3610.0]))
    'C(n) = 1,000·n^0.93 ±0.00'
    """
    if len(set(sizes)) < 2 or len(sizes) != len(rates):
        raise InputError(f"a curve needs measurements of two sizes; there are {sorted(set(sizes))}")
    if min(rates) <= 0:
        raise InputError(
            f"a throughput of {min(rates):g} records/s cannot be fitted; it must be > 0"
        )
    x, y = np.log(sizes), np.log(rates)
    beta, offset = np.polyfit(x, y, 1)
    return PowerCurve(
        alpha=float(np.exp(offset)),
        beta=float(beta),
        beta_half_width=_half_width(x, y, beta, offset),
    )


def _half_width(
    x: np.typing.NDArray[np.float64], y: np.typing.NDArray[np.float64], beta: float, offset: float
) -> float | None:
    free = len(x) - 2
    if free < 1:
        return None
    squares = float(((y - offset - beta * x) ** 2).sum())
    error = math.sqrt(squares / free / float(((x - x.mean()) ** 2).sum()))
    return errors_wide(free) * error
