"""Spark's event log: what an application did, told by its driver, one event per line.

A log is a file, plain or compressed by zstd, or a folder of such files where it is rolled over. It
is read once from its beginning to its end; what is kept is small: sums over the tasks of a stage,
and single tasks of some hundred batches.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from penstock.batches.progress import batch_of
from penstock.batches.values import Batch, Executor, Stage, Task
from penstock.core.errors import InputError, MissingError
from penstock.history.profiling.experiment import Detail, detail_of
from penstock.history.recording import RecordedApplication, RecordedQuery

KEPT_TASKS = 400  # batches of each query of which single tasks are kept
MOST_BATCHES = 1_000_000  # of all queries
LONGEST_LINE = 1 << 26  # bytes
PACKED = (".zstd", ".zst")
OTHER_CODECS = (".lz4", ".lzf", ".snappy")
ZSTD = b"\x28\xb5\x2f\xfd"
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
_ROLLED = re.compile(r"events_(\d+)_")
_WANTED = {
    b"SparkListenerTaskEnd",
    b"SparkListenerStageSubmitted",
    b"SparkListenerStageCompleted",
    b"SparkListenerExecutorAdded",
    b"SparkListenerExecutorRemoved",
    b"SparkListenerApplicationStart",
    f"{_STREAMING}ProgressEvent".encode(),
    f"{_STREAMING}IdleEvent".encode(),
}

Progress = Callable[[int, int], None]  # bytes read, and of all


def is_event_log(path: Path) -> bool:
    """Whether a path looks like a log of Spark's: by its folder, or its first line."""
    if path.is_dir():
        return bool(_rolled(path))
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return False
    return head.startswith(b'{"Event":"') or (head[:4] == ZSTD and path.suffix in PACKED)


def read_event_log(
    path: Path, *, progress: Progress = lambda done, total: None
) -> RecordedApplication:
    """Read a log, also one that is still written; a torn last line is left out, and told."""
    if not path.exists():
        raise InputError(f"{path}: cannot be read (there is no such file or folder)")
    files = _rolled(path) if path.is_dir() else [path]
    if not files:
        raise InputError(
            f"{path}: no event log is in this folder; give a file, or a folder with "
            "events_1_… in it"
        )
    reader = _Reader(path)
    total = sum(file.stat().st_size for file in files)
    before = 0
    for file in files:
        for line, text, at in _lines(file):
            reader.take(file, line, text)
            if line % 1000 == 0:
                progress(before + at, total)
        before += file.stat().st_size
        progress(before, total)
    return reader.done()


def _rolled(folder: Path) -> list[Path]:
    """The files of a log that was rolled over, in their order."""
    found = [(m, p) for p in folder.iterdir() if (m := _ROLLED.match(p.name)) and p.is_file()]
    return [path for _, path in sorted(found, key=lambda pair: int(pair[0][1]))]


def _lines(path: Path) -> Iterator[tuple[int, bytes, int]]:
    """Line numbers, lines, and how far the file has been read."""
    if path.suffix in OTHER_CODECS:
        raise InputError(
            f"{path}: is compressed by {path.suffix[1:]}, which cannot be read here; write logs "
            "with spark.eventLog.compression.codec=zstd, or without compression"
        )
    try:
        with ExitStack() as stack:
            raw = stack.enter_context(path.open("rb"))
            packed = raw.read(4) == ZSTD
            raw.seek(0)
            source: BinaryIO = _unpacked(raw, path) if packed else raw
            number = 0
            while text := source.readline(LONGEST_LINE + 1):
                number += 1
                if len(text) > LONGEST_LINE:
                    raise InputError(
                        f"{path}, line {number}: is longer than {LONGEST_LINE >> 20} MiB; this is "
                        "no event log"
                    )
                yield number, text, raw.tell()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _unpacked(raw: BinaryIO, path: Path) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        raise MissingError(
            f"{path} is compressed by zstd: pip install 'penstock[sim]' (or zstandard)"
        ) from None
    stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
        raw, read_across_frames=True
    )
    return io.BufferedReader(_Readable(stream, zstandard.ZstdError), 1 << 20)


class _Readable(io.RawIOBase):
    """A stream that ends where its source was cut off: a log that is still written."""

    def __init__(self, stream: Any, error: type[Exception]) -> None:
        self._stream, self._error = stream, error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except self._error:
            return 0
        buffer[: len(data)] = data
        return len(data)


