"""What a local cluster offers: how many executors, how large, how fast."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.lab.host import cgroups

LEAST_MEMORY = 450 << 20  # bytes: Spark refuses executors with less
MOST_SLOTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """What a local cluster offers.

    ``slots`` is the most executors that can run at once, ``executor_memory`` the heap of each in
    Spark's notation, ``cpu_share`` the CPU quota of each as a share of one core; None: no limit.
    ``warm_up`` is the CPU-seconds that an executor may use at full speed after it has registered:
    it takes several until its classes are loaded, its code is compiled and its Python worker
    runs, and at a fifth of a core that would be half a minute in which nothing of interest is
    measured (docs/decisions/0003).

    >>> ClusterSpec(slots=4).cpu_share
    0.2
    """

    slots: int = 8
    executor_memory: str = "512m"
    cpu_share: float | None = 0.2
    warm_up: float = 8.0

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= MOST_SLOTS:
            raise InputError(f"slots is {self.slots}; it must be between 1 and {MOST_SLOTS}")
        memory = _bytes(self.executor_memory)
        if memory is None:
            raise InputError(
                f"executor_memory is {self.executor_memory!r}; write it like '512m' or '2g'"
            )
        if memory < LEAST_MEMORY:
            raise InputError(
                f"executor_memory is {self.executor_memory}; Spark refuses less than 450m"
            )
        if self.cpu_share is not None:
            check_share(self.cpu_share)
        if not 0 <= self.warm_up <= 60:
            raise InputError(f"warm_up is {self.warm_up:g} CPU-seconds; it must be from 0 to 60")

    def worker_memory(self, slots: int) -> str:
        """What a worker has to offer so that memory never limits its slots."""
        return f"{((_bytes(self.executor_memory) or 0) * slots >> 20) + 1}m"


def check_share(share: float) -> None:
    """Raise InputError unless ``share`` (of one core) is one that this machine can give."""
    most = os.cpu_count() or 1
    if not cgroups.LEAST_SHARE <= share <= most:
        raise InputError(
            f"cpu_share is {share:g}; it must be between {cgroups.LEAST_SHARE:g} and {most}, "
            "the number of cores of this machine"
        )


def _bytes(memory: str) -> int | None:
    match = re.fullmatch(r"(\d+)([mg])b?", memory.strip().lower())
    return None if match is None else int(match[1]) << {"m": 20, "g": 30}[match[2]]
