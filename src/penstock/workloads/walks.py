"""Random walks, one rate per minute: the thesis's random, increasing and decreasing loads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.core.errors import InputError
from penstock.workloads.curve import Curve, PiecewiseDrawn
from penstock.workloads.pattern import MINUTE, Floats, check_numbers, generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Random(PiecewiseDrawn):
    """A walk from ``start`` that changes by up to ``change`` every minute.

    rate_{k+1} = rate_k + U(−change, change), kept within 0 and ``maximum``: a step beyond a bound
    ends at the bound. [kanis23, Figure 5.8]
    """

    start: float = 1.25e6
    change: float = 500e3
    maximum: float = 2.5e6
    minute: float = MINUTE
    seed: int = 0

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.start > self.maximum:
            raise InputError(f"random: start = {self.start} is above maximum = {self.maximum}")

    def draw(self, minutes: int) -> Curve:
        """The first minutes of the walk."""
        draws = generator("random", self.seed)
        steps = draws.uniform(-self.change, self.change, minutes - 1)
        return _walk(self.start, steps, self.maximum, self.minute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Increasing(PiecewiseDrawn):
    """A walk from 0 that rises more than it falls.

    rate_{k+1} = rate_k + U(−R/down, R/up), R = ``maximum``, kept within 0 and R. The mean step of
    R/165 takes it close to R in the 140 minutes of the thesis. [kanis23, Figure 5.9]
    """

    maximum: float = 2.5e6
    down: float = 30.0
    up: float = 22.0
    minute: float = MINUTE
    seed: int = 0

    def __post_init__(self) -> None:
        check_numbers(self)
        _check_shares(self)

    def draw(self, minutes: int) -> Curve:
        """The first minutes of the walk."""
        return _walk(0.0, _uneven_steps(self, minutes - 1), self.maximum, self.minute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decreasing(PiecewiseDrawn):
    """A walk from ``maximum`` that falls more than it rises.

    rate_{k+1} = rate_k + U(−R/down, R/up), R = ``maximum``, kept within 0 and R. The mean step of
    −R/168 takes it close to 0 in the 140 minutes of the thesis. [kanis23, Figure 5.10]
    """

    maximum: float = 2.5e6
    down: float = 21.0
    up: float = 28.0
    minute: float = MINUTE
    seed: int = 0

    def __post_init__(self) -> None:
        check_numbers(self)
        _check_shares(self)

    def draw(self, minutes: int) -> Curve:
        """The first minutes of the walk."""
        steps = _uneven_steps(self, minutes - 1)
        return _walk(self.maximum, steps, self.maximum, self.minute)


def _uneven_steps(pattern: Increasing | Decreasing, count: int) -> Floats:
    most = pattern.maximum
    draws = generator(type(pattern).__name__.lower(), pattern.seed)
    return draws.uniform(-most / pattern.down, most / pattern.up, count)


def _check_shares(pattern: Increasing | Decreasing) -> None:
    for name in ("down", "up"):
        value = getattr(pattern, name)
        if value < 1:
            kind = type(pattern).__name__.lower()
            raise InputError(f"{kind}: {name} = {value} must be ≥ 1: a step is maximum/{name}")


def _walk(start: float, steps: Floats, maximum: float, minute: float) -> Curve:
    """Each step is clamped before the next, so the sum cannot be vectorised."""
    rate = start
    rates = [rate]
    for step in steps.tolist():
        rate = min(max(rate + step, 0.0), maximum)
        rates.append(rate)
    return Curve.of(np.arange(len(rates), dtype=np.float64) * minute, np.array(rates))
