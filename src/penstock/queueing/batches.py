"""A queue that is served in batches, as Spark does: whoever has come is served together."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import InputError
from penstock.queueing.matrices import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchService:
    """A batch of n takes ``overhead`` + ``fixed`` + ``per_arrival`` · n seconds.

    ``overhead`` does not depend on the CPU of the executors, the rest does · ``trigger`` least
    seconds from one batch to the next.

    >>> BatchService(overhead=0.5, fixed=0.25, per_arrival=0.125).faster(0.5).of(4)
    2.0
    """

    overhead: float
    fixed: float
    per_arrival: float
    trigger: float = 0.0

    def __post_init__(self) -> None:
        parts = (self.overhead, self.fixed, self.per_arrival, self.trigger)
        if not all(0.0 <= part < float("inf") for part in parts):
            raise InputError(f"{self}: no part of a batch's time may be below 0 or infinite")

    def faster(self, speed: float) -> BatchService:
        """The same with executors that are so many times as fast."""
        return BatchService(
            overhead=self.overhead,
            fixed=self.fixed / speed,
            per_arrival=self.per_arrival / speed,
            trigger=self.trigger,
        )

    def of(self, count: int) -> float:
        """Seconds for a batch of so many."""
        return self.overhead + self.fixed + self.per_arrival * count


def batched(arrivals: Floats, service: BatchService) -> Floats:
    """When each arrival is done, given the times of all in order.

    A batch takes all that are there when it begins: at once after the one before if somebody waits
    (but not before the trigger), else with the next arrival.

    >>> two = BatchService(overhead=2.0, fixed=0.0, per_arrival=0.0)
    >>> batched(np.array([0.0, 1.0, 1.5, 9.0]), two).tolist()
    [2.0, 4.0, 4.0, 11.0]
    """
    times: list[float] = arrivals.tolist()
    count, first, end, due = len(times), 0, -np.inf, -np.inf
    sizes, ends = [], []
    while first < count:
        start = max(end, due, times[first])
        last = bisect_right(times, start, first)
        end, due = start + service.of(last - first), start + service.trigger
        sizes.append(last - first)
        ends.append(end)
        first = last
    return np.repeat(np.array(ends, dtype=np.float64), sizes)
