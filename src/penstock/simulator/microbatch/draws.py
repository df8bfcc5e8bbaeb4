"""The noise of a run: one seeded stream per purpose, so that none disturbs another.

The n-th batch of a query, and the n-th executor that is started, draw the same whatever the
policy does: two policies on one seed differ by what they did, not by luck.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BATCHES, PLACES, STARTS, LEAVES = range(4)


def stream(seed: int, use: int, number: int = 0) -> np.random.Generator:
    """The random numbers of one purpose, and of one query where there are several."""
    return np.random.default_rng([seed, use, number])


class Batches:
    """Factors of mean 1 for the batches of one query: of each as a whole, and of its tasks."""

    def __init__(self, seed: int, number: int, *, batch: float, task: float, tasks: int) -> None:
        self._rng = stream(seed, BATCHES, number)
        self._batch, self._task = batch, task
        self._tasks = tasks

    def next(self) -> tuple[float, Floats]:
        """Of the next batch, and of all its tasks together with it."""
        if not (self._batch or self._task):
            return 1.0, np.ones(self._tasks)
        drawn = self._rng.standard_normal(1 + self._tasks)
        whole = math.exp(self._batch * drawn[0] - self._batch**2 / 2)
        return whole, whole * np.exp(self._task * drawn[1:] - self._task**2 / 2)


class Delays:
    """Factors of mean 1 for delays, one after the other."""

    def __init__(self, seed: int, use: int, deviation: float) -> None:
        self._rng = stream(seed, use)
        self._deviation = deviation

    def next(self) -> float:
        """Of the next delay."""
        drawn = float(self._rng.standard_normal())
        return math.exp(self._deviation * drawn - self._deviation**2 / 2)
