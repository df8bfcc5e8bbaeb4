"""The workload monitor: the newest arrivals of a stream, in constant memory. [russo21, §IV-C]"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from penstock.batches.values import Batch
from penstock.core.errors import InputError
from penstock.core.model import Arrivals

CAPACITY = 50_000  # [russo21, §VII]


class ArrivalMonitor:
    """A ring of the newest times between arrivals, fed from a stream; safe to use from threads.

    Times that are not after the last one of before cannot be placed: they are counted as ``late``
    and left out. ``cpu_seconds`` and ``memory_bytes`` are what the monitor itself has cost.

    >>> monitor = ArrivalMonitor(3)
    >>> monitor.add([1.0, 1.5, 1.75])
    >>> monitor.window().intervals.tolist()
    [0.5, 0.25]
    """

    def __init__(self, capacity: int = CAPACITY, *, seed: int = 0) -> None:
        if capacity < 2:
            raise InputError(f"capacity {capacity} of the monitor must be ≥ 2 arrivals")
        self.late = 0
        self.seen = 0
        self.cpu_seconds = 0.0
        self._ring = np.empty(capacity)
        self._next = self._filled = 0
        self._last: float | None = None
        self._rng = np.random.default_rng(seed)
        self._lock = threading.Lock()

    @property
    def capacity(self) -> int:
        """The most times between arrivals that are kept."""
        return len(self._ring)

    @property
    def memory_bytes(self) -> int:
        """What the ring takes, whatever has come."""
        return int(self._ring.nbytes)

    def add(self, times: npt.ArrayLike) -> None:
        """Arrivals at these times, in seconds of any clock, in any order among themselves."""
        begun = time.thread_time()
        came = np.sort(np.asarray(times, dtype=np.float64).reshape(-1))
        if not np.isfinite(came).all():
            raise InputError("times of arrivals must be finite")
        with self._lock:
            self.seen += len(came)
            if self._last is not None:
                late = int(np.searchsorted(came, self._last, side="left"))
                self.late += late
                came = came[late:]
            if len(came):
                before = came[0] if self._last is None else self._last
                gaps = np.diff(came, prepend=before)
                self._put(gaps if self._last is not None else gaps[1:])
                self._last = float(came[-1])
            self.cpu_seconds += time.thread_time() - begun

    def add_count(self, begin: float, end: float, count: int) -> None:
        """So many arrivals somewhere between two times, as Spark tells of a batch.

        They are put there at random: what happened within a batch is not known, and even
        distances would be more regular than anything is.
        """
        if not (end > begin and count >= 0):
            raise InputError(f"{count} arrivals from {begin} to {end}: count ≥ 0, end after begin")
        self.add(begin + (end - begin) * self._rng.random(count))

    def coarsen(self) -> None:
        """Take every two arrivals of before as one."""
        with self._lock:
            kept = np.roll(self._ring, -self._next)[-self._filled :] if self._filled else ()
            pairs = np.asarray(kept)[len(kept) % 2 :].reshape(-1, 2).sum(axis=1)
            self._next = self._filled = 0
            self._put(pairs)

    def window(self) -> Arrivals | None:
        """The newest times between arrivals; ``None`` before there is one."""
        with self._lock:
            if not self._filled:
                return None
            if self._filled < len(self._ring):
                return Arrivals(self._ring[: self._filled])
            return Arrivals(np.roll(self._ring, -self._next))

    def _put(self, gaps: npt.NDArray[np.float64]) -> None:
        size = len(self._ring)
        gaps = gaps[-size:]
        first = min(len(gaps), size - self._next)
        self._ring[self._next : self._next + first] = gaps[:first]
        self._ring[: len(gaps) - first] = gaps[first:]
        self._next = (self._next + len(gaps)) % size
        self._filled = min(size, self._filled + len(gaps))


# A workload monitor fed by what Spark tells of micro-batches: how many records came between two.
#
# What happened within a batch is not known; for a query that serves whole batches it does not
# matter.

SECONDS = 600.0  # of arrivals that a window is to hold at least
TOO_SHORT = 4.0  # times shorter: records are counted in larger bundles from then on


class BatchArrivals:
    """The newest arrivals of one query; several records count as one where they come too fast."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.monitor = ArrivalMonitor(capacity)
        self.each = 1.0
        self._last: tuple[str, int, float, int] | None = None  # run, batch, planned, released
        self._rest = 0.0

    def add(self, batches: Sequence[Batch]) -> None:
        """The finished batches of a query, oldest first; those of before are passed over."""
        for batch in batches:
            before = self._last
            if before is not None and before[0] == batch.run_id and batch.id <= before[1]:
                continue
            counted = batch.available
            released = (before[3] if before is not None else 0) + batch.rows
            if counted is not None:
                released = counted
            self._last = (batch.run_id, batch.id, batch.start, released)
            if before is None or before[0] != batch.run_id or batch.start <= before[2]:
                continue
            self._came(before[2], batch.start, max(0, released - before[3]))

    def window(self) -> Arrivals | None:
        """The newest of them; ``None`` before there are any."""
        found = self.monitor.window()
        return None if found is None else Arrivals(found.intervals, self.each)

    def _came(self, begin: float, end: float, records: int) -> None:
        rate = records / (end - begin)
        while rate / self.each > TOO_SHORT * self.monitor.capacity / SECONDS:
            self.monitor.coarsen()
            self.each *= 2.0
        arrivals, self._rest = divmod(records + self._rest, self.each)
        self.monitor.add_count(begin, end, int(arrivals))


class ArrivalLog:
    """The newest arrivals of every query that runs, by run id; what it costs itself."""

    def __init__(self) -> None:
        self._kept: dict[str, BatchArrivals] = {}

    def read(self, queries: Mapping[str, Sequence[Batch]]) -> dict[str, Arrivals]:
        """Take in their finished batches; those that have ended are forgotten."""
        self._kept = {run_id: self._kept.get(run_id) or BatchArrivals() for run_id in queries}
        for run_id, batches in queries.items():
            self._kept[run_id].add(batches)
        windows = {run_id: kept.window() for run_id, kept in self._kept.items()}
        return {run_id: window for run_id, window in windows.items() if window is not None}

    @property
    def cpu_seconds(self) -> float:
        """CPU that the monitors of these queries have used so far."""
        return sum(kept.monitor.cpu_seconds for kept in self._kept.values())

    @property
    def memory_bytes(self) -> int:
        """Memory that the monitors hold."""
        return sum(kept.monitor.memory_bytes for kept in self._kept.values())
