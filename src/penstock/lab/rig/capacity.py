"""How much a query can do on one executor and on all of them, measured before its first run.

The query gets more than it can take, in micro-batches as large as those of the runs, and with as
many records per second of event time as it can do, so that windows close as often as in a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.lab.kafka.writer import SPREAD
from penstock.lab.queries import nexmark
from penstock.lab.queries.running import consumed_of
from penstock.lab.rig.capacity_file import FIRST_ROWS, TRIGGERS, Capacity, settle
from penstock.lab.rig.rig import Rig
from penstock.lab.rig.saturation import Counting, SaturatedThroughput, lasted, saturated_throughput
from penstock.lab.rig.settings import KAFKA, SparkSettings
from penstock.workloads.nexmark import PRESETS, NexmarkStream, Table
from penstock.workloads.patterns import Constant

SECONDS = 12.0  # of whole batches in a measurement
ROUND = 2.0  # seconds of batches in a round that only looks for the right size
ROUNDS = 8
WARM_ROUNDS = 4  # at most: under Spark's own allocation executors come and go
BACKLOG = 3_600.0  # seconds of event time that wait at the start
WARM_BATCHES = 1  # not counted after the start of a query
GIVE_UP = 240.0
WATERMARK = 2.0  # thesis seconds
# What is written to Kafka before a measurement, since it has to be written first.
SPARE, LEAST_BATCHES = 1.5, 4  # times the records that should be read, and whole batches


def query_settings(settings: SparkSettings) -> nexmark.Settings:
    """The queries' windows and watermark on the clock."""
    late = SPREAD if settings.source == KAFKA else 0.0
    watermark = max(settings.clock(WATERMARK), late)
    return nexmark.Settings(minute=settings.minute, watermark=watermark)


def events_of(
    query: str, settings: SparkSettings, *, seed: int, rows: int, **when: Any
) -> NexmarkStream:
    """The thesis's events for a query; ``when`` they are released, see ``NexmarkStream``."""
    tables: tuple[Table, ...] = tuple(nexmark.QUERIES[query].tables)
    return NexmarkStream(
        events=replace(PRESETS["thesis"], seed=seed),
        tables=tables,
        partitions=settings.partitions,
        max_rows=rows,
        **when,
    )


def measure(rig: Rig, query: str) -> Capacity:
    """Throughput of one executor and of all."""
    settings = rig.settings
    most = settings.slots
    rig.say(f"{query}: starting {most} executors to measure what they can do…")
    rig.resize(most)
    rows, density = _batch_size(rig, query, FIRST_ROWS * most)
    every = saturated(rig, query, rows=rows, density=density, seconds=SECONDS).rate
    rig.say(f"{query}: {most} executors do {every:,.0f} records/s")
    rig.resize(1)
    one = saturated(rig, query, rows=rows, density=every / most, seconds=SECONDS).rate
    rig.say(f"{query}: one executor does {one:,.0f} records/s")
    if one >= every:
        rig.say(f"{query}: {most} executors do no more than one; is this machine busy?")
    rig.warmed.add(query)
    return Capacity(slots=most, one=one, all=every, rows=rows)


def _batch_size(rig: Rig, query: str, rows: int) -> tuple[int, float]:
    """Rows of a batch that takes all executors about two triggers, and their records/s."""
    density = float(rows)

    def seconds(rows: int) -> float:
        nonlocal density
        measured = saturated(rig, query, rows=rows, density=density, seconds=ROUND)
        density = measured.rate
        return measured.batch_seconds

    target = rig.settings.trigger * TRIGGERS
    found = settle(
        seconds, rows, target, rounds=ROUNDS, warm=lambda: rig.warm, say=_prefixed(rig, query)
    )
    return found, density


def _prefixed(rig: Rig, query: str) -> Callable[[str], None]:
    return lambda line: rig.say(f"{query}: {line}")


def warm_up(rig: Rig, query: str, capacity: Capacity) -> None:
    """Let a new cluster run a query before it is measured, until its executor is warm."""
    if query in rig.warmed:
        return
    rig.say(f"{query}: warming up…")
    _until_warm(rig, query, rows=capacity.rows, density=capacity.one)
    rig.warmed.add(query)


def again(rig: Rig, query: str, capacity: Capacity) -> float:
    """Records/s that all executors do now, in the batches that were found to be right."""
    rig.say(f"{query}: measuring again what {capacity.slots} executors can do…")
    rig.resize(capacity.slots)
    rows, density = capacity.rows, capacity.all
    _until_warm(rig, query, rows=rows, density=density)
    found = saturated(rig, query, rows=rows, density=density, seconds=SECONDS).rate
    rig.say(f"{query}: {found:,.0f} records/s, {capacity.all:,.0f} at first")
    return found


def _until_warm(rig: Rig, query: str, *, rows: int, density: float) -> None:
    for _ in range(WARM_ROUNDS):
        warm = rig.warm
        saturated(rig, query, rows=rows, density=density, seconds=ROUND)
        if warm:
            break


def _backlog(settings: SparkSettings, *, rows: int, density: float, seconds: float) -> float:
    """Seconds of event time that wait at the start of a measurement."""
    if settings.source != KAFKA:
        return BACKLOG
    return LEAST_BATCHES * rows / density + SPARE * seconds


def saturated(
    rig: Rig, query: str, *, rows: int, density: float, seconds: float
) -> SaturatedThroughput:
    """Some seconds of whole batches of a fresh query that always has more to do.

    ``density`` records per second of event time. Fewer if it has read all that wait in Kafka.
    """
    waiting = _backlog(rig.settings, rows=rows, density=density, seconds=seconds)
    events = events_of(
        query,
        rig.settings,
        seed=0,
        rows=rows,
        pattern=Constant(rps=density),
        start=time.time() - waiting,
        seconds=waiting,
    )
    asked = nexmark.QUERIES[query]
    everything = tuple(events.total(table) for table in asked.tables)
    running: Any = None

    def start(folder: Path) -> Any:
        nonlocal running
        running = nexmark.start(
            rig.session(),
            asked,
            events,
            query_settings(rig.settings),
            folder=folder,
            trigger=rig.settings.trigger,
            name=f"capacity-{query}",
            topics=topics,
        )
        return running

    counting = Counting(
        enough=lambda batches: (
            lasted(batches) >= seconds or consumed_of(running.lastProgress) == everything
        ),
        skip=WARM_BATCHES,
        within=GIVE_UP,
        hint="raise cpu_share",
    )
    with rig.feed.topics(asked, events, backlog=True) as topics:
        return saturated_throughput(start, counting, parent=rig.cluster.folder)
