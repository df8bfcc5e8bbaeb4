"""Documents of Spark's status as values; the status store and REST write the same ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from penstock.batches.values import Executor, Stage, Task
from penstock.core.errors import EngineError

MOST_CORES = 100_000  # of one executor, or driver


def stage_of(attempts: list[dict[str, Any]]) -> Stage:
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
    completed = sum(int(a.get("numCompleteTasks", 0)) for a in attempts)
    passes = max(1.0, completed / tasks) if tasks else 1.0

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
        completed=min(tasks, completed),
        active=int(newest.get("numActiveTasks", 0)),
        submitted=epoch(submitted) if (submitted := newest.get("submissionTime")) else None,
        ended=epoch(ended_at) if (ended_at := newest.get("completionTime")) else None,
    )


def task_of(document: dict[str, Any]) -> Task:
    """A task of a task list that has metrics."""
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


def executor_of(document: dict[str, Any]) -> Executor:
    """An executor, alive or gone."""
    removed = document.get("removeTime")
    return Executor(
        id=document["id"],
        host=document["hostPort"].rsplit(":", 1)[0],
        cores=_cores(document["totalCores"]) or 1,
        alive=bool(document["isActive"]),
        added=epoch(document["addTime"]),
        removed=epoch(removed) if removed else None,
        task_seconds=int(document["totalDuration"]) / 1e3,
        completed_tasks=int(document["completedTasks"]),
        active_tasks=int(document["activeTasks"]),
        failed_tasks=int(document.get("failedTasks", 0)),
        max_tasks=_cores(document.get("maxTasks", 0)) or None,
    )


def _cores(said: Any) -> int:
    cores = int(said)
    if not 0 <= cores <= MOST_CORES:
        raise EngineError(f"{cores} cores of one executor cannot be true, at most {MOST_CORES}")
    return cores


def epoch(text: str) -> float:
    """``2026-11-15T20:33:19.424GMT`` as seconds since the epoch."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC).timestamp()
