"""Spark's status store, read inside the driver's JVM: no port, no proxy, no UI needed."""

from __future__ import annotations

import json
from typing import Any

from penstock.batches.partitions import MOST_TASKS
from penstock.batches.values import Stage, Task
from penstock.core.errors import EngineError
from penstock.spark.read.documents import stage_of, task_of
from penstock.spark.read.status import Document, Status


class Store(Status):
    """Reads the application of this driver; the documents are those of the REST interface."""

    def __init__(self, context: Any) -> None:
        super().__init__()
        self._context = context
        self._store: Any = None

    def executor_documents(self) -> list[Document]:
        """All executors, those that are gone and the driver included."""
        return list(self._read(lambda store: store.executorList(False)))

    def active_documents(self) -> list[Document]:
        """The stages that run or wait to run, one document per attempt."""
        return list(
            self._read(
                lambda store: store.stageList(
                    self._unfinished, False, False, self._quantiles, self._all
                )
            )
        )

    def newest_stage(self) -> int:
        """The id of the newest stage that Spark knows; −1 if there is none."""

        def newest(store: Any) -> int:
            stages = store.stageList(None, False, False, self._quantiles, self._all)
            # The newest first, which no version promises.
            ends = (stages.head(), stages.last()) if stages.size() else ()
            return max((int(s.stageId()) for s in ends), default=-1)

        return int(self._ask(newest))

    def stage(self, stage_id: int) -> Stage | None:
        """One stage as it is now; ``None`` if Spark does not know it, or no more."""
        attempts = self._read(
            lambda store: store.stageData(stage_id, False, self._all, False, self._quantiles)
        )
        return stage_of(attempts) if attempts else None

    def tasks(self, stage: Stage) -> list[Task]:
        """The tasks of the newest attempt of a stage, at most 64 of them, the longest first."""
        found = self._read(
            lambda store: store.taskList(
                stage.id, stage.attempt, 0, MOST_TASKS, self._longest_first, self._all
            )
        )
        return [task_of(t) for t in found if t.get("taskMetrics")]

    def _read(self, ask: Any) -> Any:
        """The documents of what the store answers."""
        return json.loads(self._ask(lambda store: self._mapper.writeValueAsString(ask(store))))

    def _ask(self, ask: Any) -> Any:
        try:
            if self._store is None:
                self._connect()
            return ask(self._store)
        except Exception as error:  # of the gateway: the session is stopped, the JVM gone
            problem = str(error).split("\n", 1)[0]
            raise EngineError(f"Spark's status store could not be read: {problem}") from error

    def _connect(self) -> None:
        jvm, gateway = self._context._jvm, self._context._gateway
        api = jvm.org.apache.spark.status.api.v1
        # As REST writes it, but for the spaces and line ends that make up a third of it.
        plain = jvm.com.fasterxml.jackson.databind.SerializationFeature.INDENT_OUTPUT
        self._mapper = api.JacksonMessageWriter().mapper().writer().without(plain)
        self._quantiles = gateway.new_array(jvm.double, 0)
        self._all = jvm.java.util.ArrayList()
        self._unfinished = jvm.java.util.ArrayList()
        for status in (api.StageStatus.ACTIVE, api.StageStatus.PENDING):
            self._unfinished.add(status)
        self._longest_first = api.TaskSorting.DECREASING_RUNTIME
        self._store = self._context._jsc.sc().statusStore()
