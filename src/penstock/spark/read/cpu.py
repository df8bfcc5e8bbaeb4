"""The CPU that executors use, from the cluster that runs them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from penstock.spark.ports import CpuMetered


class CpuMeter:
    """What each executor of an application used of its allowance since it was last asked.

    Not of one that still warms up, or did in between: at full speed it uses many times the quota
    that it is going to have, which says nothing about its load.
    """

    def __init__(self, cluster: CpuMetered) -> None:
        self._cluster = cluster
        self._last: dict[str, _Reading] = {}

    def used(self, application: str, cores: Mapping[str, float]) -> dict[str, float]:
        """Shares by executor; of the executors named with their cores, and known before."""
        now = time.time()
        seconds = self._cluster.cpu_seconds(application)
        here = {
            e: _Reading(now, seconds[e], self._cluster.share(e, application))
            for e in cores
            if e in seconds
        }
        found = {}
        for executor, new in here.items():
            old = self._last.get(executor)
            if old is None or old.moment >= now or self._warming(old) or self._warming(new):
                continue
            # A quota is of the whole executor, in cores.
            allowed = (now - old.moment) * (cores[executor] if new.share is None else new.share)
            found[executor] = (new.seconds - old.seconds) / allowed
        self._last = here
        return found

    def _warming(self, reading: _Reading) -> bool:
        return self._cluster.limited and reading.share is None


class _Reading(NamedTuple):
    """CPU seconds that an executor had used at a moment, and its quota then."""

    moment: float
    seconds: float
    share: float | None
