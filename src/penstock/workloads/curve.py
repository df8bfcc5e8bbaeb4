"""Rates that are constant in pieces, with their integral in closed form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from penstock.workloads.pattern import Floats

FIRST_PIECES = 256  # minutes drawn at first: the thesis's 140 and some more
MOST_DOUBLINGS = 14  # of them: about 8 years of minutes, where the last rate begins to hold


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """``rates[i]`` from ``edges[i]`` until the next edge; the last one for ever.

    offered(t) = C_i + rate_i · (t − edge_i), C_i = records before edge i. It never decreases, not
    even by a rounding error. With a ``period`` the curve begins anew every so many seconds.
    """

    edges: Floats
    rates: Floats
    before: Floats
    period: float | None = None

    @classmethod
    def of(cls, edges: Floats, rates: Floats, *, period: float | None = None) -> Curve:
        """From the edges, the first of them 0, and the rates."""
        before = np.zeros(len(edges))
        np.cumsum(rates[:-1] * np.diff(edges), out=before[1:])
        for array in (edges, rates, before):
            array.setflags(write=False)  # shared by all who ask for the same pattern
        return cls(edges, rates, before, period)

    def rate(self, t: float) -> float:
        """The rate at a moment."""
        if self.period is not None:
            t %= self.period
        return float(self.rates[self._piece(t)])

    def offered(self, t: float) -> float:
        """Records from 0 to ``t``."""
        return float(self.offered_many(np.float64(t)))

    def offered_many(self, t: Any) -> Any:
        """Records from 0 to each of many moments, or to one."""
        rounds = 0.0
        if self.period is not None:
            rounds, t = np.divmod(t, self.period)
            rounds = rounds * self._once
        piece = self._piece(t)
        return rounds + self.before[piece] + self.rates[piece] * (t - self.edges[piece])

    @property
    def _once(self) -> float:
        """Records in one period."""
        assert self.period is not None
        return float(self.before[-1] + self.rates[-1] * (self.period - self.edges[-1]))

    def _piece(self, t: Any) -> Any:
        return np.maximum(np.searchsorted(self.edges, t, side="right") - 1, 0)


class Piecewise(ABC):
    """A pattern whose rate is constant in pieces: ``curve`` says which, the rest follows."""

    __slots__ = ()

    @abstractmethod
    def curve(self, until: float) -> Curve:
        """The curve, right up to at least ``until`` seconds."""

    def rate(self, t: float) -> float:
        """The rate at a moment."""
        return self.curve(t).rate(t)

    def offered(self, t: float) -> float:
        """Records from 0 to ``t``."""
        return self.curve(t).offered(t)

    def offered_many(self, t: Floats) -> Floats:
        """Records from 0 to each of many moments."""
        return cast(Floats, self.curve(float(np.max(t, initial=0.0))).offered_many(t))


class PiecewiseDrawn(Piecewise):
    """A piecewise pattern that draws its pieces, a minute each: ``draw`` makes as many as asked.

    A longer draw begins with the same pieces as a shorter one. It has to be hashable.
    """

    __slots__ = ()
    minute: float

    def curve(self, until: float) -> Curve:
        """What was drawn up to ``until`` or later, once for all who ask."""
        pieces = until / (self.minute * FIRST_PIECES)
        doublings = int(min(max(pieces, 0.0), 2.0**MOST_DOUBLINGS - 1)).bit_length()
        return _drawn(self, FIRST_PIECES << doublings)

    @abstractmethod
    def draw(self, minutes: int) -> Curve:
        """The curve of the first so many minutes."""


@lru_cache(maxsize=512)
def _drawn(pattern: PiecewiseDrawn, minutes: int) -> Curve:
    return pattern.draw(minutes)
