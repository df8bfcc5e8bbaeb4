"""What a simulated run leaves behind, for scoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.batches.latency import Latency, latency_of
from penstock.batches.values import Batch, Executor, Stage
from penstock.core.model import Rescale
from penstock.simulator.microbatch.curve import Curve
from penstock.simulator.microbatch.draws import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRecord:
    """All that a simulated application did, in the values that the Spark engine measures.

    seconds: how long it ran
    batches: by query, oldest first, moments of idleness included
    stages: that have ended, by query and batch, of the last 500
    executors: with the moments at which they came and went
    rescales: every action that took effect
    releases: of each stream
    """

    seconds: float
    batches: Mapping[str, tuple[Batch, ...]]
    stages: Mapping[str, Mapping[int, Sequence[Stage]]]
    executors: tuple[Executor, ...]
    rescales: tuple[Rescale, ...]
    releases: Mapping[str, Curve]

    def slots(self) -> tuple[Floats, Floats]:
        """Moments at which the number of executors changed, and the number from then on."""
        came = [(e.added, 1) for e in self.executors]
        went = [(e.removed, -1) for e in self.executors if e.removed is not None]
        times, where = np.unique([t for t, _ in came + went], return_inverse=True)
        steps = np.bincount(where, weights=[n for _, n in came + went], minlength=len(times))
        return times, np.cumsum(steps)

    def slot_seconds(self) -> float:
        """Executor-seconds paid for."""
        ends = [self.seconds if e.removed is None else e.removed for e in self.executors]
        return sum(end - e.added for e, end in zip(self.executors, ends, strict=True))

    def latency(self, query: str) -> Latency | None:
        """From release to commit, over every record of a query; exact for the curves."""
        worked = [b for b in self.batches[query] if b.rows]
        if not worked:
            return None
        ends = np.array([b.end for b in worked])
        waits = [
            self.releases[source.name].waits(
                np.array([float(b.sources[place].taken or 0) for b in worked]), ends
            )
            for place, source in enumerate(worked[0].sources)
        ]
        return latency_of(waits)
