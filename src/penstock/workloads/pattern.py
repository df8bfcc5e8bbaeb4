"""What a rate pattern is, and what all of them share."""

from __future__ import annotations

import dataclasses
import math
import zlib
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from penstock.core.errors import InputError

Floats = npt.NDArray[np.float64]

MINUTE = 60.0  # seconds; the thesis's loads hold one rate per minute
SHORTEST_MINUTE = 0.1  # seconds


class Pattern(Protocol):
    """A rate over time; ``t`` is seconds after the start, rates are records/s.

    A pattern may also have ``offered_many(t)``, which is ``offered`` for an array of moments.
    """

    def rate(self, t: float) -> float:
        """The rate at a moment."""
        ...

    def offered(self, t: float) -> float:
        """Records offered from 0 to ``t``: the integral of the rate."""
        ...


def offered_at(pattern: Pattern, moments: Floats) -> Floats:
    """Records offered from 0 to each moment."""
    many = getattr(pattern, "offered_many", None)
    if many is not None:
        offered: Floats = many(moments)
        return offered
    return np.array([pattern.offered(float(t)) for t in moments])


@dataclasses.dataclass(frozen=True, slots=True)
class Share:
    """The part ``share`` of another pattern: what one of several sources has of a load."""

    whole: Pattern
    share: float

    def rate(self, t: float) -> float:
        """The rate at a moment."""
        return self.share * self.whole.rate(t)

    def offered(self, t: float) -> float:
        """Records offered from 0 to ``t``."""
        return self.share * self.whole.offered(t)

    def offered_many(self, t: Floats) -> Floats:
        """Records offered from 0 to each of many moments."""
        return self.share * offered_at(self.whole, t)


@dataclasses.dataclass(frozen=True, slots=True)
class Together:
    """Several patterns at once."""

    parts: tuple[Pattern, ...]

    def rate(self, t: float) -> float:
        """The rate at a moment."""
        return sum(part.rate(t) for part in self.parts)

    def offered(self, t: float) -> float:
        """Records offered from 0 to ``t``."""
        return sum(part.offered(t) for part in self.parts)

    def offered_many(self, t: Floats) -> Floats:
        """Records offered from 0 to each of many moments."""
        return np.asarray(np.sum([offered_at(part, t) for part in self.parts], axis=0))


def per_second(pattern: Pattern, seconds: int) -> Floats:
    """Records offered in each second from 0 on.

    >>> from penstock.workloads.patterns import Constant
    >>> per_second(Constant(rps=3.0), 2)
    array([3., 3.])
    """
    return np.diff(offered_at(pattern, np.arange(seconds + 1, dtype=np.float64)))


def generator(name: str, seed: int) -> np.random.Generator:
    """The random numbers of one pattern: others with the same seed draw different ones."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def check_numbers(pattern: Any) -> None:
    """Every number of a pattern is finite and ≥ 0; a minute and a seed are what they must be."""
    kind = type(pattern).__name__.lower()
    for f in dataclasses.fields(pattern):
        value = getattr(pattern, f.name)
        if isinstance(value, str | bool) or not f.init:
            continue
        if f.name == "seed":
            if not (isinstance(value, int) and value >= 0):
                raise InputError(f"{kind}: seed = {value} must be a whole number ≥ 0")
        elif not (math.isfinite(value) and value >= 0):
            raise InputError(f"{kind}: {f.name} = {value} must be a finite number ≥ 0")
        elif f.name == "minute" and value < SHORTEST_MINUTE:
            raise InputError(f"{kind}: minute = {value} must be at least {SHORTEST_MINUTE} seconds")
