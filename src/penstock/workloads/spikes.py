"""A steady load with spikes that nobody can foresee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.core.errors import InputError
from penstock.workloads.curve import Curve, PiecewiseDrawn
from penstock.workloads.pattern import MINUTE, Floats, check_numbers, generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Spikes(PiecewiseDrawn):
    """``base`` records/s, ``height`` times as much during a spike.

    Spikes begin at the times of a Poisson process, every ``spacing`` seconds on average, and last
    ``length`` seconds; those that overlap are one long spike, not a higher one. So the load is in
    a spike for a share of 1 − exp(−length/spacing) of the time.

    With ``noise`` the base changes every minute: base + U(−noise, noise), at least 0. The thesis
    had such a load and did not run it [kanis23, 6.2.1]; the figures here are our choice.
    """

    base: float = 1e6
    height: float = 2.2
    spacing: float = 1200.0
    length: float = 180.0
    noise: float = 0.0
    minute: float = MINUTE
    seed: int = 0

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.spacing < self.minute / 60:
            raise InputError(
                f"spikes: spacing = {self.spacing} must be at least a sixtieth of a minute, "
                f"{self.minute / 60:g} seconds"
            )

    def draw(self, minutes: int) -> Curve:
        """The first minutes."""
        end = minutes * self.minute
        starts, ends = self._spikes(end)
        minute_starts = np.arange(minutes if self.noise else 1, dtype=np.float64) * self.minute
        noise = generator("spikes noise", self.seed).uniform(-self.noise, self.noise, minutes)
        edges = np.unique(np.concatenate([minute_starts, starts, ends[ends < end]]))
        calm = self.base + noise[np.searchsorted(minute_starts, edges, side="right") - 1]
        # In a spike if more have begun than ended.
        open_ = np.searchsorted(starts, edges, "right") - np.searchsorted(ends, edges, "right")
        rates = np.maximum(calm, 0.0) * np.where(open_ > 0, self.height, 1.0)
        return Curve.of(edges, rates)

    def _spikes(self, end: float) -> tuple[Floats, Floats]:
        """Where spikes begin and end, if they begin before ``end``."""
        draws = generator("spikes", self.seed)
        expected = int(end / self.spacing) + 16
        gaps = draws.exponential(self.spacing, expected)
        while gaps.sum() < end:
            gaps = np.concatenate([gaps, draws.exponential(self.spacing, expected)])
        starts = np.cumsum(gaps)
        starts = starts[starts < end]
        return starts, starts + self.length
