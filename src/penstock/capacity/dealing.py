"""How work that comes in pieces falls on slots: key groups in ranges, partitions in waves."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from penstock.core.errors import InputError


def dealt(work: Sequence[float], slots: int) -> tuple[float, ...]:
    """Shares of the work by slot, where piece k of G belongs to slot ⌊k·n / G⌋, as in Flink.

    >>> dealt([1.0, 1.0, 4.0, 2.0], 2)
    (0.25, 0.75)
    """
    return _dealt(tuple(work), _at_least_one(slots))


def scheduled(work: Sequence[float], slots: int) -> float:
    """The share of the work of the slot that ends last, where each takes the next piece when free.

    That is how the tasks of a stage run in Spark: 10 like pieces on 4 slots take three waves, as
    long as 3/10 of the work takes one slot.

    >>> round(scheduled([1.0] * 10, 4), 3), scheduled([7.0, 1.0, 1.0, 1.0], 4)
    (0.3, 0.7)
    """
    return _scheduled(tuple(work), _at_least_one(slots))


@lru_cache(maxsize=512)
def _dealt(work: tuple[float, ...], slots: int) -> tuple[float, ...]:
    total = sum(work)
    if not total > 0.0:
        return (1.0 / slots,) * slots
    owners = np.arange(len(work)) * slots // len(work)
    sums = np.bincount(owners, weights=np.array(work), minlength=slots) / total
    return tuple(sums.tolist())


@lru_cache(maxsize=512)
def _scheduled(work: tuple[float, ...], slots: int) -> float:
    total = sum(work)
    if not total > 0.0:
        return 1.0 / slots
    free = [0.0] * min(slots, len(work))
    for piece in work:
        heapq.heapreplace(free, free[0] + piece)
    return max(free) / total


def _at_least_one(slots: int) -> int:
    if slots < 1:
        raise InputError(f"work for {slots} slots; it takes at least 1")
    return slots
