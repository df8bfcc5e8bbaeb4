"""How long after its release a record can be read: what a producer and a broker need."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from penstock.bench.profile.experiment import Experiment
from penstock.measure.values import Batch
from penstock.simulator.microbatch.profile import SourceProfile
from penstock.workloads.nexmark import NexmarkStream, Table

MICRO = 1e6


def delays_of(
    batches: Sequence[Batch], events: NexmarkStream, tables: Sequence[Table]
) -> tuple[tuple[float, ...], ...]:
    """By table: seconds from the release of the newest record to the planning that found it.

    A batch that found all there will ever be, or nothing, tells nothing.
    """
    return tuple(
        tuple(
            batch.start - events.release_times(table, has - 1, has)[0] / MICRO
            for batch in batches
            if not batch.idle
            and place < len(batch.inputs)
            and (has := batch.inputs[place].available or 0)
            and has < events.total(table)
        )
        for place, table in enumerate(tables)
    )


def with_delays(
    sources: Sequence[SourceProfile], experiments: Sequence[Experiment]
) -> tuple[tuple[SourceProfile, ...], dict[str, float]]:
    """Sources with the mean of their delays, and its standard errors as ``name.delay``.

    0 where nothing was seen, or where Spark asks a source after the moment that it says a batch
    was planned at.
    """
    found, errors = [], {}
    for place, source in enumerate(sources):
        seen = [d for e in experiments if place < len(e.delays) for d in e.delays[place]]
        mean = statistics.fmean(seen) if seen else 0.0
        found.append(replace(source, delay=max(0.0, mean)))
        if len(seen) > 1:
            errors[f"{source.name}.delay"] = statistics.stdev(seen) / len(seen) ** 0.5
    return tuple(found), errors
