"""How fast event logs are read, and in how much memory: ``python -m benchmarks.event_log``.

A synthetic log of the given size is written into a temporary folder, with the lines that Spark 4
writes: mostly ends of tasks with their accumulables. A child process reads it, so that the peak of
its memory is that of reading alone. ``--gb 5`` is what the budget is for; 1 GB tells the same.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from penstock.report.table import Table

SPEED, MEMORY = 30.0, 500.0  # MB/s at least, and MB at most
TASKS = 100  # of each of two stages
EXECUTORS = 8
START = 1_800_000_000_000
RUN = "9f6f2b52-0000-0000-0000-000000000000"
STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
METRICS = (
    "internal.metrics.executorDeserializeTime",
    "internal.metrics.executorDeserializeCpuTime",
    "internal.metrics.executorRunTime",
    "internal.metrics.executorCpuTime",
    "internal.metrics.resultSize",
    "internal.metrics.jvmGCTime",
    "internal.metrics.peakExecutionMemory",
    "internal.metrics.shuffle.read.remoteBlocksFetched",
    "internal.metrics.shuffle.read.localBlocksFetched",
    "internal.metrics.shuffle.read.recordsRead",
    "internal.metrics.shuffle.write.bytesWritten",
    "number of output rows",
    "time in aggregation build",
    "shuffle records written",
)


def main() -> int:
    """Write a log, read it in a child process, print what it took; 1 if a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=1.0, help="size of the log")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read is not None:
        print(json.dumps(read(given.read)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "app-1"
        size = write(path, given.gb * 1e9)
        child = subprocess.run(
            [sys.executable, "-m", "benchmarks.event_log", "--read", str(path)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    found = json.loads(child.stdout)
    speed, memory = size / 1e6 / found["seconds"], found["mb"]
    Console().print(
        Table(
            title=f"reading an event log of {size / 1e9:.2f} GB, {found['batches']:,} batches",
            header=("figure", "measured", "budget"),
            rows=(
                ("MB/s", f"{speed:.0f}", f"≥ {SPEED:.0f}"),
                ("peak memory, MB", f"{memory:.0f}", f"≤ {MEMORY:.0f}"),
            ),
        )
    )
    return 0 if speed >= SPEED and memory <= MEMORY else 1


def read(path: Path) -> dict[str, float]:
    """Read a log: seconds, the most memory that this process ever had, and its batches."""
    from penstock.history.event_log import read_event_log

    begin = time.perf_counter()
    found = read_event_log(path)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6  # it counts KiB
    (query,) = found.queries
    assert query.plannings is not None
    return {"seconds": seconds, "mb": peak, "batches": query.plannings.count}


def write(path: Path, size: float) -> int:
    """A log of at least so many bytes; the same lines for the same size."""
    written = 0
    with path.open("wb") as file:
        for event in _events():
            line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
            file.write(line)
            written += len(line)
            if written >= size and event["Event"].endswith("ProgressEvent"):
                return written
    raise AssertionError("events do not end")


def _events() -> Iterator[dict[str, Any]]:
    yield {"Event": "SparkListenerApplicationStart", "App Name": "words", "App ID": "app-1"}
    for n in range(EXECUTORS):
        info = {"Host": "h", "Total Cores": 4}
        yield {"Event": "SparkListenerExecutorAdded", "Timestamp": START,
               "Executor ID": str(n), "Executor Info": info}  # fmt: skip
    batch = 0
    while True:
        yield from _batch(batch)
        batch += 1


def _batch(batch: int) -> Iterator[dict[str, Any]]:
    rows = 10_000 + 997 * (batch % 13)
    words = {"spark.job.description": f"words\nid = x\nrunId = {RUN}\nbatch = {batch}"}
    begin = START + 2000 * batch
    for place in range(2):
        stage = 2 * batch + place
        about = {"Stage ID": stage, "Stage Attempt ID": 0, "Number of Tasks": TASKS}
        yield {"Event": "SparkListenerStageSubmitted", "Stage Info": about, "Properties": words}
        for index in range(TASKS):
            yield {"Event": "SparkListenerTaskStart", "Stage ID": stage, "Task Info": {}}
            yield _task_end(stage, index, place, rows // TASKS, begin)
        times = {"Submission Time": begin + 100, "Completion Time": begin + 900}
        yield {"Event": "SparkListenerStageCompleted", "Stage Info": about | times}
    yield {"Event": f"{STREAMING}ProgressEvent", "progress": _progress(batch, rows, begin)}


def _task_end(stage: int, index: int, place: int, rows: int, begin: int) -> dict[str, Any]:
    task = stage * TASKS + index
    millis = 20 + (task * 7919) % 17
    sums = [
        {"ID": 40 * stage + n, "Name": name, "Update": str(millis + n), "Value": str(task + n),
         "Internal": name.startswith("internal"), "Count Failed Values": True}
        for n, name in enumerate(METRICS)
    ]  # fmt: skip
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Stage Attempt ID": 0,
        "Task Type": "ShuffleMapTask" if place == 0 else "ResultTask",
        "Task End Reason": {"Reason": "Success"},
        "Task Info": {
            "Task ID": task, "Index": index, "Attempt": 0, "Partition ID": index,
            "Launch Time": begin, "Executor ID": str(index % EXECUTORS), "Host": "h",
            "Locality": "PROCESS_LOCAL", "Speculative": False, "Getting Result Time": 0,
            "Finish Time": begin + millis, "Failed": False, "Killed": False,
            "Accumulables": sums,
        },
        "Task Executor Metrics": dict.fromkeys(
            ("JVMHeapMemory", "JVMOffHeapMemory", "OnHeapExecutionMemory", "OffHeapStorageMemory",
             "DirectPoolMemory", "MappedPoolMemory", "ProcessTreeJVMVMemory", "MinorGCCount",
             "MinorGCTime", "MajorGCCount", "MajorGCTime", "TotalGCTime"), 0),
        "Task Metrics": {
            "Executor Deserialize Time": 3, "Executor Deserialize CPU Time": 2_500_000,
            "Executor Run Time": millis, "Executor CPU Time": 900_000 * millis,
            "Peak Execution Memory": 0, "Result Size": 2000, "JVM GC Time": 0,
            "Result Serialization Time": 0, "Memory Bytes Spilled": 0, "Disk Bytes Spilled": 0,
            "Shuffle Read Metrics": {
                "Remote Blocks Fetched": 0, "Local Blocks Fetched": place, "Fetch Wait Time": 0,
                "Remote Bytes Read": 0, "Remote Bytes Read To Disk": 0, "Local Bytes Read": 99,
                "Total Records Read": 50 * place, "Remote Requests Duration": 0,
                "Push Based Shuffle": {
                    "Corrupt Merged Block Chunks": 0, "Merged Fetch Fallback Count": 0,
                    "Merged Remote Blocks Fetched": 0, "Merged Local Blocks Fetched": 0,
                },
            },
            "Shuffle Write Metrics": {
                "Shuffle Bytes Written": 999, "Shuffle Write Time": 12345,
                "Shuffle Records Written": 50 * (1 - place),
            },
            "Input Metrics": {"Bytes Read": 0, "Records Read": rows * (1 - place)},
            "Output Metrics": {"Bytes Written": 0, "Records Written": 0},
            "Updated Blocks": [],
        },
    }  # fmt: skip


def _progress(batch: int, rows: int, begin: int) -> dict[str, Any]:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(begin / 1e3))
    return {
        "id": "x", "runId": RUN, "name": "words", "batchId": batch,
        "timestamp": f"{moment}.{begin % 1000:03}Z", "batchDuration": 1000,
        "durationMs": {"addBatch": 800, "commitOffsets": 20, "walCommit": 30},
        "sources": [{
            "description": "KafkaV2[Subscribe[words]]", "numInputRows": rows,
            "endOffset": {"words": {"0": rows * batch}},
            "latestOffset": {"words": {"0": rows * batch + 5}},
        }],
        "stateOperators": [],
        "sink": {"description": "sink", "numOutputRows": -1},
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
