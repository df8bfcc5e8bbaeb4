"""Spark's monitoring REST interface: stages and executors of one application, typed."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from penstock.batches.partitions import MOST_TASKS
from penstock.batches.values import Stage, Task
from penstock.core.errors import EngineError
from penstock.spark.read.documents import stage_of, task_of
from penstock.spark.read.status import Document, Status

# Addresses for tests of networks (RFC 2544), which emulated sites have: only this machine knows
# them, so that a proxy for the world outside must not be asked.
TEST_NETWORKS = ("198.18.", "198.19.")
_ask_directly = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class Rest(Status):
    """Reads one application through its driver's REST interface.

    ``timeout`` seconds for one answer; the very first takes a busy driver several.
    """

    def __init__(self, url: str, application: str, *, timeout: float = 20.0) -> None:
        super().__init__()
        self._base = f"{url.rstrip('/')}/api/v1/applications/{application}"
        self._timeout = timeout
        self._direct = (urllib.parse.urlsplit(url).hostname or "").startswith(TEST_NETWORKS)

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
        url = self._base + path
        ask = _ask_directly if self._direct else urllib.request.urlopen
        try:
            with ask(url, timeout=self._timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if missing_ok and error.code == 404:
                return None
            raise EngineError(f"Spark's REST interface answered {error.code} to {url}") from error
        except (OSError, ValueError) as error:
            raise EngineError(
                f"Spark's REST interface did not answer at {url}: {error}. "
                "Is spark.ui.enabled true and the application alive?"
            ) from error
