"""The sources of a query: their names, their limits, and what came to each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.history.demand import Demand, demand_of, joined, names_of_sources
from penstock.history.learning.notes import Notes
from penstock.history.learning.told import limits_of
from penstock.history.profiling.fit import Fit
from penstock.history.profiling.lineup import Lineup
from penstock.history.recording import RecordedQuery
from penstock.simulator.microbatch.profile import SourceProfile


def sources_of(
    runs: Sequence[RecordedQuery], lineup: Lineup, name: str, notes: Notes
) -> tuple[SourceProfile, ...]:
    """The sources with their limits; one for all where stages do not tell them apart."""
    run = max(runs, key=batches_of)
    names = _source_names(run)
    most = run.most_rows
    if len(most) != len(names) or not any(most):
        inferred = limits_of(run.batches)
        most = inferred if len(inferred) == len(names) else (None,) * len(names)
        for source, limit in zip(names, most, strict=True):
            if limit is None:
                notes.add(
                    f"{source}: whether a batch takes only so many records is not told "
                    "(maxOffsetsPerTrigger and the like), and no batch shows it: no limit",
                    name,
                )
            else:
                notes.add(
                    f"{source}: several batches took {limit:,} records while more waited: taken "
                    "as the limit of a batch",
                    name,
                )
    reading = sum(source is not None for source in lineup.sources)
    if len(names) > 1 and reading != len(names):
        notes.add(
            f"{reading} stages read {len(names)} sources: they count as one source, with the "
            "records of all",
            name,
        )
        known = [m for m in most if m is not None]
        together = sum(known) if len(known) == len(names) else None
        return (SourceProfile(name=" + ".join(names), max_rows=together),)
    if len(names) == 1 < reading:
        notes.add(f"{reading} stages read {names[0]}, or tables beside it", name)
    return tuple(
        SourceProfile(name=source, max_rows=limit)
        for source, limit in zip(names, most, strict=True)
    )


def _source_names(run: RecordedQuery) -> tuple[str, ...]:
    usual = run.batches[-1] if run.batches else None
    ran = [b for b in run.batches if not b.idle]
    if ran:
        count = max({len(b.inputs) for b in ran}, key=[len(b.inputs) for b in ran].count)
        usual = next(b for b in reversed(ran) if len(b.inputs) == count)
    assert usual is not None
    return names_of_sources(usual.inputs)


def demand_of_query(
    name: str, runs: Sequence[RecordedQuery], fit: Fit, notes: Notes
) -> dict[str, Demand]:
    """What came to each source of a query, by the names that its profile has."""
    limits = [source.max_rows for source in fit.query.sources]
    parts: dict[str, list[Demand]] = {}
    for run in runs:
        if run.demand:
            found = dict(run.demand)
        elif run.plannings is not None:
            found = run.plannings.demand(limits)
        elif len(run.batches) > 1:
            found = demand_of([run.batches], limits)
        else:
            found = {}
        for source, made in found.items():
            parts.setdefault(source, []).append(made)
    whole = joined(parts)
    if len(fit.query.sources) == 1 and len(whole) > 1:
        whole = {fit.query.sources[0].name: _summed(list(whole.values()))}
    if not whole:
        notes.add("fewer than two batches were planned: the demand is not known", name)
    for source, made in whole.items():
        if made.lower_bound > 0:
            notes.add(
                f"{source}: demand is a lower bound for {made.lower_bound:.0%} of the time: "
                "batches took all that they may, and the source does not tell what waited",
                name,
            )
    return whole


def _summed(parts: Sequence[Demand]) -> Demand:
    start = min(d.start for d in parts)
    moved = [d.since(start) for d in parts]
    edges = np.unique(np.concatenate([d.edges for d in moved]))
    middles = (edges[:-1] + edges[1:]) / 2
    rates = np.zeros(len(middles))
    for d in moved:
        place = np.searchsorted(d.edges, middles, side="right") - 1
        inside = (place >= 0) & (place < len(d.rates))
        rates += np.where(inside, d.rates[np.clip(place, 0, len(d.rates) - 1)], 0.0)
    bound = max(d.lower_bound for d in parts)
    return Demand(start=start, edges=edges, rates=rates, lower_bound=bound)


def batches_of(query: RecordedQuery) -> int:
    """Batches that a run had."""
    if query.plannings is not None:
        return query.plannings.count
    return sum(query.means.get(b.id, 1) for b in query.batches if not b.idle)
