"""The CPU that executors use, from the local cluster that runs them."""

from __future__ import annotations

import time
from collections.abc import Mapping

from penstock.spark.local.cluster import LocalCluster


class CpuMeter:
    """What each executor of an application used of its allowance since it was last asked."""

    def __init__(self, cluster: LocalCluster) -> None:
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
