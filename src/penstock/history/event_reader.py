"""The events of Spark's log as a recording: one after the other, and little of each is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from penstock.batches.progress import batch_of
from penstock.batches.values import Batch, Executor, Task
from penstock.core.errors import InputError
from penstock.history import event_runs
from penstock.history.event_runs import Attempts, Run
from penstock.history.plausible import ODD, check_batch, check_figures
from penstock.history.profiling.experiment import Detail, detail_of
from penstock.history.recording import RecordedApplication, RecordedQuery

KIND = "event log"
KEPT_TASKS = 400  # batches of each query of which single tasks are kept
KEPT_BATCHES = 20_000  # of all queries that are kept with their stages
MOST_BATCHES = 1_000_000  # of all queries
LOCAL = "driver"  # the executor of an application on local[n]
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
_SETTINGS = (
    "spark.master", "spark.dynamicAllocation.enabled", "spark.sql.shuffle.partitions",
    "spark.task.cpus",
)  # fmt: skip
_WANTED = {
    b"SparkListenerTaskEnd",
    b"SparkListenerStageSubmitted",
    b"SparkListenerStageCompleted",
    b"SparkListenerExecutorAdded",
    b"SparkListenerExecutorRemoved",
    b"SparkListenerApplicationStart",
    b"SparkListenerApplicationEnd",
    b"SparkListenerEnvironmentUpdate",
    b"SparkListenerLogStart",
    f"{_STREAMING}ProgressEvent".encode(),
    f"{_STREAMING}IdleEvent".encode(),
}


class EventReader:
    """Takes one event after the other and keeps what a recording needs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._id = self._name = ""
        self._executors: dict[str, Executor] = {}
        self._stages: dict[int, Attempts] = {}
        self._open: dict[tuple[str, int], set[int]] = {}  # stages of a batch
        self._runs: dict[str, Run] = {}
        self._settings: dict[str, str] = {}
        self._torn: tuple[Path, int] | None = None
        self._count = self._kept = self._lacking = 0
        self._ended = False
        self._strangers: set[str] = set()

    def take(self, file: Path, line: int, text: bytes) -> None:
        """One line of a file."""
        if self._torn is not None:
            raise InputError(
                f"{self._torn[0]}, line {self._torn[1]}: is no event ({text[:40]!r} follows it); "
                "the log is damaged there. Cut it off before that line"
            )
        kind = text[10 : text.find(b'"', 10)] if text.startswith(b'{"Event":"') else b""
        if kind and kind not in _WANTED and text.endswith(b"\n"):
            return
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            self._torn = (file, line)  # fine at the end of the log, and only there
            return
        if not (isinstance(event, dict) and isinstance(event.get("Event"), str)):
            raise InputError(
                f"{file}, line {line}: {text[:60]!r} is no event of Spark; give an event log"
            )
        try:
            self._event(event)
        except InputError as error:
            raise InputError(f"{file}, line {line}: {error}") from None
        except ODD as error:
            raise InputError(
                f"{file}, line {line}: {event['Event'][:80]} is not as Spark writes it "
                f"({str(repr(error))[:80]}); remove the line, or write the log again"
            ) from None

    def _event(self, event: dict[str, Any]) -> None:
        kind = event["Event"]
        if kind == "SparkListenerTaskEnd":
            self._task_ended(event)
        elif kind == "SparkListenerStageSubmitted":
            self._submitted(event)
        elif kind == "SparkListenerStageCompleted":
            self._completed(event["Stage Info"])
        elif kind == "SparkListenerExecutorAdded":
            self._added(event)
        elif kind == "SparkListenerExecutorRemoved":
            self._removed(event)
        elif kind == "SparkListenerApplicationStart":
            self._started(event)
        elif kind == "SparkListenerApplicationEnd":
            self._ended = True
        elif kind == "SparkListenerEnvironmentUpdate":
            known = dict(event.get("Spark Properties") or {})
            self._settings |= {name: str(known[name]) for name in _SETTINGS if name in known}
        elif kind == "SparkListenerLogStart":
            self._settings["spark.version"] = str(event.get("Spark Version", ""))
        elif kind == f"{_STREAMING}ProgressEvent":
            self._progress(event["progress"])
        elif kind == f"{_STREAMING}IdleEvent":
            self._idle(str(event["runId"]), str(event["timestamp"]))

    def _started(self, event: dict[str, Any]) -> None:
        id = str(event.get("App ID", ""))
        if self._id and id != self._id:
            raise InputError(
                f"the log holds two applications, {self._id} and {id}; give each log by itself"
            )
        self._id, self._name = id, str(event.get("App Name", ""))

    def _added(self, event: dict[str, Any]) -> None:
        id, about = str(event["Executor ID"]), event["Executor Info"]
        cpus = max(1, int(self._settings.get("spark.task.cpus", 1)))
        cores = max(1, int(about["Total Cores"]))
        check_figures({"Total Cores": cores, "Timestamp": int(event["Timestamp"])})
        self._executors[id] = Executor(
            id=id,
            host=str(about["Host"]),
            cores=cores,
            alive=True,
            added=int(event["Timestamp"]) / 1e3,
            removed=None,
            task_seconds=0.0,
            completed_tasks=0,
            active_tasks=0,
            max_tasks=max(1, cores // cpus) if cpus > 1 else None,
        )

        for run in self._runs.values():
            run.executor_came()

    def _removed(self, event: dict[str, Any]) -> None:
        known = self._executors.get(str(event["Executor ID"]))
        if known is not None and known.removed is None:
            gone = int(event["Timestamp"]) / 1e3
            self._executors[known.id] = replace(known, alive=False, removed=gone)

    def _submitted(self, event: dict[str, Any]) -> None:
        about = event["Stage Info"]
        stage = self._stages.setdefault(int(about["Stage ID"]), Attempts())
        stage.tasks = max(stage.tasks, int(about["Number of Tasks"]))
        stage.attempt = max(stage.attempt, int(about["Stage Attempt ID"]))
        stage.failed = False
        text = (event.get("Properties") or {}).get("spark.job.description", "")
        words = dict(part.split(" = ", 1) for part in text.split("\n") if " = " in part)
        if "runId" in words and words.get("batch", "").isdigit():
            stage.run_id, stage.batch = words["runId"], int(words["batch"])
            self._open.setdefault((stage.run_id, stage.batch), set()).add(int(about["Stage ID"]))

    def _completed(self, about: dict[str, Any]) -> None:
        stage = self._stages.get(int(about["Stage ID"]))
        if stage is None or int(about["Stage Attempt ID"]) < stage.attempt:
            return
        if stage.batch is None:  # of no streaming query
            del self._stages[int(about["Stage ID"])]
            return
        stage.failed = "Failure Reason" in about
        stage.done = True
        stage.submitted = _seconds(about.get("Submission Time"))
        stage.ended = _seconds(about.get("Completion Time"))

    def _task_ended(self, event: dict[str, Any]) -> None:
        stage = self._stages.get(int(event["Stage ID"]))
        metrics = event.get("Task Metrics")
        if stage is None or not metrics:
            return
        about = event["Task Info"]
        busy = int(metrics["Executor Run Time"]) + int(metrics["Executor Deserialize Time"])
        shuffle = metrics.get("Shuffle Read Metrics", {})
        wait = int(shuffle.get("Fetch Wait Time", 0))
        executor = str(about["Executor ID"])
        if executor not in self._executors:
            self._strangers.add(executor)
        stage.run_time += busy
        stage.fetch_wait += wait
        stage.cpu_time += int(metrics.get("Executor CPU Time", 0))
        stage.cpu_time += int(metrics.get("Executor Deserialize CPU Time", 0))
        if event["Task End Reason"]["Reason"] != "Success":
            return
        read = int(metrics.get("Input Metrics", {}).get("Records Read", 0))
        fetched = int(shuffle.get("Total Records Read", 0))
        check_figures({"time of a task": busy, "wait of a task": wait, "records": read + fetched})
        stage.completed += 1
        stage.input_records += read
        stage.read_records += fetched
        written = metrics.get("Shuffle Write Metrics", {})
        stage.write_records += int(written.get("Shuffle Records Written", 0))
        run = self._runs.get(stage.run_id or "")
        if stage.batch is not None and (run is None or run.keeps_tasks(stage.batch)):
            known = self._executors.get(executor)
            stage.single.append(
                Task(
                    partition=int(about.get("Partition ID", about["Index"])),
                    executor=known.id if known is not None else executor,
                    busy=max(0, busy - wait) / 1e3,
                    records=read + fetched,
                )
            )

    def _progress(self, document: Any) -> None:
        if isinstance(document, str):  # as Spark before 4 writes it
            document = json.loads(document)
        batch = batch_of(document)
        check_batch(batch)
        run = self._runs.setdefault(batch.run_id, Run())
        run.name = batch.query
        ran = self._ran(batch)
        if batch.phases and "addBatch" not in batch.phases and not batch.rows:
            self._rest(run, batch.start)  # so says Spark before 3.5 that there is nothing to do
            return
        if run.last is not None and batch.id <= run.last.id:
            run.again += 1
            return
        self._count += 1
        if self._count > MOST_BATCHES:
            raise InputError(
                f"the log has more than {MOST_BATCHES:,} batches; give a part of it (roll logs "
                "over: spark.eventLog.rolling.enabled)"
            )
        if run.last is not None:
            run.back = max(run.back, run.last.start - batch.start)
        run.last = batch
        run.plannings.add(batch)
        if run.keeps(batch.id):
            self._keep(run, batch, detail_of(document), ran)

    def _ran(self, batch: Batch) -> dict[int, Attempts]:
        """Its stages, which are over; none where ends of tasks are missing."""
        mine = {
            id: found
            for id in sorted(self._open.pop((batch.run_id, batch.id), ()))
            if (found := self._stages.pop(id, None)) is not None
        }
        if any(s.completed < s.tasks and not s.failed for s in mine.values()):
            self._lacking += 1
            return {}
        return mine

    def _keep(self, run: Run, batch: Batch, detail: Detail, ran: dict[int, Attempts]) -> None:
        run.batches.append(batch)
        run.details[batch.id] = detail
        run.stages[batch.id] = [s.stage(id) for id, s in ran.items()]
        self._kept += 1
        if run.keeps_tasks(batch.id):
            run.tasks[batch.id] = {id: s.single for id, s in ran.items()}
            if len(run.tasks) > KEPT_TASKS + len(
                run.fresh
            ) or run.single > event_runs.MOST_TASKS // len(self._runs):
                run.thin_tasks()
        if self._kept > KEPT_BATCHES:
            max(self._runs.values(), key=lambda r: len(r.batches)).thin()
            self._kept = sum(len(r.batches) for r in self._runs.values())

    def _idle(self, run_id: str, timestamp: str) -> None:
        if run := self._runs.get(run_id):
            self._rest(run, datetime.fromisoformat(timestamp).timestamp())

    def _rest(self, run: Run, moment: float) -> None:
        """A moment at which a query had nothing to do."""
        if run.last is None:
            return
        idle = run.last.idle_at(moment)
        run.plannings.add(idle)
        if run.keeps(idle.id):
            run.batches.append(idle)
            self._kept += 1

    def done(self) -> RecordedApplication:
        """All that was read."""
        runs = {id: run for id, run in self._runs.items() if run.last is not None}
        if not self._id and not runs:
            raise InputError(
                f"{self._path}: tells of no application; the log must be whole from its beginning"
            )
        if not runs:
            raise InputError(
                f"{self._path}: {self._name or self._id} has no finished micro-batch; was it a "
                "streaming query, and had it run for long enough?"
            )
        executors = tuple(self._executors.values())
        if [e.id for e in executors] == [LOCAL]:
            executors = _each_core(executors[0])
        return RecordedApplication(
            source=str(self._path),
            id=self._id,
            name=self._name,
            executors=executors,
            queries=tuple(
                RecordedQuery(
                    name=run.name,
                    run_id=id,
                    batches=tuple(sorted(run.batches, key=lambda b: b.start)),
                    stages=run.stages,
                    tasks={id: tasks for some in run.tasks.values() for id, tasks in some.items()},
                    details=run.details,
                    plannings=run.plannings,
                )
                for id, run in runs.items()
            ),
            remarks=tuple(self._remarks(runs)),
            kind=KIND,
            settings=self._settings,
        )

    def _remarks(self, runs: dict[str, Run]) -> list[str]:
        remarks = []
        if self._torn is not None:
            remarks.append(
                f"{self._torn[0]}, line {self._torn[1]}: half a line at the end was left out"
            )
        elif not self._ended:
            remarks.append("the log ends before the application did: it still runs, or was cut off")
        if not self._id:
            remarks.append("the log does not begin with the application's start")
        if self._lacking:
            remarks.append(
                f"{self._lacking:,} batches lack ends of tasks (Spark dropped events, or they are "
                "out of order): they say nothing of costs"
            )
        if self._strangers:
            names = ", ".join(sorted(self._strangers)[:5])
            remarks.append(
                f"{len(self._strangers)} executors ({names}) worked whose coming is not told: the "
                "number of executors may be too low"
            )
        for id, run in runs.items():
            if run.again:
                remarks.append(
                    f"{run.name}: {run.again:,} batches of run {id[:8]} are there twice or out of "
                    "order; the first of each counts"
                )
            if run.back > 1.0:
                remarks.append(
                    f"{run.name}: the clock goes back by up to {run.back:,.0f} s between two "
                    "batches; the demand around that moment is not to be trusted"
                )
            if run.every > 1:
                remarks.append(
                    f"{run.name}: of {run.plannings.count:,} batches one in {run.every} is kept "
                    "with its stages; all count for the demand"
                )
        if any(id == LOCAL for id in self._executors) and len(self._executors) == 1:
            remarks.append("on local[n] each core counts as an executor of one core")
        return remarks


def _each_core(driver: Executor) -> tuple[Executor, ...]:
    """The cores of an application on ``local[n]``, each as an executor."""
    return tuple(
        replace(driver, id=str(number), cores=1, max_tasks=None)
        for number in range(driver.tasks_at_once)
    )


def _seconds(millis: Any) -> float | None:
    return None if millis is None else int(millis) / 1e3
