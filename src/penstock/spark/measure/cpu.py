"""The CPU that executors use, from the local cluster that runs them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol


class Metered(Protocol):
    """A cluster that knows what CPU its executors use, by application and executor."""

    def cpu_seconds(self, app: str | None = None) -> dict[str, float]:
        """CPU seconds that each executor has used since it started."""
        ...

    def share(self, executor_id: str, app: str | None = None) -> float | None:
        """The share of one core that an executor is limited to; ``None`` without a limit."""
        ...


class CpuMeter:
    """What each executor of an application used of its allowance since it was last asked."""

    def __init__(self, cluster: Metered) -> None:
        self._cluster = cluster
        self._last: dict[str, tuple[float, float]] = {}  # moment and CPU seconds

    def used(self, application: str, cores: Mapping[str, int]) -> dict[str, float]:
        """Shares by executor; of the executors named with their cores, and known before."""
        now = time.time()
        seconds = self._cluster.cpu_seconds(application)
        found = {}
        for executor, number in cores.items():
            if executor not in seconds:
                continue
            then, before = self._last.get(executor, (now, 0.0))
            if now > then:
                share = self._cluster.share(executor, application) or 1.0
                found[executor] = (seconds[executor] - before) / ((now - then) * number * share)
        self._last = {e: (now, seconds[e]) for e in cores if e in seconds}
        return found
