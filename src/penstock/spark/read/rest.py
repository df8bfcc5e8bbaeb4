"""Spark's monitoring REST interface: stages and executors of one application, typed."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from typing import Any

from penstock.batches.partitions import MOST_TASKS
from penstock.batches.values import Executor, Stage, Task
from penstock.core.errors import EngineError

# Addresses for tests of networks (RFC 2544), which emulated sites have: only this machine knows
# them, so that a proxy for the world outside must not be asked.
TEST_NETWORKS = ("198.18.", "198.19.")
_ask_directly = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
LOOK_AHEAD = 3  # stage ids that may be missing before we believe that there are no newer ones


class Rest:
    """Reads one application through its driver's REST interface.

    ``timeout`` seconds for one answer; the very first takes a busy driver several.
    """

    def __init__(self, url: str, application: str, *, timeout: float = 20.0) -> None:
        self._base = f"{url.rstrip('/')}/api/v1/applications/{application}"
        self._timeout = timeout
        self._direct = (urllib.parse.urlsplit(url).hostname or "").startswith(TEST_NETWORKS)
        self._next_stage: int | None = None
        self._open: set[int] = set()

    def executors(self) -> list[Executor]:
        """All executors but the driver, those that are gone included."""
        return [_executor(e) for e in self._get("/allexecutors") if e["id"] != "driver"]

    def driver_cores(self) -> int:
        """Cores of the driver: the slots of a local[n] session."""
        return next(int(e["totalCores"]) for e in self._get("/allexecutors") if e["id"] == "driver")

    def new_stages(self) -> list[Stage]:
        """Stages that ended since the last call.

        The full list holds up to a thousand stages and would be read at every tick; ids are
        consecutive, so we ask for the next ones until there are none. The first call starts
        with the stages that run at that moment.
        """
        if self._next_stage is None:
            self._next_stage = self._skip_to_newest()
        ended = []
        missing = 0
        todo = sorted(self._open)
        while missing < LOOK_AHEAD:
            stage_id = todo.pop(0) if todo else self._next_stage + missing
            found = self.stage(stage_id)
            if stage_id >= self._next_stage:
                if found is None:
                    missing += 1
                    continue
                self._next_stage, missing = stage_id + 1, 0
            if found is None or found.done:
                self._open.discard(stage_id)
            else:
                self._open.add(stage_id)
            if found is not None and found.done:
                ended.append(found)
        return ended

    def _skip_to_newest(self) -> int:
        """Forget the stages of the past; returns the next id."""
        stages = self._get("/stages")
        self._open = {int(s["stageId"]) for s in stages if s["status"] in ("ACTIVE", "PENDING")}
        return max((int(s["stageId"]) for s in stages), default=-1) + 1

    def stage(self, stage_id: int) -> Stage | None:
        """One stage as it is now; ``None`` if Spark does not know it, or no more."""
        attempts = self._get(f"/stages/{stage_id}?details=false", missing_ok=True)
        return _stage(attempts) if attempts else None

    def tasks(self, stage: Stage) -> list[Task]:
        """The tasks of the newest attempt of a stage, at most 64 of them, the longest first."""
        path = f"/stages/{stage.id}/{stage.attempt}/taskList?sortBy=-runtime&length={MOST_TASKS}"
        found = self._get(path, missing_ok=True) or []
        return [_task(t) for t in found if t.get("taskMetrics")]

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


def _stage(attempts: list[dict[str, Any]]) -> Stage:
    """All attempts of a stage as one: a retried stage did all of that work.

    A later attempt runs only the partitions whose result is missing, or was lost again. Its reads
    are the same records once more, so records are scaled to one pass over the partitions.
    """
    newest = max(attempts, key=lambda a: int(a.get("attemptId", 0)))
    words = dict(
        line.split(" = ", 1) for line in newest.get("description", "").split("\n") if " = " in line
    )
    batch = words.get("batch", "")
    tasks = max(int(a["numTasks"]) for a in attempts)
    ended = sum(int(a.get("numCompleteTasks", 0)) for a in attempts)
    passes = max(1.0, ended / tasks) if tasks else 1.0

    def total(key: str) -> int:
        return sum(int(a.get(key, 0)) for a in attempts)

    return Stage(
        id=int(newest["stageId"]),
        run_id=words.get("runId"),
        batch=int(batch) if batch.isdigit() else None,
        done=newest["status"] not in ("ACTIVE", "PENDING"),
        tasks=tasks if newest["status"] != "SKIPPED" else 0,
        run_time=total("executorRunTime") / 1e3 + total("executorDeserializeTime") / 1e3,
        cpu_time=total("executorCpuTime") / 1e9 + total("executorDeserializeCpuTime") / 1e9,
        fetch_wait=total("shuffleFetchWaitTime") / 1e3,
        input_records=round(total("inputRecords") / passes),
        read_records=round(total("shuffleReadRecords") / passes),
        write_records=round(total("shuffleWriteRecords") / passes),
        attempt=int(newest.get("attemptId", 0)),
        failed=newest["status"] == "FAILED",
    )


def _task(document: dict[str, Any]) -> Task:
    metrics = document["taskMetrics"]
    shuffle = metrics.get("shuffleReadMetrics", {})
    millis = metrics["executorRunTime"] + metrics["executorDeserializeTime"]
    return Task(
        partition=int(document.get("partitionId", document["index"])),
        executor=str(document["executorId"]),
        busy=max(0, millis - shuffle.get("fetchWaitTime", 0)) / 1e3,
        records=metrics.get("inputMetrics", {}).get("recordsRead", 0)
        + shuffle.get("recordsRead", 0),
    )


def _executor(document: dict[str, Any]) -> Executor:
    removed = document.get("removeTime")
    return Executor(
        id=document["id"],
        host=document["hostPort"].rsplit(":", 1)[0],
        cores=int(document["totalCores"]) or 1,
        alive=bool(document["isActive"]),
        added=epoch(document["addTime"]),
        removed=epoch(removed) if removed else None,
        task_seconds=int(document["totalDuration"]) / 1e3,
        completed_tasks=int(document["completedTasks"]),
        active_tasks=int(document["activeTasks"]),
        failed_tasks=int(document.get("failedTasks", 0)),
    )


def epoch(text: str) -> float:
    """``2026-11-15T20:33:19.424GMT`` as seconds since the epoch."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC).timestamp()
