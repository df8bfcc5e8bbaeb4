"""How many executors there were over time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from penstock.history.demand import Floats
from penstock.history.recording import RecordedApplication


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ExecutorsOverTime:
    """How many executors there were: ``counts[i]`` from ``edges[i]`` seconds after ``start``."""

    start: float
    edges: Floats
    counts: tuple[int, ...]


def over_time(application: RecordedApplication, start: float, end: float) -> ExecutorsOverTime:
    """The executors that were there between two moments."""
    steps: dict[float, int] = {start: 0}
    for e in application.executors:
        steps[max(start, e.added)] = steps.get(max(start, e.added), 0) + 1
        if e.removed is not None:
            gone = max(start, e.removed)
            steps[gone] = steps.get(gone, 0) - 1
    moments = sorted(t for t in steps if t <= end)
    counts = np.cumsum([steps[t] for t in moments])
    edges = [t - start for t in moments]
    kept = [0, *(i for i, (a, b) in enumerate(pairwise(counts.tolist()), 1) if a != b)]
    return ExecutorsOverTime(
        start=start,
        edges=np.array([edges[i] for i in kept]),
        counts=tuple(int(counts[i]) for i in kept),
    )
