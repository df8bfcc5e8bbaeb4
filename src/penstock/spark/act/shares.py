"""The CPU of executors while they run: a share of their nominal quota, by control groups."""

from __future__ import annotations

import contextlib

from penstock.core.errors import EngineError, InputError
from penstock.spark.ports import CpuLimited

FULL = 1.0


class CpuShares:
    """What share of its nominal CPU each executor of an application may use; all have the same.

    Only a cluster with CPU quotas of ours can change it. No process restarts; a new quota holds
    within a tenth of a second.
    """

    def __init__(self, cluster: CpuLimited | None, application: str) -> None:
        self._cluster, self._application = cluster, application
        self.now = FULL

    def set(self, share: float) -> None:
        """Give every executor this share, and those that come later."""
        if share == self.now:
            return
        if not 0.0 < share <= FULL:
            raise EngineError(f"a CPU share of {share} is outside (0, 1]")
        cluster = self._cluster
        if cluster is None or not cluster.limited:
            raise EngineError(
                f"cannot give executors {share:.0%} of their CPU: their quotas are not ours to "
                "change. Use a local cluster with quotas (penstock run --local-cluster), or "
                "mode='advise'"
            )
        self.now = share
        self.keep()

    def keep(self) -> None:
        """Give it to executors that have come or have warmed up since."""
        cluster = self._cluster
        if cluster is None or not cluster.limited:
            return
        for executor in cluster.executors(self._application):
            with contextlib.suppress(InputError, EngineError):  # it has left
                share = cluster.share(executor, self._application)
                nominal = cluster.nominal_share(executor, self._application)
                if share is None or nominal is None:  # it still warms up, or has no limit
                    continue
                quota = nominal * self.now
                if abs(share - quota) > 1e-3:
                    cluster.set_share(executor, quota, self._application)
