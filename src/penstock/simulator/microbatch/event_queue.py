"""The event queue of a simulation: what happens next, in the order of time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any, Protocol

Moment = tuple[float, float]  # a time, and the turn of what happens at it


class Tasks(Protocol):
    """Events of one kind, so many that they have a queue of their own.

    ``due`` the moment of the next
    """

    due: Moment

    def run(self, until: Moment) -> None:
        """Let some happen that are due before a moment, at least one."""
        ...


class EventQueue:
    """Simulated time, in seconds from 0, and what is due; of the same moment, first come.

    ``turn`` counts all events · ``tasks`` have a queue of their own, beside this one.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.turn = 0
        self.tasks: Tasks | None = None
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []

    def at(self, time: float, action: Callable[..., None], *args: Any) -> None:
        """Do something at a moment that is not past."""
        heapq.heappush(self._queue, (time, self.turn, action, args))
        self.turn += 1

    def run(self, until: float) -> None:
        """Let happen what is due by then."""
        last = (until, math.inf)
        while self._next(last):
            pass
        self.now = until

    def step(self) -> None:
        """Let the next event happen."""
        self._next((math.inf, math.inf))

    def _next(self, last: Moment) -> bool:
        """Let the next event happen, or some tasks, if it is due before a moment."""
        first = last
        if self._queue and self._queue[0] < last:
            first = self._queue[0][:2]
        if self.tasks is not None and self.tasks.due < first:
            self.tasks.run(first)
            return True
        if first is last:
            return False
        self.now, _, action, args = heapq.heappop(self._queue)
        action(*args)
        return True
