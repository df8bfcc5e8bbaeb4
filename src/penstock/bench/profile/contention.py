"""By how much executors slow each other down, because they share a machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.bench.profile import lines
from penstock.bench.profile.driver import Seconds
from penstock.bench.profile.lineup import Lineup

CLEAR = 3.0  # standard errors above 0
LEAST = 0.01  # less for each further executor is none


def contention_of(lineup: Lineup, said: Sequence[Sequence[Seconds]]) -> tuple[float, float]:
    """Share by which tasks take longer for each further executor, and its standard error.

    ``said`` of each settled batch, by costs that know nothing of it. A point is a run: the machine
    is faster and slower by the minute, so that its batches are no points of their own.

        busy ÷ said = a·(1 + contention·(n − 1))

    (0, 0) where that is not clear.
    """
    runs: dict[int, list[tuple[int, float]]] = {}
    for row, expected in zip(lineup.settled, said, strict=True):
        total, busy = sum(map(sum, expected)), sum(s.busy for s in row.stages)
        if total > 0 and busy > 0:
            runs.setdefault(row.run, []).append((row.executors, busy / total))
    others = np.array([np.mean([n for n, _ in some]) - 1.0 for some in runs.values()])
    times = np.array([np.mean([ratio for _, ratio in some]) for some in runs.values()])
    if len(others) < 4 or np.ptp(others) == 0:
        return 0.0, 0.0
    line = lines.fit([np.ones(len(others)), others], times)
    alone, more = line.values
    if alone <= 0 or not line.clear(1, CLEAR) or more / alone < LEAST:
        return 0.0, 0.0
    return more / alone, line.errors[1] / alone
