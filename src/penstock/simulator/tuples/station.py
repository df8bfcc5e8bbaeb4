"""One server with a queue, whose speed may change while it serves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.queueing.lindley import departures
from penstock.workloads.pattern import Floats

Ids = npt.NDArray[np.int64]


class Station:
    """First come, first served. ``speed`` 1 serves a demand of one second in a second.

    Everything happens on the server's own clock, which runs as fast as it works: on that clock a
    change of speed changes nothing, so a demand that is half done goes on at the new speed.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self.served = 0
        self.worked = 0.0  # seconds of demand done
        self.busy = 0.0  # seconds
        self._own = 0.0  # its clock
        self._left = 0.0  # demand that has come and is not done
        self._free = 0.0  # when it has done all it was given, on its clock
        self._ids: Ids = np.empty(0, dtype=np.int64)
        self._ends: Floats = np.empty(0)

    @property
    def waiting(self) -> int:
        """Records that have come and not left."""
        return len(self._ids)

    def work(
        self, begin: float, end: float, times: Floats, ids: Ids, demands: Floats
    ) -> tuple[Floats, Ids]:
        """Take what comes from ``begin`` to ``end``, in order; what leaves by then, and when."""
        own = self._own + (times - begin) * self.speed
        ends = departures(own, demands, free_at=self._free)
        if len(ends):
            self._free = float(ends[-1])
        waiting_ids = np.concatenate([self._ids, ids])
        waiting_ends = np.concatenate([self._ends, ends])
        until = self._own + (end - begin) * self.speed
        gone = int(np.searchsorted(waiting_ends, until, side="right"))
        leaves = begin + (waiting_ends[:gone] - self._own) / self.speed
        self._count(own, ends, demands, until)
        self._ids, self._ends = waiting_ids[gone:], waiting_ends[gone:]
        self.served += gone
        self._own = until
        return np.minimum(leaves, end), waiting_ids[:gone]

    def _count(self, own: Floats, ends: Floats, demands: Floats, until: float) -> None:
        """Demand done in this stretch: what was left, and each new one as far as it got."""
        left = min(self._left, until - self._own)
        starts = ends - demands
        done = np.minimum(ends, until) - np.minimum(starts, until)
        work = left + float(done.sum())
        self._left = self._left - left + float((demands - done).sum())
        self.worked += work
        self.busy += work / self.speed
