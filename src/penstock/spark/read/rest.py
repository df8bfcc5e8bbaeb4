"""Spark's monitoring REST interface: stages and executors of one application, typed."""

from __future__ import annotations

from typing import Any

from penstock.batches.partitions import MOST_TASKS
from penstock.batches.values import Stage, Task
from penstock.spark.read.documents import stage_of, task_of
from penstock.spark.read.http import AbsentError, Endpoint, RefusedError
from penstock.spark.read.status import Document, Status


class Rest(Status):
    """Reads one application through its driver's REST interface.

    ``timeout`` seconds for one answer; the very first takes a busy driver several. An endpoint
    instead of an address shares its budget.
    """

    def __init__(self, url: str | Endpoint, application: str, *, timeout: float = 20.0) -> None:
        super().__init__()
        self.endpoint = url if isinstance(url, Endpoint) else Endpoint(url, timeout=timeout)
        self._path = f"/api/v1/applications/{application}"

    def executor_documents(self) -> list[Document]:
        """All executors, those that are gone and the driver included."""
        return list(self._get("/allexecutors"))

    def active_documents(self) -> list[Document]:
        """The stages that run or wait to run, one document per attempt."""
        return list(self._get("/stages?status=active&status=pending&details=false"))

    def newest_stage(self) -> int:
        """The id of the newest stage that Spark knows; −1 if there is none."""
        return max((int(s["stageId"]) for s in self._get("/stages")), default=-1)

    def stage(self, stage_id: int) -> Stage | None:
        """One stage as it is now; ``None`` if Spark does not know it, or no more."""
        attempts = self._get(f"/stages/{stage_id}?details=false", missing_ok=True)
        return stage_of(attempts) if attempts else None

    def tasks(self, stage: Stage) -> list[Task]:
        """The tasks of the newest attempt of a stage, at most 64 of them, the longest first."""
        path = f"/stages/{stage.id}/{stage.attempt}/taskList?sortBy=-runtime&length={MOST_TASKS}"
        found = self._get(path, missing_ok=True) or []
        return [task_of(t) for t in found if t.get("taskMetrics")]

    def _get(self, path: str, *, missing_ok: bool = False) -> Any:
        try:
            return self.endpoint.get(self._path + path)
        except AbsentError as error:
            if missing_ok:
                return None
            url = self.endpoint.base + self._path + path
            raise AbsentError(f"Spark's REST interface answered 404 to {url}") from error
        except RefusedError as error:
            url = self.endpoint.base + self._path + path
            raise RefusedError(
                f"Spark's REST interface did not answer at {url}: {error.__cause__}. "
                "Is spark.ui.enabled true and the application alive?"
            ) from error
