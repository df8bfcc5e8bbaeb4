"""A running Spark application as an engine: observe it, resize it, wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from penstock.core.errors import EngineError, InputError
from penstock.core.model import Change, Slot, Snapshot
from penstock.spark.executors import ExecutorPool
from penstock.spark.local.cluster import LocalCluster
from penstock.spark.measure.metrics import POOL, query_window, snapshot
from penstock.spark.measure.partitions import Partitions, busiest_stage, partitions_of
from penstock.spark.measure.progress import Batch, ProgressLog
from penstock.spark.measure.rest import Executor, Rest
from penstock.spark.measure.stages import StageLog

POLL = 0.5  # seconds between looks while an action is timed
MOST_TASK_LISTS = 2  # read per observation; the driver should not notice us


class SparkEngine:
    """All streaming queries of one session, as one pipeline on one pool of executors.

    ``window`` seconds of finished batches that an observation covers · ``cluster`` measures the
    CPU of each executor, if it is ours; else it is taken from what the tasks report ·
    ``stopped`` ends a wait.
    """

    def __init__(
        self, spark: Any, *, window: float = 15.0, cluster: LocalCluster | None = None
    ) -> None:
        if not window > 0:
            raise InputError(f"window {window} s must be above 0")
        self._spark = spark
        self._context = spark.sparkContext
        if self._context.uiWebUrl is None:
            raise InputError(
                "spark.ui.enabled is false: Penstock reads stages and executors from the "
                "driver's REST interface. Set spark.ui.enabled to true"
            )
        self._window = window
        self._rest = Rest(self._context.uiWebUrl, self._context.applicationId)
        self._log = ProgressLog()
        self._stages = StageLog()
        self._partitions: dict[str, tuple[int, Partitions | None]] = {}
        self._driver_cores: int | None = None
        self._last: dict[str, tuple[float, float, float | None]] = {}
        self._seen_batches: dict[str, float] = {}
        self._settled: dict[str, int] = {}
        self._cluster = cluster
        self.pool = ExecutorPool(self._context)
        self.stopped = threading.Event()

    def attach(self) -> None:
        """Start listening to the session's queries."""
        self._log.attach(self._spark)

    def detach(self) -> None:
        """Stop listening and end any wait."""
        self.stopped.set()
        self._log.detach(self._spark)

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries that have finished a batch and still run."""
        return tuple(batches[-1].query for batches in self._log.queries().values())

    def observe(self) -> Snapshot:
        """The last finished batches of all queries."""
        now = time.time()
        queries = self._log.queries()
        self._stages.add(self._rest.new_stages())
        self._stages.retain(queries)
        self._read_again(queries)
        self._read_partitions(queries)
        executors = self._rest.executors()
        self._track(executors, now)
        cores = max((e.cores for e in executors), default=1)
        windows = []
        for run_id, batches in queries.items():
            seen = query_window(
                batches,
                self._stages.of(run_id),
                now=now,
                window=self._window,
                cores=cores,
                partitions=self._partitions.get(run_id, (0, None))[1],
            )
            if seen is not None and seen.works:
                windows.append(seen)
        return snapshot(
            windows,
            executors,
            now=now,
            slots=self._slots(executors, now),
            acting=self.pool.acting,
            rescales=self.pool.past,
        )

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Resize the pool of executors."""
        change = changes.get(POOL)
        if change is None:
            return
        self.pool.refuse_if_not_ours()
        self.pool.resize(change, self._rest.executors(), time.time())

    def advance(self, seconds: float) -> bool:
        """Wait; meanwhile time the action in flight. False when stopped."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self.stopped.wait(min(POLL, left) if self.pool.watching else left):
                return False
            if self.pool.watching:
                try:
                    self._track(self._rest.executors(), time.time())
                except EngineError:
                    continue  # the next observation reports it
        return True

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
                    self._stages.add([s for old in mine if (s := self._rest.stage(old.id))])
        self._settled = {run_id: batches[-1].id for run_id, batches in queries.items()}

    def _read_partitions(self, queries: Mapping[str, list[Batch]]) -> None:
        """Of the busiest stage of the newest batch, of the busiest queries."""
        busiest = {run: busiest_stage(b, self._stages.of(run)) for run, b in queries.items()}
        chosen = sorted(
            ((run, stage) for run, stage in busiest.items() if stage is not None),
            key=lambda item: -item[1].busy,
        )
        known, self._partitions = self._partitions, {}
        for run, stage in chosen[:MOST_TASK_LISTS]:
            if run not in known or known[run][0] != stage.id:
                known[run] = (stage.id, partitions_of(stage, self._rest.tasks(stage)))
            self._partitions[run] = known[run]

    def _slots(self, executors: list[Executor], now: float) -> dict[str, Slot]:
        """Executors as slots; CPU and load since the last observation."""
        application = self._context.applicationId
        cpu = self._cluster.cpu_seconds(application) if self._cluster else {}
        slots = {}
        kept = {}
        for e in executors:
            if not e.alive:
                continue
            kept[e.id] = (now, e.task_seconds, cpu.get(e.id))
            used = load = None
            if e.id in self._last and now > self._last[e.id][0]:
                then, tasks, cpu_then = self._last[e.id]
                elapsed = (now - then) * e.cores
                load = min(1.0, (e.task_seconds - tasks) / elapsed)
                if cpu_then is not None and e.id in cpu and self._cluster is not None:
                    share = self._cluster.share(e.id, application)
                    used = (cpu[e.id] - cpu_then) / (elapsed * (share or 1.0))
            slots[e.id] = Slot(id=e.id, node=e.host, cpu=used, load=load)
        if not executors and self._context.master.startswith("local["):
            if self._driver_cores is None:
                self._driver_cores = self._rest.driver_cores()
            slots = {str(n): Slot(id=str(n)) for n in range(self._driver_cores)}
        self._last = kept
        return slots
