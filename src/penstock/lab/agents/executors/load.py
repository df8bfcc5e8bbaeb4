"""The load of one executor: the share of its CPU quota that it used over the last seconds.

Executors of micro-batches work in bursts, one per trigger, so a moment says nothing: what counts
is a window of several triggers. While it has a task, a limited executor uses all of its quota, so
over such a window the share it used is the share of the time in which it worked; but other than
the time of its tasks, which only its driver knows, it can be read beside it, and a task that waits
for Kafka does not count as work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.lab.agents.executors.account import Account

SAMPLES = 12  # in a window
STALE = 0.4  # of a window: over a longer gap between two samples, or after the newest, none counts
MOST = 1.25  # of its quota: the kernel lets a group exceed it by a little; more is no load
LEAST_SPAN = 0.9  # of the window that must be covered


@dataclass(frozen=True, slots=True)
class _Sample:
    time: float
    seconds: float
    quota: float


class LoadMeter:
    """Samples an account; ``window`` seconds are looked back, and ``every`` so many one is due."""

    def __init__(self, account: Account, window: float, clock: Callable[[], float]) -> None:
        if not window > 0.0:
            raise InputError(f"window {window:g} s must be above 0")
        self._account = account
        self._window = window
        self._stale = STALE * window
        self.every = window / SAMPLES  # seconds between two samples
        self._clock = clock
        self._samples: deque[_Sample] = deque()

    def sample(self) -> None:
        """Look once.

        What cannot be read, an executor that warms up without a limit, one whose quota has
        changed, and a counter that runs backwards: the window begins anew.
        """
        now = self._clock()
        seconds, quota = self._account.seconds(), self._account.quota()
        if seconds is None or quota is None or quota <= 0.0:
            self._samples.clear()
            return
        last = self._samples[-1] if self._samples else None
        if last is not None and (
            seconds < last.seconds or quota != last.quota or now - last.time > self._stale
        ):
            self._samples.clear()
        self._samples.append(_Sample(now, seconds, quota))
        while len(self._samples) > 1 and self._samples[1].time <= now - self._window:
            self._samples.popleft()

    def load(self) -> float | None:
        """The load, 1 at full quota; ``None`` if it is not known well enough to decide by it."""
        if not self._samples:
            return None
        first, last = self._samples[0], self._samples[-1]
        span = last.time - first.time
        if span < LEAST_SPAN * self._window or self._clock() - last.time > self._stale:
            return None
        used = (last.seconds - first.seconds) / (span * last.quota)
        return used if used <= MOST else None
