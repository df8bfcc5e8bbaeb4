"""Spark's twin of a query: a measured profile under the settings of a Spark bench."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.batches.snapshot import POOL
from penstock.bench.compressed.load import load_of, squeezed
from penstock.bench.compressed.run import RunRecord, act, scored, window_of
from penstock.bench.compressed.thesis_time import Scale
from penstock.comparison.cell import Cell, CellRun
from penstock.core.errors import InputError, unknown
from penstock.lab.rig.allocation import Allocation
from penstock.lab.rig.capacity_file import Capacity
from penstock.lab.rig.settings import SparkSettings
from penstock.simulator.microbatch import MicroBatchEngine
from penstock.simulator.microbatch.profile import Profile
from penstock.workloads.nexmark import PRESETS, TABLES, NexmarkStream, Table
from penstock.workloads.nexmark.events import Order
from penstock.workloads.patterns import Constant, Pattern

EVENTS = PRESETS["thesis"]  # as in the benches on Spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """What a cell runs on instead of Spark.

    ``profile`` of its query alone · ``capacity`` that its load rests on and that limits its
    batches. Both are part of a cell, so that a file that is changed later changes no bench.
    """

    profile: Profile
    capacity: Capacity


def limited(profile: Profile, settings: SparkSettings, rows: int) -> Profile:
    """A profile with the trigger of a bench and batches of at most ``rows`` records."""
    tables = _tables(profile)
    stream = NexmarkStream(
        events=EVENTS,
        pattern=Constant(rps=1.0),
        start=0.0,
        seconds=1.0,
        tables=tables,
        max_rows=rows,
    )
    query = profile.queries[0]
    limits = {str(table): stream.limit(table) for table in tables}
    sources = tuple(replace(source, max_rows=limits[source.name]) for source in query.sources)
    return replace(profile, queries=(replace(query, sources=sources, trigger=settings.trigger),))


def shares_of(profile: Profile) -> Mapping[str, float]:
    """The share of all events that each table of a profile has."""
    order = Order.of(EVENTS, _tables(profile))
    return {table: size / order.width for table, size in order.sizes.items()}


def _tables(profile: Profile) -> tuple[Table, ...]:
    for name in profile.sources:
        if name not in TABLES:
            raise unknown("table", name, TABLES)
    return tuple(table for table in TABLES if table in profile.sources)


def check_profile(profile: Profile, query: str, settings: SparkSettings) -> None:
    """Refuse a profile that was not measured on this query under these settings.

    A ``minute`` of another length makes windows of another length, and so another state.
    """
    names = [q.name for q in profile.queries]
    if names != [query]:
        raise InputError(f"it is a profile of {', '.join(names)}, not of {query} alone")
    _tables(profile)
    for stage in profile.queries[0].stages:
        if stage.source is not None and stage.tasks != settings.partitions:
            raise InputError(
                f"it has {stage.tasks} tasks for the source {stage.source}, the bench has "
                f"partitions = {settings.partitions}; set it to {stage.tasks}, or measure again"
            )
    given: dict[str, float | None] = {"cpu_share": settings.cpu_share}
    if any(stage.state for stage in profile.queries[0].stages):
        given["minute"] = settings.minute
    for name, value in given.items():
        told = _number(profile.provenance.get(name, ""))
        if told is not None and told != value:
            raise InputError(
                f"it was measured with {name} {told:g}, the bench has {value}; measure it again"
            )
    source = profile.provenance.get("source", settings.source)
    if source != settings.source:
        raise InputError(
            f"it was measured with source {source}, the bench has {settings.source}; "
            "measure it again"
        )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def run_twin(
    cell: Cell,
    seed: int,
    *,
    settings: SparkSettings,
    twin: Twin,
    allocation: Allocation | None = None,
    journal: Path | None = None,
    trace: bool = False,
    luck: int | None = None,
) -> CellRun:
    """Run a cell once on a twin of Spark: what it scored.

    settings: of the Spark that the twin stands for
    allocation: of Spark's own, if that is the policy
    journal, trace: as in ``Cell.run``
    luck: seed of the simulated noise, the run's own if left out: another one is another run of
        the same load
    """
    load = load_of(cell, settings, seed, twin.capacity.all)
    scale = Scale(start=0.0, speed=settings.speed, rate=load.rate)
    run = RunRecord(cell, seed, scale, journal=journal)
    luck = seed if luck is None else luck
    engine = _engine(cell, settings, twin, allocation, load.pattern, luck)
    with contextlib.closing(run.recording):
        act(engine, run, now=lambda: engine.now)
        run.executors = engine.record().executors
        engine.finish()
    run.recording.keep()
    run.collect(engine.record().batches[cell.query])
    outcome = scored(load, twin.capacity, run)
    return outcome if trace else replace(outcome, trace=None)


def _engine(
    cell: Cell,
    settings: SparkSettings,
    twin: Twin,
    allocation: Allocation | None,
    pattern: Pattern,
    seed: int,
) -> MicroBatchEngine:
    """The simulated application, under its own allocation if that is the policy."""
    limits = (1, settings.slots) if allocation is None else (allocation.least, allocation.most)
    return MicroBatchEngine(
        limited(twin.profile, settings, twin.capacity.rows),
        {
            table: squeezed(pattern, speed=1.0, rate=share)
            for table, share in shares_of(twin.profile).items()
        },
        seconds=settings.clock(cell.seconds),
        start=cell.start_sizes()[POOL],
        window=window_of(cell, settings),
        seed=seed,
        limits=limits,
        allocation=None if allocation is None else allocation.settings,
    )
