"""Whole cores for a while: for work that is not measured, such as checking a result."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from penstock.core.errors import EngineError, InputError
from penstock.spark.local.cluster import LocalCluster

CORE = 1.0


@contextmanager
def full_speed(cluster: LocalCluster) -> Iterator[None]:
    """Let the executors that are there use whole cores, then their share again."""
    share = cluster.spec.cpu_share
    if not cluster.limited or share is None:
        yield
        return
    here = list(cluster.executors())
    _set_shares(cluster, here, CORE)
    try:
        yield
    finally:
        _set_shares(cluster, here, share)


def _set_shares(cluster: LocalCluster, executors: Iterable[str], share: float) -> None:
    for executor in executors:
        with contextlib.suppress(InputError, EngineError):  # it has left
            cluster.set_share(executor, share)