@dataclass(slots=True)
class _Attempts:
    """A stage with its attempts so far, summed over its tasks."""

    run_id: str | None = None
    batch: int | None = None
    tasks: int = 0
    attempt: int = 0
    failed: bool = False
    done: bool = False
    completed: int = 0
    run_time: int = 0
    cpu_time: int = 0
    fetch_wait: int = 0
    input_records: int = 0
    read_records: int = 0
    write_records: int = 0
    submitted: float | None = None
    ended: float | None = None
    single: list[Task] = field(default_factory=list)

    def stage(self, id: int) -> Stage:
        """As Spark's status tells of it."""
        passes = max(1.0, self.completed / self.tasks) if self.tasks else 1.0
        return Stage(
            id=id,
            run_id=self.run_id,
            batch=self.batch,
            done=True,
            tasks=self.tasks,
            run_time=self.run_time / 1e3,
            cpu_time=self.cpu_time / 1e9,
            fetch_wait=self.fetch_wait / 1e3,
            input_records=round(self.input_records / passes),
            read_records=round(self.read_records / passes),
            write_records=round(self.write_records / passes),
            attempt=self.attempt,
            failed=self.failed,
            completed=min(self.tasks, self.completed),
            submitted=self.submitted,
            ended=self.ended,
        )


class _Reader:
    """Takes one event after the other and keeps what a recording needs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._id = self._name = ""
        self._executors: dict[str, Executor] = {}
        self._stages: dict[int, _Attempts] = {}
        self._batches: dict[str, list[Batch]] = {}
        self._details: dict[str, dict[int, Detail]] = {}
        self._by_batch: dict[str, dict[int, list[Stage]]] = {}
        self._tasks: dict[str, dict[int, dict[int, list[Task]]]] = {}
        self._every: dict[str, int] = {}
        self._torn: tuple[Path, int] | None = None
        self._count = 0

    def take(self, file: Path, line: int, text: bytes) -> None:
        """One line of a file."""
        if self._torn is not None and self._torn[0] == file:
            raise InputError(
                f"{file}, line {self._torn[1]}: is no event ({text[:40]!r} follows it); the log is "
                "damaged there. Cut it off before that line"
            )
        kind = text[10 : text.find(b'"', 10)] if text.startswith(b'{"Event":"') else b""
        if kind and kind not in _WANTED and text.endswith(b"\n"):
            return
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            self._torn = (file, line)  # fine at the end of a file, and only there
            return
        if not (isinstance(event, dict) and isinstance(event.get("Event"), str)):
            raise InputError(
                f"{file}, line {line}: {text[:60]!r} is no event of Spark; give an event log"
            )
        try:
            self._event(event)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{file}, line {line}: {event['Event']} is not as Spark writes it ({error!r})"
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
        elif kind == f"{_STREAMING}ProgressEvent":
            self._progress(event["progress"])
        elif kind == f"{_STREAMING}IdleEvent":
            self._idle(str(event["runId"]), str(event["timestamp"]))

    def _started(self, event: dict[str, Any]) -> None:
        id = str(event.get("App ID", ""))
        if self._id and id != self._id:
            raise InputError(
                f"{self._path}: holds two applications, {self._id} and {id}; give each log by "
                "itself"
            )
        self._id, self._name = id, str(event.get("App Name", ""))

    def _added(self, event: dict[str, Any]) -> None:
        id, about = str(event["Executor ID"]), event["Executor Info"]
        self._executors[id] = Executor(
            id=id,
            host=str(about["Host"]),
            cores=max(1, int(about["Total Cores"])),
            alive=True,
            added=int(event["Timestamp"]) / 1e3,
            removed=None,
            task_seconds=0.0,
            completed_tasks=0,
            active_tasks=0,
        )

    def _removed(self, event: dict[str, Any]) -> None:
        known = self._executors.get(str(event["Executor ID"]))
        if known is not None and known.removed is None:
            gone = int(event["Timestamp"]) / 1e3
            self._executors[known.id] = replace(known, alive=False, removed=gone)

    def _submitted(self, event: dict[str, Any]) -> None:
        about = event["Stage Info"]
        stage = self._stages.setdefault(int(about["Stage ID"]), _Attempts())
        stage.tasks = max(stage.tasks, int(about["Number of Tasks"]))
        stage.attempt = max(stage.attempt, int(about["Stage Attempt ID"]))
        stage.failed = False
        text = (event.get("Properties") or {}).get("spark.job.description", "")
        words = dict(part.split(" = ", 1) for part in text.split("\n") if " = " in part)
        if "runId" in words and words.get("batch", "").isdigit():
            stage.run_id, stage.batch = words["runId"], int(words["batch"])

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
        stage.run_time += busy
        stage.fetch_wait += wait
        stage.cpu_time += int(metrics.get("Executor CPU Time", 0))
        stage.cpu_time += int(metrics.get("Executor Deserialize CPU Time", 0))
        if event["Task End Reason"]["Reason"] != "Success":
            return
        read = int(metrics.get("Input Metrics", {}).get("Records Read", 0))
        fetched = int(shuffle.get("Total Records Read", 0))
        stage.completed += 1
        stage.input_records += read
        stage.read_records += fetched
        written = metrics.get("Shuffle Write Metrics", {})
        stage.write_records += int(written.get("Shuffle Records Written", 0))
        if stage.batch is not None and self._keeps(stage.run_id, stage.batch):
            stage.single.append(
                Task(
                    partition=int(about.get("Partition ID", about["Index"])),
                    executor=str(about["Executor ID"]),
                    busy=max(0, busy - wait) / 1e3,
                    records=read + fetched,
                )
            )

    def _keeps(self, run_id: str | None, batch: int) -> bool:
        return batch % self._every.get(run_id or "", 1) == 0

    def _progress(self, document: Any) -> None:
        if isinstance(document, str):  # as Spark before 4 writes it
            document = json.loads(document)
        batch = batch_of(document)
        run = batch.run_id
        self._count += 1
        if self._count > MOST_BATCHES:
            raise InputError(
                f"{self._path}: has more than {MOST_BATCHES:,} batches; give a part of the log"
            )
        self._batches.setdefault(run, []).append(batch)
        self._details.setdefault(run, {})[batch.id] = detail_of(document)
        mine = {id: s for id, s in self._stages.items() if s.run_id == run and s.batch == batch.id}
        for id in mine:
            del self._stages[id]
        ran = [s.stage(id) for id, s in sorted(mine.items())]
        self._by_batch.setdefault(run, {})[batch.id] = ran
        if self._keeps(run, batch.id):
            kept = self._tasks.setdefault(run, {})
            kept[batch.id] = {id: s.single for id, s in mine.items()}
            if len(kept) > KEPT_TASKS:
                every = self._every[run] = 2 * self._every.get(run, 1)
                self._tasks[run] = {id: t for id, t in kept.items() if id % every == 0}

    def _idle(self, run_id: str, timestamp: str) -> None:
        if batches := self._batches.get(run_id):
            batches.append(batches[-1].idle_at(datetime.fromisoformat(timestamp).timestamp()))

    def done(self) -> RecordedApplication:
        """All that was read."""
        if not self._id and not self._batches:
            raise InputError(
                f"{self._path}: tells of no application; the log must be whole from its beginning"
            )
        if not self._batches:
            raise InputError(
                f"{self._path}: {self._name or self._id} has no finished micro-batch; was it a "
                "streaming query, and had it run for long enough?"
            )
        remarks = []
        if self._torn is not None:
            remarks.append(
                f"{self._torn[0]}, line {self._torn[1]}: half a line at the end was left out"
            )
        return RecordedApplication(
            source=str(self._path),
            id=self._id,
            name=self._name,
            executors=tuple(self._executors.values()),
            queries=tuple(
                RecordedQuery(
                    name=batches[-1].query,
                    run_id=run,
                    batches=tuple(sorted(batches, key=lambda b: b.start)),
                    stages=self._by_batch[run],
                    tasks={
                        id: tasks
                        for some in self._tasks.get(run, {}).values()
                        for id, tasks in some.items()
                    },
                    details=self._details[run],
                )
                for run, batches in self._batches.items()
            ),
            remarks=tuple(remarks),
        )


def _seconds(millis: Any) -> float | None:
    return None if millis is None else int(millis) / 1e3
