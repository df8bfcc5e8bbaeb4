"""A workload monitor fed by what Spark tells of micro-batches: how many records came between two.

What happened within a batch is not known; for a query that serves whole batches it does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.batches.arrival_monitor import CAPACITY, ArrivalMonitor
from penstock.batches.values import Batch
from penstock.core.arrivals import Arrivals

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


class ArrivalBook:
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
        """Memory that they hold."""
        return sum(kept.monitor.memory_bytes for kept in self._kept.values())
