"""When the events of a sequence are released: the inverse of a pattern's integral."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from penstock.core.errors import InputError
from penstock.workloads.draws import Whole
from penstock.workloads.pattern import Floats, Pattern, offered_at

GRID = 50_000  # microseconds between the points at which release times are exact
MOST_POINTS = 2**21  # of the grid; a stream of over 29 hours has a coarser one


@dataclass(frozen=True, slots=True, eq=False)
class Releases:
    """The k-th event, from 0, comes when the pattern has offered k + 1.

    Between points of a fixed grid the time is interpolated, so it does not depend on which
    events are asked for. Times are whole microseconds after the start of the pattern.
    """

    moments: npt.NDArray[np.float64]  # of the grid, in whole microseconds
    offered: Floats  # until then; never decreases

    @property
    def total(self) -> int:
        """All events there will ever be."""
        return int(self.offered[-1])

    def at(self, places: Whole) -> Whole:
        """The release times of events in ascending order."""
        if not len(places):
            return np.zeros(0, dtype=np.int64)
        wanted = places.astype(np.float64)
        wanted += 1.0
        ends = np.searchsorted(self.offered, wanted[[0, -1]], side="left")
        # Cell i reaches from point i − 1 to point i and holds what is above the former.
        cells = slice(int(ends[0]), int(ends[1]) + 1)
        begins = slice(cells.start - 1, cells.stop - 1)
        edges = np.searchsorted(wanted, self.offered[cells], side="right")
        counts = np.diff(edges, prepend=0)
        gained = self.offered[cells] - self.offered[begins]
        lasted = self.moments[cells] - self.moments[begins]
        slopes = np.divide(lasted, gained, out=np.zeros_like(gained), where=counts > 0)
        wanted -= np.repeat(self.offered[begins], counts)
        wanted *= np.repeat(slopes, counts)
        wanted += np.repeat(self.moments[begins], counts)
        # Rounding must not take an event past those of the next cell.
        np.minimum(wanted, np.repeat(self.moments[cells], counts), out=wanted)
        return wanted.astype(np.int64)

    def count(self, moment: int) -> int:
        """Events released until a moment: exactly those whose release time is not later."""
        if moment < 0:
            return 0
        after = int(np.searchsorted(self.moments, moment, side="right"))
        low = int(self.offered[after - 1])
        high = int(self.offered[min(after, len(self.offered) - 1)])
        return low + bisect_right(range(low, high), moment, key=self._one)

    def longest(self, count: int) -> int:
        """Within so many microseconds so many events are released, whenever that begins.

        To the width of the grid, and not less; without the end, where there are no more.
        """
        ends = np.searchsorted(self.offered, self.offered + count, side="left")
        ends = np.minimum(ends, len(self.offered) - 1)
        return int((self.moments[ends] - self.moments).max())

    def _one(self, place: int) -> int:
        return int(self.at(np.array([place], dtype=np.int64))[0])


@lru_cache(maxsize=4)
def releases(pattern: Pattern, seconds: float) -> Releases:
    """The release times of a pattern that lasts so many seconds, worked out once per process."""
    end = round(seconds * 1e6)
    step = max(GRID, -(-end // MOST_POINTS))
    moments = np.append(np.arange(0, end, step, dtype=np.float64), float(end))
    offered = offered_at(pattern, moments / 1e6)
    # A closed form may fall by a rounding error where the rate is 0.
    offered = np.maximum.accumulate(np.maximum(offered, 0.0))
    for array in (moments, offered):
        array.setflags(write=False)
    return Releases(moments, offered)


def check_schedule(
    *, start: float, seconds: float, partitions: int, max_rows: int | None = None
) -> None:
    """Refuse what cannot be a schedule: when rows are released, in how many tasks they are read."""
    if not (math.isfinite(start) and start >= 0):
        raise InputError(f"start {start} must be a second since the epoch, ≥ 0")
    if not (math.isfinite(seconds) and seconds >= 1e-3):
        raise InputError(f"seconds {seconds} must be at least 0.001 and finite")
    if partitions < 1:
        raise InputError(f"partitions {partitions} must be ≥ 1")
    if max_rows is not None and max_rows < 1:
        raise InputError(f"max_rows {max_rows} must be ≥ 1")
