"""How many records of a stream have been released at any moment."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

import numpy as np

from penstock.batches.latency import Waits
from penstock.core.errors import InputError
from penstock.simulator.microbatch.draws import Floats
from penstock.workloads.patterns import Pattern, offered_at
from penstock.workloads.release import GRID, MOST_POINTS, releases

LONG = GRID * MOST_POINTS / 1e6  # seconds; of a longer run not every 50 ms are kept


class Curve:
    """The integral of a pattern over a run, exact at points 50 ms apart and linear between.

    The same curve releases the events of the embedded source on Spark. Of a run of more than 29
    hours the points are 1 s apart: rates that hold for whole seconds are exact all the same, and a
    week takes a third of the time and memory.
    """

    def __init__(self, pattern: Pattern, seconds: float) -> None:
        if seconds > LONG:
            self.times: Floats = np.append(np.arange(0.0, seconds), seconds)
            offered = np.maximum(offered_at(pattern, self.times), 0.0)
            self.released: Floats = np.maximum.accumulate(offered)
        else:
            found = releases(cast(Hashable, pattern), seconds)
            self.times, self.released = found.moments / 1e6, found.offered
        if not np.isfinite(self.released[-1]):
            raise InputError(f"{pattern}: offers an infinite number of records")
        self._step = float(self.times[1] - self.times[0])
        self._last = len(self.times) - 2

    def count(self, moment: float) -> int:
        """Whole records released until then."""
        i = min(int(moment / self._step), self._last)
        start, end = float(self.times[i]), float(self.times[i + 1])
        low, high = float(self.released[i]), float(self.released[i + 1])
        return int(low + (high - low) * min(1.0, (moment - start) / (end - start)) + 1e-9)

    def moment(self, records: float) -> float | None:
        """When so many have been released for the first time; ``None``: not in this run."""
        i = int(np.searchsorted(self.released, records - 1e-9))
        if i > self._last + 1:
            return None
        return float(self._first(np.array([records]))[0]) if i else 0.0

    def waits(self, taken: Floats, ends: Floats) -> Waits:
        """How long records waited: batch by batch the records ``taken`` until then and its end.

        Every piece of the curve between two of its points and two batches is one of even latency.
        """
        committed = float(taken[-1]) if len(taken) else 0.0
        inner = self.released[(self.released > 0) & (self.released < committed)]
        points = np.unique(np.concatenate(([0.0], inner, taken)))
        low, high = points[:-1], points[1:]
        commit = ends[np.searchsorted(taken, high)]
        return Waits(
            shortest=commit - self._first(high),
            longest=commit - self._last_before(low),
            records=high - low,
            committed=committed,
        )

    def _first(self, records: Floats) -> Floats:
        """The first moments at which so many were released."""
        return self._between(records, np.searchsorted(self.released, records, side="left"))

    def _last_before(self, records: Floats) -> Floats:
        """The last moments at which no more than so many were."""
        return self._between(records, np.searchsorted(self.released, records, side="right"))

    def _between(self, records: Floats, after: np.ndarray) -> Floats:
        after = np.clip(after, 1, self._last + 1)
        low, high = self.released[after - 1], self.released[after]
        part = np.divide(records - low, high - low, out=np.zeros_like(low), where=high > low)
        start = self.times[after - 1]
        return np.asarray(start + np.clip(part, 0.0, 1.0) * (self.times[after] - start))
