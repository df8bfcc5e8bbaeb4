"""A running Spark application as an engine: observe it, resize it, wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from penstock.core.errors import EngineError, InputError
from penstock.core.model import Change, Slot, Snapshot
from penstock.spark.cluster import LocalCluster
from penstock.spark.executors import ExecutorPool
from penstock.spark.metrics import POOL, query_window, snapshot
from penstock.spark.progress import ProgressLog
from penstock.spark.rest import Executor, Rest, Stage

POLL = 0.5  # seconds between looks while an action is timed
KEPT_BATCHES = 500


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
        self._stages: dict[tuple[str, int], list[Stage]] = {}
        self._last: dict[str, tuple[float, float, float | None]] = {}
        self._seen_batches: dict[str, float] = {}
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
        self._keep(self._rest.new_stages())
        executors = self._rest.executors()
        self._track(executors, now)
        cores = max((e.cores for e in executors), default=1)
        windows = []
        for run_id, batches in queries.items():
            stages = [s for b in batches for s in self._stages.get((run_id, b.id), ())]
            seen = query_window(batches, stages, now=now, window=self._window, cores=cores)
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
        for run_id, batches in self._log.queries().items():
            for batch in batches:
                if batch.end > self._seen_batches.get(run_id, 0.0):
                    self._seen_batches[run_id] = batch.end
                    self.pool.batch_ended(batch.start, batch.end)

    def _keep(self, stages: list[Stage]) -> None:
        for stage in stages:
            if stage.run_id is not None and stage.batch is not None:
                self._stages.setdefault((stage.run_id, stage.batch), []).append(stage)
        while len(self._stages) > KEPT_BATCHES:
            self._stages.pop(next(iter(self._stages)))

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
            if e.id in self._last:
                then, tasks, cpu_then = self._last[e.id]
                elapsed = (now - then) * e.cores
                load = min(1.0, (e.task_seconds - tasks) / elapsed)
                if cpu_then is not None and e.id in cpu and self._cluster is not None:
                    share = self._cluster.share(e.id, application)
                    used = (cpu[e.id] - cpu_then) / (elapsed * (share or 1.0))
            slots[e.id] = Slot(id=e.id, node=e.host, cpu=used, load=load)
        if not executors and self._context.master.startswith("local["):
            slots = {str(n): Slot(id=str(n)) for n in range(self._rest.driver_cores())}
        self._last = kept
        return slots
