"""The event queue of a simulation: what happens next, in the order of time."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any


class EventQueue:
    """Simulated time, in seconds from 0, and what is due; of the same moment, first come."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = itertools.count()

    def at(self, time: float, action: Callable[..., None], *args: Any) -> None:
        """Do something at a moment that is not past."""
        heapq.heappush(self._queue, (time, next(self._count), action, args))

    def run(self, until: float) -> None:
        """Let happen what is due by then."""
        events = self._queue
        while events and events[0][0] <= until:
            self.now, _, action, args = heapq.heappop(events)
            action(*args)
        self.now = until

    def step(self) -> None:
        """Let the next event happen."""
        self.now, _, action, args = heapq.heappop(self._queue)
        action(*args)
