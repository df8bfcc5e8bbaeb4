"""Whole cores for a while: for work that is not measured, such as checking a result."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.core.errors import EngineError, InputError
from penstock.lab.clusters.standalone.cluster import LocalCluster

CORE = 1.0


@contextmanager
def full_speed(cluster: LocalCluster) -> Iterator[None]:
    """Let the executors that are there use whole cores, then their share again."""
    if not cluster.limited:
        yield
        return
    here = list(cluster.executors())
    for executor in here:
        _set_share(cluster, executor, CORE)
    try:
        yield
    finally:
        for executor in here:
            _set_share(cluster, executor, None)


def _set_share(cluster: LocalCluster, executor: str, share: float | None) -> None:
    """Give an executor a share of a core; ``None``: the one that it was promised."""
    with contextlib.suppress(InputError, EngineError):  # it has left
        cluster.set_share(executor, share or cluster.nominal_share(executor) or CORE)
