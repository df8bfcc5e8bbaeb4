"""Applications of any size, as the events that Spark's scheduler would have posted of them.

Spark's own listener turns them into a status store (``replay``), and Spark's own writer that into
documents: so a driver with a thousand executors needs neither executors nor tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BATCH_SECONDS = 10.0
STAGES = 2  # of a batch: one reads, one aggregates
BUSY = 0.4  # of the executors' time, so that the figures are believable
ROWS = 1_000  # that a task reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large an application is; ``tasks`` of each stage."""

    tasks: int
    executors: int
    queries: int

    @property
    def stages(self) -> int:
        """Stages of one round of batches, one batch of each query."""
        return self.queries * STAGES

    @property
    def task_millis(self) -> int:
        """Run time of a task with which the executors are not asked for more than they have."""
        work = BUSY * BATCH_SECONDS * self.executors
        return max(1, int(1e3 * work / (self.stages * self.tasks)))


def executor_events(shape: Shape, now: float) -> Iterator[str]:
    """The executors, all registered a minute ago."""
    for number in range(shape.executors):
        yield json.dumps(
            {
                "Event": "SparkListenerExecutorAdded",
                "Timestamp": int(1e3 * (now - 60.0)),
                "Executor ID": str(number),
                "Executor Info": {
                    "Host": f"worker-{number:04d}.example.org",
                    "Total Cores": 1,
                    "Log Urls": {
                        kind: f"http://worker-{number:04d}.example.org:8081/logPage/?appId="
                        f"app-20260101000000-0000&executorId={number}&logType={kind}"
                        for kind in ("stdout", "stderr")
                    },
                    "Attributes": {},
                    "Resources": {},
                    "Resource Profile Id": 0,
                },
            }
        )


