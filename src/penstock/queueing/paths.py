"""Response times along a path of servers, and of paths that meet again.

A station is a server with a queue. What a burst does to a path it does at the station that is
busiest; those beside it see arrivals that this one has spaced out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from penstock.core.errors import InputError
from penstock.queueing.map_ph_1 import MOST, SOLVED, Sojourn, solve
from penstock.queueing.markovian import MarkovianArrivalProcess
from penstock.queueing.matrices import kron
from penstock.queueing.phase_type import PhaseType

EQUAL = 1.2  # how much a queue behind an equally busy one adds, see ``path_response``


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """``service`` of one record, and how many records come here for one at the source."""

    name: str
    service: PhaseType
    visits: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.visits) and self.visits > 0.0):
            raise InputError(f"visits {self.visits} of {self.name} must be > 0")

    def load(self, rate: float) -> float:
        """Utilisation when so many records per second leave the source."""
        return rate * self.visits * self.service.mean

    def stream(self, source: MarkovianArrivalProcess) -> MarkovianArrivalProcess:
        """What comes here of the source: a random part of it, or all of it more often."""
        if self.visits < 1.0:
            return source.thinned(self.visits)
        return source.scaled(source.mean / self.visits) if self.visits > 1.0 else source


@lru_cache(maxsize=SOLVED)
def path_response(source: MarkovianArrivalProcess, path: tuple[Station, ...]) -> Sojourn:
    """From the first to the last station; refuses a utilisation from 0.98 on.

    R ≈ R of the busiest station under the source's arrivals + R of every other one under
    independent arrivals as fast as the busiest serves, at most ES·(1 + 1.2·√(R_b/ES_b)) and at
    most its R under the source's arrivals. Within 5 % of simulation: docs/policies/mead.md.
    """
    if not path:
        raise InputError("a path needs at least one station")
    rate = source.rate
    busiest = max(path, key=lambda station: station.load(rate))
    whole = solve(busiest.stream(source), busiest.service)
    stretch = whole.mean / busiest.service.mean
    for station in path:
        if station is not busiest:
            whole = whole + _behind(source, busiest, station, stretch)
    return whole


def _behind(
    source: MarkovianArrivalProcess, busiest: Station, station: Station, stretch: float
) -> Sojourn:
    """The least of three upper bounds of what a station adds."""
    alone = solve(station.stream(source), station.service)
    most = station.service.mean * (1.0 + EQUAL * math.sqrt(stretch))
    spaced = busiest.service.renewal()
    if spaced.rate * station.service.mean < MOST:
        behind = solve(spaced, station.service)
        alone = min(alone, behind, key=lambda sojourn: sojourn.mean)
    return alone if alone.mean <= most else alone.scaled(most)


def joined(branches: Sequence[Sojourn]) -> Joined:
    """Until the last of parallel branches is done, as if they were independent.

    Branches that see the same bursts are late together, so this is too high, never too low.
    """
    return Joined(tuple(branches))


@dataclass(frozen=True, eq=False)
class Joined:
    """The longest of independent response times: P(max ≤ t) = ∏ P(R_i ≤ t)."""

    branches: tuple[Sojourn, ...]

    @property
    def mean(self) -> float:
        """E[max], by inclusion and exclusion; the least of some has the Kronecker sum as its T."""
        total = 0.0
        for subset in range(1, 2 ** len(self.branches)):
            chosen = [b for i, b in enumerate(self.branches) if subset >> i & 1]
            least = chosen[0]
            for other in chosen[1:]:
                least = _least(least, other)
            total += least.mean if len(chosen) % 2 else -least.mean
        return total

    def tail(self, time: float) -> float:
        """P(max > time)."""
        return 1.0 - math.prod(1.0 - branch.tail(time) for branch in self.branches)

    def percentile(self, q: float) -> float:
        """The percentile, by bisection between those that the branches have alone."""
        low = max(branch.percentile(q) for branch in self.branches)
        high = max(branch.percentile(q ** (1.0 / len(self.branches))) for branch in self.branches)
        while high - low > 1e-9 * high:
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.tail(middle) > 1.0 - q else (low, middle)
        return high


def _least(one: Sojourn, other: Sojourn) -> Sojourn:
    mine, theirs = np.eye(len(one.eta)), np.eye(len(other.eta))
    return Sojourn(kron(one.eta, other.eta), kron(one.T, theirs) + kron(mine, other.T))
