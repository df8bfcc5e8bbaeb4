"""The cosine load: a day in an hour, smooth or one noisy rate per minute."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import InputError
from penstock.workloads.curve import Curve, PiecewiseDrawn
from penstock.workloads.pattern import MINUTE, Floats, check_numbers, generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosine(PiecewiseDrawn):
    """From ``low`` up to ``high`` and back, once per ``period`` seconds.

    rate(t) = m − a · cos(2πt / period), m = (low + high)/2, a = (high − low)/2
    ``from_high`` turns the sign: it starts at ``high``.

    With ``noise`` > 0 or ``steps``, one rate per minute, as in the thesis:
    rate_k = rate(k · minute) + U(−noise, noise), at least 0. A minute lasts ``minute`` seconds.

    The thesis's [kanis23, Figure 5.7, Table 7.17] is ``from_high=True, noise=100e3``.

    >>> Cosine(low=0, high=10, period=60).rate(30.0)
    10.0
    """

    low: float = 200e3
    high: float = 2.2e6
    period: float = 3600.0
    from_high: bool = False
    noise: float = 0.0
    steps: bool = False
    minute: float = MINUTE
    seed: int = 0

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.low > self.high:
            raise InputError(f"cosine: low = {self.low} is above high = {self.high}")
        if self.period == 0:
            raise InputError("cosine: period = 0 must be above 0 seconds")

    def rate(self, t: float) -> float:
        """The rate at a moment."""
        if self._stepped:
            return self.curve(t).rate(t)
        mean, swing = self._form
        return mean - swing * math.cos(2 * math.pi * t / self.period)

    def offered(self, t: float) -> float:
        """m · t − a · period/2π · sin(2πt / period), or the sum of the minutes."""
        if self._stepped:
            return self.curve(t).offered(t)
        mean, swing = self._form
        turn = 2 * math.pi / self.period
        return mean * t - swing / turn * math.sin(turn * t)

    def offered_many(self, t: Floats) -> Floats:
        """``offered`` for many moments."""
        if self._stepped:
            return PiecewiseDrawn.offered_many(self, t)
        mean, swing = self._form
        turn = 2 * math.pi / self.period
        return mean * t - swing / turn * np.sin(turn * t)

    def draw(self, minutes: int) -> Curve:
        """One rate per minute."""
        starts = np.arange(minutes, dtype=np.float64) * self.minute
        mean, swing = self._form
        smooth = mean - swing * np.cos(2 * np.pi * starts / self.period)
        noise = generator("cosine", self.seed).uniform(-self.noise, self.noise, minutes)
        return Curve.of(starts, np.maximum(smooth + noise, 0.0))

    @property
    def _stepped(self) -> bool:
        return self.noise > 0 or self.steps

    @property
    def _form(self) -> tuple[float, float]:
        """Mean, and swing below it at the start."""
        swing = (self.high - self.low) / 2
        return (self.low + self.high) / 2, -swing if self.from_high else swing