def round_events(shape: Shape, runs: Sequence[str], number: int, now: float) -> Iterator[str]:
    """One batch of every query that has ended, and the next one in its first stage, half done.

    ``runs`` the run ids of the queries · ``number`` of the round, from 0.
    """
    began = now - BATCH_SECONDS
    for query, run in enumerate(runs):
        if number == 0:
            yield from _begun(shape, run, query, number, began)
        left = range(shape.tasks // 2, shape.tasks)
        first = first_stage(shape, number) + query * STAGES
        yield from _tasks(shape, first, left, began, reads=True)
        yield _completed(shape, first, began, now)
        for id in range(first + 1, first + STAGES):
            yield _submitted(shape, id, run, number, began)
            yield from _tasks(shape, id, range(shape.tasks), began, reads=False)
            yield _completed(shape, id, began, now)
        yield _job_ended(shape, query, number, now)
    for query, run in enumerate(runs):
        yield from _begun(shape, run, query, number + 1, now)


def _begun(shape: Shape, run: str, query: int, number: int, now: float) -> Iterator[str]:
    """A batch that begins: its job with all of its stages, and half of the first one's tasks."""
    first = first_stage(shape, number) + query * STAGES
    ids = list(range(first, first + STAGES))
    yield json.dumps(
        {
            "Event": "SparkListenerJobStart",
            "Job ID": number * shape.queries + query,
            "Submission Time": int(1e3 * now),
            "Stage Infos": [_info(shape, id) for id in ids],
            "Stage IDs": ids,
            "Properties": {"spark.job.description": description(run, number)},
        }
    )
    yield _submitted(shape, first, run, number, now)
    yield from _tasks(shape, first, range(shape.tasks // 2), now, reads=True)


def _job_ended(shape: Shape, query: int, number: int, now: float) -> str:
    return json.dumps(
        {
            "Event": "SparkListenerJobEnd",
            "Job ID": number * shape.queries + query,
            "Completion Time": int(1e3 * now),
            "Job Result": {"Result": "JobSucceeded"},
        }
    )


def first_stage(shape: Shape, number: int) -> int:
    """The id of the first stage of a round."""
    return number * shape.stages


def description(run: str, number: int) -> str:
    """What Spark calls the jobs of a round's batch; a real query has had batch 0 before."""
    return f"query-{run[:8]}\nid = {run}\nrunId = {run}\nbatch = {number + 1}"


def _info(
    shape: Shape, id: int, began: float | None = None, ended: float | None = None
) -> dict[str, Any]:
    times = {"Submission Time": began, "Completion Time": ended}
    return {
        "Stage ID": id,
        "Stage Attempt ID": 0,
        "Stage Name": "start at <unknown>:0",
        "Number of Tasks": shape.tasks,
        "RDD Info": [],
        "Parent IDs": [],
        "Details": "org.apache.spark.sql.streaming.DataStreamWriter.start\n" * 8,
        **{name: int(1e3 * at) for name, at in times.items() if at is not None},
        "Accumulables": [],
        "Resource Profile Id": 0,
        "Shuffle Push Enabled": False,
        "Shuffle Push Mergers Count": 0,
    }


def _submitted(shape: Shape, id: int, run: str, number: int, began: float) -> str:
    return json.dumps(
        {
            "Event": "SparkListenerStageSubmitted",
            "Stage Info": _info(shape, id, began),
            "Properties": {"spark.job.description": description(run, number)},
        }
    )


def _completed(shape: Shape, id: int, began: float, ended: float) -> str:
    info = _info(shape, id, began, ended)
    return json.dumps({"Event": "SparkListenerStageCompleted", "Stage Info": info})


def _tasks(
    shape: Shape, stage: int, indices: Sequence[int], began: float, *, reads: bool
) -> Iterator[str]:
    """Tasks that start and end."""
    millis = shape.task_millis
    metrics = json.dumps(_metrics(millis, reads))
    launch = int(1e3 * began)
    for index in indices:
        info = json.dumps(
            {
                "Task ID": stage * shape.tasks + index,
                "Index": index,
                "Attempt": 0,
                "Partition ID": index,
                "Launch Time": launch,
                "Executor ID": str(index % shape.executors),
                "Host": f"worker-{index % shape.executors:04d}.example.org",
                "Locality": "PROCESS_LOCAL",
                "Speculative": False,
                "Getting Result Time": 0,
                "Finish Time": launch + millis,
                "Failed": False,
                "Killed": False,
                "Accumulables": [],
            }
        )
        place = f'"Stage ID":{stage},"Stage Attempt ID":0'
        yield f'{{"Event":"SparkListenerTaskStart",{place},"Task Info":{info}}}'
        yield (
            f'{{"Event":"SparkListenerTaskEnd",{place},"Task Type":"ShuffleMapTask",'
            f'"Task End Reason":{{"Reason":"Success"}},"Task Info":{info},'
            f'"Task Executor Metrics":{{}},"Task Metrics":{metrics}}}'
        )


def _metrics(millis: int, reads: bool) -> dict[str, Any]:
    read = 0 if reads else ROWS
    return {
        "Executor Deserialize Time": 0,
        "Executor Deserialize CPU Time": 0,
        "Executor Run Time": millis,
        "Executor CPU Time": millis * 1_000_000,
        "Peak Execution Memory": 0,
        "Result Size": 4000,
        "JVM GC Time": 0,
        "Result Serialization Time": 0,
        "Memory Bytes Spilled": 0,
        "Disk Bytes Spilled": 0,
        "Shuffle Read Metrics": {
            "Remote Blocks Fetched": 1,
            "Local Blocks Fetched": 0,
            "Fetch Wait Time": 0,
            "Remote Bytes Read": 64 * read,
            "Remote Bytes Read To Disk": 0,
            "Local Bytes Read": 0,
            "Total Records Read": read,
        },
        "Shuffle Write Metrics": {
            "Shuffle Bytes Written": 64 * (ROWS - read),
            "Shuffle Write Time": 1000,
            "Shuffle Records Written": ROWS - read,
        },
        "Input Metrics": {"Bytes Read": 0, "Records Read": ROWS - read},
        "Output Metrics": {"Bytes Written": 0, "Records Written": 0},
        "Updated Blocks": [],
    }


class SyntheticApplication:
    """A status store of its own in a real driver's JVM, filled by Spark's own listener."""

    def __init__(self, context: Any, folder: Path) -> None:
        jvm, self._folder = context._jvm, folder
        self._jvm = jvm
        conf = jvm.org.apache.spark.SparkConf(False)
        conf.set("spark.ui.liveUpdate.period", "0")  # every event shows at once
        nothing = jvm.scala.Option.empty()
        kept = jvm.org.apache.spark.util.kvstore.InMemoryStore()
        self._kept = jvm.org.apache.spark.status.ElementTrackingStore(kept, conf)
        listener = jvm.org.apache.spark.status.AppStatusListener(
            self._kept, conf, True, nothing, nothing
        )
        self._bus = jvm.org.apache.spark.scheduler.ReplayListenerBus()
        self._bus.addListener(listener)
        self.store = jvm.org.apache.spark.status.AppStatusStore(self._kept, nothing, nothing)

    def replay(self, events: Iterator[str]) -> None:
        """Post events, through a file."""
        path = self._folder / "events"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{event}\n" for event in events)
        stream = self._jvm.java.io.FileInputStream(str(path))
        every = getattr(self._bus, "replay$default$4")()
        self._bus.replay(stream, "synthetic", False, every)
        stream.close()

    def close(self) -> None:
        """Let go of the store."""
        self._kept.close()
