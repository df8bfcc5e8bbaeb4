"""Spark's dynamic allocation: executors by the tasks that run and wait.   [spark-dra]

Every 100 ms, with r running and p waiting tasks and c cores per executor:

    needed = ⌈(r + p) · ratio / c⌉
    needed < target                        target = max(needed, fewest); the next step is 1
    tasks have waited for the time-out     target = max(target, executors) + step, at most needed
                                           and the most; the step doubles, or is 1 again if not
                                           all of it was wanted
    an executor had no task for the        it leaves, unless fewer than the target or the fewest
    idle time-out                          would stay

The first time-out is ``backlog_timeout`` after tasks began to wait, the further ones
``sustained_backlog_timeout`` apart; once nothing waits, all of it starts anew. With shuffle
tracking an executor whose shuffle files the driver has not collected yet stays, however idle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from penstock.policies.spark_dra import DynamicAllocation
from penstock.simulator.microbatch.event_queue import EventQueue
from penstock.simulator.microbatch.pool import Pool, SimulatedExecutor

EVERY = 0.1  # seconds between two looks


class Allocator:
    """Sizes a pool as Spark's dynamic allocation does; ``target`` executors are asked for.

    An executor that was asked for comes, even if the target has fallen meanwhile: a standalone
    master starts it at once.
    """

    def __init__(
        self,
        settings: DynamicAllocation,
        pool: Pool,
        events: EventQueue,
        *,
        limits: tuple[int, int],
    ) -> None:
        self.target = len(pool.alive)
        self._settings = settings
        self._pool, self._events = pool, events
        self._fewest, self._most = limits
        self._step = 1
        self._backlog: float | None = None
        self._add_at = math.inf
        self._look_at = 0.0
        self._ticks = 0
        self._started = False
        events.at(events.now, self._tick)

    def _tick(self) -> None:
        now = self._events.now
        self._follow_backlog()
        # Until the first stage the initial size stands.
        self._started = self._started or bool(self._pool.running_tasks)
        if self._started:
            self._aim(now)
            if now >= self._look_at:
                self._remove(now)
        self._ticks += 1
        self._events.at(self._ticks * EVERY, self._tick)

    def _follow_backlog(self) -> None:
        since = self._pool.backlog_since
        if since != self._backlog:
            self._backlog = since
            self._step = 1
            self._add_at = math.inf if since is None else since + self._settings.backlog_timeout

    def _aim(self, now: float) -> None:
        pool = self._pool
        tasks = pool.running_tasks + pool.waiting_tasks
        ratio = self._settings.allocation_ratio / pool.profile.cores
        needed = math.ceil(tasks * ratio - 1e-9)
        if needed < self.target:
            self._step = 1
            if self.target > self._fewest:  # most looks find it there
                self.target = max(needed, self._fewest)
                self._tell()
        elif now >= self._add_at - 1e-9:
            self._add(needed)
            self._add_at = now + self._settings.sustained_backlog_timeout

    def _add(self, needed: int) -> None:
        before = self.target
        wanted = max(before, len(self._pool.alive)) + self._step
        self.target = max(min(wanted, needed, self._most), self._fewest)
        added = self.target - before
        self._step = self._step * 2 if added == self._step else 1
        self._tell()

    def _tell(self) -> None:
        self._pool.total = self.target
        self._pool.fill()

    def _remove(self, now: float) -> None:
        """Decommission who has been idle for too long."""
        staying = self._pool.staying
        deadlines = {host: self._deadline(host) for host in staying}
        expired = [host for host in staying if deadlines[host] <= now + 1e-9]
        left = len(staying)
        leaving: list[int] = []
        for host in expired:
            if left - 1 >= max(self._fewest, self.target):
                leaving.append(host.number)
                left -= 1
        self._pool.decommission(leaving)
        self._look_at = self._next_look(now, deadlines.values(), stuck=len(expired) > len(leaving))

    def _next_look(self, now: float, deadlines: Iterable[float], *, stuck: bool) -> float:
        """No executor can expire before; one that was kept may have to go at any time."""
        if stuck:
            return now
        ahead = [d for d in deadlines if d > now]
        return min([*ahead, now + self._settings.idle_timeout])

    def _deadline(self, host: SimulatedExecutor) -> float:
        if host.idle_since is None:
            return math.inf
        deadline = host.idle_since + self._settings.idle_timeout
        if not self._settings.shuffle_tracking:
            return deadline
        return max(deadline, host.wrote + self._pool.profile.shuffle_held)
