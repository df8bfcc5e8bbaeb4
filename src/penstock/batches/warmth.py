"""Which executors are cold: so new that their work takes longer than it will.

The first tasks of a JVM load classes and run code that is not compiled yet, about nine times as
slowly as later ones. That wears off with the work that it does, not with time: on real executors
by a factor of e every 2 s of work (docs/micro-batch.md), so that 5 % are left after 10 s of it. An
executor of several cores gets there sooner, because all of them run the same code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.batches.values import Executor

WARM_AFTER = 10.0  # seconds in tasks
MARKED = 0.1  # of the executors' time during a batch; with more of it cold, its cost is doubted
COLD_WEIGHT = 0.1  # of a batch on cold executors only, beside one on warm ones

ColdShare = Callable[[float, float], float]
"""The share of the executors' time between two moments in which they were cold."""


def is_cold(executor: Executor) -> bool:
    """Whether an executor has worked for less than ``WARM_AFTER`` seconds."""
    return executor.task_seconds < WARM_AFTER


def weight_of(cold: float) -> float:
    """What a batch counts beside others: 1 on warm executors, a tenth on cold ones.

    Never nothing: where all are cold, as at the start, all batches count the same.
    """
    return 1.0 - (1.0 - COLD_WEIGHT) * cold


@dataclass(frozen=True, slots=True, kw_only=True)
class _Life:
    """An executor: when it came, became warm and went (``None``: not yet), and its last look."""

    added: float
    warm: float | None
    removed: float | None
    moment: float
    worked: float


class Warmth:
    """Since when each executor has been warm, as far as looks at them tell.

    Between two looks an executor is taken to work evenly.
    """

    def __init__(self) -> None:
        self._lives: dict[str, _Life] = {}
        self._all_warm = -math.inf  # since then no executor has been cold
        self._cold: list[tuple[float, float]] = []  # from when to when each of them was
        self._added = self._warm = self._gone = np.zeros(0)

    def look(self, executors: Sequence[Executor], now: float) -> None:
        """Note what each has done by now; those that are not named are forgotten."""
        self._lives = {e.id: _life(self._lives.get(e.id), e, now) for e in executors}
        lives = self._lives.values()
        self._added = np.array([life.added for life in lives])
        self._gone = np.array([_or_never(life.removed) for life in lives])
        self._warm = np.minimum(self._gone, [_or_never(life.warm) for life in lives])
        self._cold = [*zip(self._added.tolist(), self._warm.tolist(), strict=True)]
        self._all_warm = float(self._warm.max(initial=-math.inf))

    def cold_share(self, start: float, end: float) -> float:
        """The share of the executors' time in which they were cold; 0 if none was there."""
        if start >= self._all_warm:
            return 0.0
        for added, warm in self._cold:
            if added < end and start < warm:
                break
        else:
            return 0.0
        came = np.maximum(self._added, start)
        there = float(np.maximum(np.minimum(self._gone, end) - came, 0.0).sum())
        cold = float(np.maximum(np.minimum(self._warm, end) - came, 0.0).sum())
        return cold / there if there > 0 else 0.0


def _or_never(moment: float | None) -> float:
    return math.inf if moment is None else moment


def _life(before: _Life | None, executor: Executor, now: float) -> _Life:
    then, worked = (executor.added, 0.0) if before is None else (before.moment, before.worked)
    warm = None if before is None else before.warm
    until = now if executor.removed is None else executor.removed
    more = executor.task_seconds - worked
    if warm is None and not is_cold(executor):
        share = (WARM_AFTER - worked) / more if more > 0 else 1.0
        warm = then + max(0.0, until - then) * min(1.0, max(0.0, share))
    return _Life(
        added=executor.added,
        warm=warm,
        removed=executor.removed,
        moment=now,
        worked=executor.task_seconds,
    )
