"""Rate patterns: how many records are offered, as a function of time.

Each pattern knows its rate and, in closed form, the number of records offered since the start,
so that a simulator and a real source release exactly the same records.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from penstock.core.errors import InputError, unknown

Floats = npt.NDArray[np.float64]


class Pattern(Protocol):
    """A rate over time; ``t`` is seconds after the start, rates are records/s."""

    def rate(self, t: float) -> float:
        """The rate at a moment."""
        ...

    def offered(self, t: float) -> float:
        """Records offered from 0 to ``t``: the integral of the rate."""
        ...


def per_second(pattern: Pattern, seconds: int) -> Floats:
    """Records offered in each second from 0 on.

    >>> per_second(Constant(rps=3.0), 2)
    array([3., 3.])
    """
    return np.diff([pattern.offered(float(t)) for t in range(seconds + 1)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """The same rate for ever."""

    rps: float = 1000.0

    def __post_init__(self) -> None:
        _check_rates(self)

    def rate(self, t: float) -> float:
        """The rate."""
        return self.rps

    def offered(self, t: float) -> float:
        """rate · t."""
        return self.rps * t


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """``low`` until ``at``, then ``high`` for ``hold`` seconds (for ever if 0), then ``low``."""

    low: float = 1000.0
    high: float = 4000.0
    at: float = 60.0
    hold: float = 0.0

    def __post_init__(self) -> None:
        _check_rates(self)

    def rate(self, t: float) -> float:
        """One of the two rates."""
        return self.high if self.at <= t < self._end else self.low

    def offered(self, t: float) -> float:
        """The time at each rate, times the rate."""
        above = max(0.0, min(t, self._end) - self.at)
        return self.low * (t - above) + self.high * above

    @property
    def _end(self) -> float:
        return self.at + self.hold if self.hold else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosine:
    """From ``low`` up to ``high`` and back, once per ``period`` seconds.

    rate(t) = m − a · cos(2πt / period), m = (low + high)/2, a = (high − low)/2

    >>> Cosine(low=0, high=10, period=60).rate(30.0)
    10.0
    """

    low: float = 1000.0
    high: float = 4000.0
    period: float = 3600.0

    def __post_init__(self) -> None:
        _check_rates(self)
        if self.low > self.high:
            raise InputError(f"cosine: low = {self.low} is above high = {self.high}")
        if self.period == 0:
            raise InputError("cosine: period = 0 must be above 0 seconds")

    def rate(self, t: float) -> float:
        """The rate at a moment."""
        mean, swing = (self.low + self.high) / 2, (self.high - self.low) / 2
        return mean - swing * math.cos(2 * math.pi * t / self.period)

    def offered(self, t: float) -> float:
        """m · t − a · period/2π · sin(2πt / period)."""
        mean, swing = (self.low + self.high) / 2, (self.high - self.low) / 2
        turn = 2 * math.pi / self.period
        return mean * t - swing / turn * math.sin(turn * t)


PATTERNS: Mapping[str, type[Any]] = {"constant": Constant, "step": Step, "cosine": Cosine}


def create(name: str, parameters: Mapping[str, float | str] | None = None) -> Pattern:
    """A pattern by name; parameters may be given as text, as on a command line.

    >>> create("step", {"high": "5000"})
    Step(low=1000.0, high=5000.0, at=60.0, hold=0.0)
    """
    if name not in PATTERNS:
        raise unknown("workload", name, PATTERNS)
    kind = PATTERNS[name]
    known = {f.name for f in dataclasses.fields(kind)}
    values = {}
    for key, value in (parameters or {}).items():
        if key not in known:
            raise unknown(f"parameter of workload {name}", key, known)
        try:
            values[key] = float(value)
        except ValueError:
            raise InputError(f"{name}: {key} = {value!r} is not a number") from None
    pattern: Pattern = kind(**values)
    return pattern


def describe(pattern: Pattern) -> dict[str, Any]:
    """Name and parameters, as ``create`` takes them."""
    name = next(n for n, kind in PATTERNS.items() if type(pattern) is kind)
    return {"name": name, **dataclasses.asdict(pattern)}  # type: ignore[call-overload]


def _check_rates(pattern: Any) -> None:
    kind = type(pattern).__name__.lower()
    for f in dataclasses.fields(pattern):
        value = getattr(pattern, f.name)
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{kind}: {f.name} = {value} must be a finite number ≥ 0")
