"""Runs cells on Spark: measures each query before its first run, then runs on a warm cluster."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.batches.snapshot import POOL
from penstock.bench.cell import SparkCell
from penstock.bench.compressed.load import load_of
from penstock.bench.compressed.run import RunRecord, Watch, act, scored, window_of
from penstock.bench.compressed.thesis_time import Scale
from penstock.comparison.cell import CellRun
from penstock.core.errors import EngineError
from penstock.lab.clusters.standalone.full_speed import full_speed
from penstock.lab.queries import nexmark
from penstock.lab.rig import capacity
from penstock.lab.rig.capacity import events_of, query_settings
from penstock.lab.rig.capacity_file import Capacity, read_capacities, write_capacities
from penstock.lab.rig.ending import final_moment
from penstock.lab.rig.rig import Rig
from penstock.lab.rig.saturation import stopping
from penstock.lab.rig.settings import SparkSettings
from penstock.spark.engine import SparkEngine
from penstock.spark.read.progress import ProgressLog


class SparkWorker:
    """One cluster for all runs of a bench; a context manager.

    What a query can do is measured once and kept in ``folder``, so that a bench that is resumed
    has the same loads. How fast the machine is then is measured again before each further seed,
    for who compares these runs with others.
    """

    def __init__(
        self,
        settings: SparkSettings,
        folder: Path,
        *,
        servers: str | None = None,
        say: Callable[[str], None],
        watch: Watch,
    ) -> None:
        self._folder = folder
        self._watch = watch
        self._rig = Rig(settings, servers=servers, say=say)
        self._paced: set[tuple[str, int]] = set()  # queries and seeds

    def run(self, cell: SparkCell, seed: int, *, journal: Path | None, first: bool) -> CellRun:
        """Run a cell once; the first seed is checked if the settings say so."""
        known = self._capacity(cell.query)
        kind = cell.allocation()
        self._rig.use(kind)
        capacity.warm_up(self._rig, cell.query, known)
        if kind is None and not first:
            self._pace(cell.query, seed, known)
        return run_on_spark(
            self._rig,
            cell,
            seed,
            known,
            journal=journal,
            check=first and self._rig.settings.check,
            watch=self._watch,
        )

    def recover(self) -> None:
        """Go on with a new cluster."""
        self._rig.renew()

    def _capacity(self, query: str) -> Capacity:
        known = read_capacities(self._folder)
        if query not in known:
            self._rig.use(None)  # it takes executors that stay as many as they are
            known[query] = capacity.measure(self._rig, query)
            write_capacities(self._folder, known)
        return known[query]

    def _pace(self, query: str, seed: int, known: Capacity) -> None:
        """Measure once more what the machine can do, if it has not been for this seed."""
        if (query, seed) in self._paced:
            return
        found = capacity.again(self._rig, query, known)
        capacities = read_capacities(self._folder)
        capacities[query] = replace(known, again=(*known.again, found))
        write_capacities(self._folder, capacities)
        self._paced.add((query, seed))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._rig.__exit__(kind, problem, trace)


# One run of a cell on Spark: a fresh query under the workload, with the policy acting.
#
# If the policy is Spark's own allocation, Spark acts and what it did is seen in its executors.

LEAD = 5.0  # seconds from the start of a query to that of its load
LAST_BATCH = 60.0  # seconds that the batch under way at the end may take
LOOK = 0.3  # seconds between two looks at the last batch


def run_on_spark(
    rig: Rig,
    cell: SparkCell,
    seed: int,
    capacity: Capacity,
    *,
    journal: Path | None,
    check: bool,
    watch: Watch,
) -> CellRun:
    """Run a cell once: scores and trace in thesis time.

    ``check`` whether to compare the streamed result with a batch run over the same events.
    """
    settings = rig.settings
    load = load_of(cell, settings, seed, capacity.all)
    rig.resize(cell.start_sizes()[POOL])
    start = math.ceil((time.time() + LEAD) / settings.minute) * settings.minute
    scale = Scale(start=start, speed=settings.speed, rate=load.rate)
    events = events_of(
        cell.query,
        settings,
        seed=seed,
        rows=capacity.rows,
        pattern=load.pattern,
        start=start,
        seconds=settings.clock(cell.seconds),
    )
    run = RunRecord(cell, seed, scale, journal=journal, watch=watch)
    query, times = nexmark.QUERIES[cell.query], query_settings(settings)
    answer: nexmark.Comparison | None = None
    with rig.folder() as folder, rig.feed.topics(query, events) as topics:
        running = nexmark.start(
            rig.session(),
            query,
            events,
            times,
            folder=folder,
            trigger=settings.trigger,
            name=cell.key,
            topics=topics,
        )
        with stopping(running), contextlib.closing(run.recording):
            _act(rig, running, run)
            if check:
                rig.say(f"{cell.key}: waiting until its result is complete…")
                with full_speed(rig.cluster):
                    until = final_moment(running, query, events)
        if check:
            rig.say(f"{cell.key}: comparing its result with a batch run…")
            with full_speed(rig.cluster):
                answer = nexmark.compare(
                    rig.session(), query, events, times, folder=folder, until=until
                )
    run.recording.keep()
    outcome = scored(load, capacity, run)
    checked = {
        "missing": None if answer is None else float(answer.missing),
        "surplus": None if answer is None else float(answer.surplus),
    }
    return replace(outcome, scores={**outcome.scores, **checked})


def _act(rig: Rig, running: Any, run: RunRecord) -> None:
    """Let the policy act, or watch Spark act, and wait for the last batch."""
    spark = rig.session()
    window = window_of(run.cell, rig.settings)
    engine = SparkEngine(spark, window=window, cluster=rig.cluster)
    log = ProgressLog()

    def alive() -> None:
        if not running.isActive:
            raise EngineError(f"{run.cell.key}: the query stopped: {running.exception()}")

    engine.attach()
    log.attach(spark)
    try:
        act(engine, run, before=alive, after=lambda: _collect(log, run))
        run.executors = rig.executors()
        _finish_batch(running, log, run)
    finally:
        log.detach(spark)
        engine.detach()


def _collect(log: ProgressLog, run: RunRecord) -> None:
    """The batches that have ended since the last call."""
    for batches in log.queries().values():
        run.collect(b for b in batches if b.query == run.cell.key)


def _finish_batch(running: Any, log: ProgressLog, run: RunRecord) -> None:
    """Wait until every batch that was planned during the load has said what it took."""
    end = run.scale.start + run.cell.seconds / run.scale.speed
    deadline = time.monotonic() + LAST_BATCH
    while time.monotonic() < deadline:
        idle = not running.status["isTriggerActive"]
        running.awaitTermination(LOOK)
        _collect(log, run)
        if idle or any(start >= end for start in run.batches):
            return
    raise EngineError(
        f"{run.cell.key}: the last batch took more than {LAST_BATCH:.0f} s; the load is too "
        "high for so few executors. Set a lower peak"
    )
