"""A running Spark application as an engine: observe it, resize it, wait."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.batches.actions import join_time, usual_join
from penstock.batches.arrival_monitor import ArrivalLog
from penstock.batches.diagnosis import QueryFacts, TaskLists, diagnose, no_query
from penstock.batches.partitions import PartitionLog
from penstock.batches.presence import Presence
from penstock.batches.running import BATCH_TIME, NewestLog, Underway, tasks_of
from penstock.batches.snapshot import POOL, snapshot
from penstock.batches.stages import StageLog
from penstock.batches.values import Batch, Executor, Stage, tasks_at_once
from penstock.batches.warmth import Warmth, is_cold
from penstock.batches.window import QueryWindow, windows_of
from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.findings import Finding
from penstock.core.model import Change, Slot, Snapshot
from penstock.spark.act.executors import ExecutorPool
from penstock.spark.act.shares import FULL, CpuShares
from penstock.spark.ports import CpuLimited
from penstock.spark.read.cpu import CpuMeter
from penstock.spark.read.kafka import KafkaEnds
from penstock.spark.read.progress import ProgressLog
from penstock.spark.read.status import Status
from penstock.spark.read.store import Store
from penstock.spark.read.underway import underway_of

POLL = 0.5  # seconds between looks while an action is timed


class SparkEngine:
    """All streaming queries of one session, as one pipeline on one pool of executors.

    window: seconds of finished batches that an observation covers
    cluster: measures the CPU of each executor and can change it; without one the CPU is taken
        from what the tasks report
    arrivals: whether to keep the newest arrivals, for policies that want them
    status: what is asked for stages and executors; Spark's status store in this driver's JVM
    batch_time: seconds that a batch may take of a query without a trigger
    stopped: ends a wait
    """

    def __init__(
        self,
        spark: Any,
        *,
        window: float = 15.0,
        cluster: CpuLimited | None = None,
        arrivals: bool = False,
        status: Status | None = None,
    ) -> None:
        if not window > 0:
            raise InputError(f"window {window} s must be above 0")
        self._spark = spark
        self._context = spark.sparkContext
        self._window = window
        self._status = Store(self._context) if status is None else status
        self._log = ProgressLog()
        self._stages = StageLog()
        self._partitions = PartitionLog()
        self._newest = NewestLog(window)
        self._warmth = Warmth()
        self._presence = Presence()
        self._suspects = TaskLists(self._status.tasks)
        self._kafka = KafkaEnds()
        self._driver_cores: int | None = None
        self._last: dict[str, tuple[float, float]] = {}
        self._seen_batches: dict[str, float] = {}
        self._settled: dict[str, int] = {}
        self._meter = CpuMeter(cluster) if cluster is not None else None
        self.arrivals = ArrivalLog() if arrivals else None
        self.shares = CpuShares(cluster, self._context.applicationId)
        self.pool = ExecutorPool(self._context)
        self.batch_time = BATCH_TIME
        self.stopped = threading.Event()

    def attach(self) -> None:
        """Start listening to the session's queries."""
        self._log.attach(self._spark)

    def detach(self) -> None:
        """Stop listening and end any wait."""
        self.stopped.set()
        self._kafka.close()
        self._log.detach(self._spark)

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries that have finished a batch and still run."""
        return tuple(batches[-1].query for batches in self._log.queries().values())

    def observe(self) -> Snapshot:
        """The last batches of all queries, those that run included."""
        now = time.time()
        underway = self._newest.rated(self._underway(), now)
        queries = self._running(underway, now)
        self._read_stages()
        self._stages.retain({*queries, *underway})
        self._read_again(queries)
        self._partitions.read(queries, self._stages, self._status.tasks)
        executors = self._status.executors()
        self._track(executors, now)
        self.shares.keep()
        self._warmth.look(executors, now)
        slots = self._slots(executors, now)
        cores = tasks_at_once(executors)
        windows = windows_of(
            queries,
            self._stages,
            self._partitions,
            now=now,
            window=self._window,
            cores=cores,
            slots=len(slots),
            underway={run: at for run, at in underway.items() if at.told},
            cold=self._warmth.cold_share,
        )
        findings = self._findings(queries, underway, windows, slots, cores, now)
        if not windows and (batch := self._first_batch(underway, now)):
            raise NotReady(batch, findings)
        return snapshot(
            windows,
            executors,
            now=now,
            slots=slots,
            acting=self.pool.acting,
            rescales=self.pool.past,
            arrivals=None if self.arrivals is None else self.arrivals.read(queries),
            join=join_time(self.pool.past, usual_join(self._context.master)),
            unmeasured=self._presence.unmeasured(underway, {w.run_id for w in windows}, now),
            findings=findings,
        )

    def _running(self, underway: Mapping[str, Underway], now: float) -> dict[str, list[Batch]]:
        """The batches of the queries that run, without those of one that is about to be told ended.

        What is known of how it ran, such as its trigger, is gone with it.
        """
        self._presence.look(underway, now)
        queries = self._log.queries()
        self._presence.forget(queries)
        return {run: kept for run, kept in queries.items() if run not in self._presence.gone}

    def _findings(
        self,
        queries: Mapping[str, Sequence[Batch]],
        underway: Mapping[str, Underway],
        windows: Sequence[QueryWindow],
        slots: Mapping[str, Slot],
        cores: float,
        now: float,
    ) -> tuple[Finding, ...]:
        """What ails the queries, or that there is none."""
        if self._presence.without_since is not None:
            return no_query(self._presence.without_since, now)
        used = [slot.cpu for slot in slots.values() if slot.cpu is not None]
        held = {w.run_id: w.seen.held_slots for w in windows}
        found: list[Finding] = []
        for run, at in underway.items():
            facts = QueryFacts(
                name=at.query,
                batches=queries.get(run, ()),
                stages=self._stages.of(run),
                underway=at,
                again=self._presence.again(run, now),
                held_slots=held.get(run),
            )
            found += diagnose(
                facts,
                now=now,
                cores=cores * len(slots),
                cpu=sum(used) / len(used) if used else None,
                tasks=self._suspects.of,
            )
        return tuple(found)

    def _first_batch(self, underway: Mapping[str, Underway], now: float) -> str | None:
        """How far the first batch of a query is, of which no task has ended."""
        for run, at in underway.items():
            if at.batch is not None:
                ended, known = tasks_of(self._stages.of(run).get(at.batch.id, ()))
                since = f"runs since {now - at.batch.start:.0f} s"
                return f"batch {at.batch.id} of {at.query} {since}, {ended} of {known} tasks done"
        return None

    def _read_stages(self) -> None:
        before = self._status.resynchronised
        self._stages.add(self._at_full_cpu(self._status.new_stages()))
        self._stages.add(self._at_full_cpu(self._status.running))
        if self._status.resynchronised > before:
            raise EngineError(
                "Spark forgot stages before they could be read, or there were too many since the "
                "last look; the next one goes on with newer ones. If this comes again, shorten "
                "the period or raise spark.ui.retainedStages"
            )

    def _underway(self) -> dict[str, Underway]:
        ended = {run: batches[-1].id for run, batches in self._log.queries().items()}
        found = underway_of(self._spark.streams.active, ended, self._kafka)
        self._kafka.retain(found)
        # One may have ended while we asked; its progress is the better source.
        ended = {run: batches[-1].id for run, batches in self._log.queries().items()}
        return {
            run: replace(
                at,
                batch_time=self.batch_time,
                batch=at.batch if at.batch and at.batch.id > ended.get(run, -1) else None,
            )
            for run, at in found.items()
        }

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Resize the pool of executors, and give each its share of CPU."""
        change = changes.get(POOL)
        if change is None:
            return
        self.pool.refuse_if_not_ours()
        if change.cpu_share is not None:
            self.pool.refuse_if_frozen()
            self.shares.set(change.cpu_share)
        self.pool.resize(change, self._status.executors(), time.time())

    def advance(self, seconds: float) -> bool:
        """Wait; meanwhile time the action in flight. False when stopped."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self.stopped.wait(min(POLL, left) if self.pool.watching else left):
                return False
            if self.pool.watching:
                self.look()
        return True

    def look(self) -> None:
        """Look at the action in flight, to time it."""
        with contextlib.suppress(EngineError):  # the next observation reports it
            self._track(self._status.executors(), time.time())

    def executors(self) -> list[Executor]:
        """What Spark says of its executors at this moment, of those that are gone too."""
        return self._status.executors()

    def slots(self) -> tuple[Slot, ...]:
        """The executors, also before the first batch; CPU and load since the last look."""
        return tuple(self._slots(self._status.executors(), time.time()).values())

    def _track(self, executors: list[Executor], now: float) -> None:
        self.pool.track(executors, now)
        queries = self._log.queries()
        for run_id, batches in queries.items():
            for batch in batches:
                if batch.end > self._seen_batches.get(run_id, 0.0):
                    self._seen_batches[run_id] = batch.end
                    self.pool.batch_ended(batch.start, batch.end)
        self._seen_batches = {r: end for r, end in self._seen_batches.items() if r in queries}

    def _read_again(self, queries: Mapping[str, list[Batch]]) -> None:
        """Stages of a new batch that had to try again: they, or those that they read from, may
        have gone on after they were read.
        """
        for run_id, batches in queries.items():
            stages, settled = self._stages.of(run_id), self._settled.get(run_id, -1)
            for batch in batches:
                mine = stages.get(batch.id, ()) if batch.id > settled else ()
                if any(s.retried for s in mine):
                    again = [s for old in mine if (s := self._status.stage(old.id))]
                    self._stages.add(self._at_full_cpu(again))
        self._settled = {run_id: batches[-1].id for run_id, batches in queries.items()}

    def _at_full_cpu(self, stages: Sequence[Stage]) -> Sequence[Stage]:
        """What they would have taken with all of their CPU, so that costs outlast a change."""
        share = self.shares.now
        if share == FULL:
            return stages
        return [
            replace(s, run_time=s.run_time * share, fetch_wait=s.fetch_wait * share) for s in stages
        ]

    def _slots(self, executors: list[Executor], now: float) -> dict[str, Slot]:
        """Executors as slots; CPU and load since the last observation."""
        alive = [e for e in executors if e.alive]
        used: Mapping[str, float] = {}
        if self._meter is not None:
            used = self._meter.used(self._context.applicationId, {e.id: e.cores for e in alive})
        slots = {}
        for e in alive:
            load = None
            if e.id in self._last and now > self._last[e.id][0]:
                then, tasks = self._last[e.id]
                load = min(1.0, (e.task_seconds - tasks) / ((now - then) * e.tasks_at_once))
            slots[e.id] = Slot(
                id=e.id,
                node=e.host,
                cpu_share=self.shares.now,
                cpu=used.get(e.id),
                load=load,
                cold=is_cold(e),
            )
        if not executors and self._context.master.startswith("local["):
            if self._driver_cores is None:
                self._driver_cores = self._status.driver_cores()
            slots = {str(n): Slot(id=str(n)) for n in range(self._driver_cores)}
        self._last = {e.id: (now, e.task_seconds) for e in alive}
        return slots
