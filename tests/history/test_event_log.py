"""Spark's event logs: what an application did, from files as Spark writes them, and from others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from penstock.core.errors import InputError, MissingError
from penstock.history import event_log, event_reader
from penstock.history.event_log import is_event_log, read_event_log

STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
RUN = "9f6f2b52-0000-0000-0000-000000000000"
START = 1_800_000_000.0


def started(id: str = "app-1") -> dict[str, Any]:
    return {"Event": "SparkListenerApplicationStart", "App Name": "words", "App ID": id}


def added(id: str, at: float, cores: int = 2) -> dict[str, Any]:
    info = {"Host": "h", "Total Cores": cores}
    return {"Event": "SparkListenerExecutorAdded", "Timestamp": int(1e3 * (START + at)),
            "Executor ID": id, "Executor Info": info}  # fmt: skip


def removed(id: str, at: float) -> dict[str, Any]:
    return {"Event": "SparkListenerExecutorRemoved", "Timestamp": int(1e3 * (START + at)),
            "Executor ID": id}  # fmt: skip


def submitted(id: int, batch: int | None, tasks: int, attempt: int = 0) -> dict[str, Any]:
    words = "" if batch is None else f"words\nid = x\nrunId = {RUN}\nbatch = {batch}"
    info = {"Stage ID": id, "Stage Attempt ID": attempt, "Number of Tasks": tasks}
    return {"Event": "SparkListenerStageSubmitted", "Stage Info": info,
            "Properties": {"spark.job.description": words}}  # fmt: skip


def task(stage: int, index: int, *, millis: int = 100, read: int = 0, fetched: int = 0,
         written: int = 0, reason: str = "Success") -> dict[str, Any]:  # fmt: skip
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task End Reason": {"Reason": reason},
        "Task Info": {"Index": index, "Executor ID": "0"},
        "Task Metrics": {
            "Executor Run Time": millis,
            "Executor Deserialize Time": 10,
            "Executor CPU Time": 50_000_000,
            "Executor Deserialize CPU Time": 5_000_000,
            "Input Metrics": {"Records Read": read},
            "Shuffle Read Metrics": {"Total Records Read": fetched, "Fetch Wait Time": 4},
            "Shuffle Write Metrics": {"Shuffle Records Written": written},
        },
    }


def completed(id: int, at: float, *, attempt: int = 0, why: str | None = None) -> dict[str, Any]:
    info: dict[str, Any] = {"Stage ID": id, "Stage Attempt ID": attempt}
    info |= {"Submission Time": int(1e3 * (START + at)), "Completion Time": int(1e3 * START)}
    info |= {"Failure Reason": why} if why else {}
    return {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def progress(batch: int, rows: int, *, as_text: bool = False) -> dict[str, Any]:
    document = {
        "runId": RUN,
        "name": "words",
        "batchId": batch,
        "timestamp": f"2027-01-15T08:{batch // 60:02}:{batch % 60:02}.000Z",
        "batchDuration": 800,
        "durationMs": {"addBatch": 700, "commitOffsets": 20},
        "sources": [{"description": "s", "numInputRows": rows}],
        "stateOperators": [],
        "sink": {"description": "sink", "numOutputRows": 3},
    }
    return {"Event": f"{STREAMING}ProgressEvent",
            "progress": json.dumps(document) if as_text else document}  # fmt: skip


def batch(number: int, rows: int = 100) -> list[dict[str, Any]]:
    """A batch of two stages: two tasks read, three count."""
    read, count = 10 * number, 10 * number + 1
    return [
        submitted(read, number, 2),
        *(task(read, i, read=rows // 2, written=6) for i in range(2)),
        completed(read, 0.0),
        submitted(count, number, 3),
        *(task(count, i, fetched=4) for i in range(3)),
        completed(count, 0.5),
        progress(number, rows),
    ]


def whole(batches: int = 3) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [started(), added("0", 0.0), added("1", 5.0)]
    for number in range(batches):
        events += batch(number, 100 * (number + 1))
    return [*events, removed("1", 9.0), {"Event": "SparkListenerApplicationEnd"}]


def text(events: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(e, separators=(",", ":")) + "\n" for e in events)


def write(path: Path, events: Iterable[dict[str, Any]]) -> Path:
    path.write_text(text(events))
    return path


def test_what_a_log_tells(tmp_path: Path) -> None:
    path = write(tmp_path / "app-1", whole())
    assert is_event_log(path)
    told: list[tuple[int, int]] = []
    found = read_event_log(path, progress=lambda done, total: told.append((done, total)))
    assert (found.id, found.name, found.remarks) == ("app-1", "words", ())
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    first, second = found.executors
    assert (first.cores, first.alive, first.added) == (2, True, START)
    assert (second.alive, second.removed) == (False, START + 9.0)
    query = found.query("words")
    assert [(b.id, b.rows) for b in query.batches] == [(0, 100), (1, 200), (2, 300)]
    assert query.batches[0].written == 3 and query.details[0].commit == 0.02
    read, count = query.stages[1]
    assert (read.tasks, read.input_records, read.write_records) == (2, 200, 12)
    assert (count.tasks, count.read_records, count.completed) == (3, 12, 3)
    assert read.run_time == pytest.approx(0.22) and read.busy == pytest.approx(0.212)
    assert read.cpu_time == pytest.approx(0.11)
    assert [t.records for t in query.tasks[read.id]] == [100, 100]
    assert found.experiment(query).executors == found.executors


def test_logs_that_were_rolled_over(tmp_path: Path) -> None:
    lines = text(whole(12)).splitlines(keepends=True)
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "appstatus_app-1.inprogress").touch()
    for number in range(1, 12):  # 10 and 11 come after 9
        part = lines[(number - 1) * 10 : number * 10 if number < 11 else None]
        (folder / f"events_{number}_app-1").write_text("".join(part))
    alone = read_event_log(write(tmp_path / "app-1", whole(12)))
    assert is_event_log(folder)
    assert read_event_log(folder).queries == alone.queries


def test_a_log_that_is_still_written(tmp_path: Path) -> None:
    path = tmp_path / "app-1.inprogress"
    path.write_text(text(whole())[:-20])
    found = read_event_log(path)
    assert len(found.queries[0].batches) == 3
    assert "half a line at the end was left out" in found.remarks[0]


def test_before_spark_4_progress_is_text(tmp_path: Path) -> None:
    events = [started(), *batch(0)[:-1], progress(0, 100, as_text=True)]
    assert read_event_log(write(tmp_path / "app", events)).queries[0].batches[0].rows == 100


def test_idle_moments_and_stages_of_no_query(tmp_path: Path) -> None:
    idle = {"Event": f"{STREAMING}IdleEvent", "runId": RUN, "timestamp": "2027-01-15T09:00:00.000Z"}
    other = [submitted(900, None, 1), task(900, 0, read=7), completed(900, 0.0)]
    found = read_event_log(write(tmp_path / "app", [started(), *other, *batch(0), idle]))
    (query,) = found.queries
    assert [b.idle for b in query.batches] == [False, True]
    assert [s.id for s in query.stages[0]] == [0, 1]


def test_a_stage_that_is_tried_again_counts_its_records_once(tmp_path: Path) -> None:
    events = [
        started(),
        submitted(0, 0, 2),
        task(0, 0, read=50),
        task(0, 1, read=50, reason="ExceptionFailure"),
        completed(0, 0.0, why="lost"),
        submitted(0, 0, 2, attempt=1),
        task(0, 0, read=50),
        task(0, 1, read=50),
        task(0, 1, read=50),
        completed(0, 1.0, attempt=1),
        progress(0, 100),
    ]
    (stage,) = read_event_log(write(tmp_path / "app", events)).queries[0].stages[0]
    assert (stage.input_records, stage.attempt, stage.failed) == (100, 1, False)
    assert stage.run_time == pytest.approx(5 * 0.11)


def test_single_tasks_are_kept_of_some_batches_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_reader, "KEPT_TASKS", 5)
    (query,) = read_event_log(write(tmp_path / "app", whole(40))).queries
    assert len(query.stages) == 40
    assert 2 <= len({id // 10 for id in query.tasks}) <= 16


MIDDLE = text(whole()[:5]) + '{"Event":"SparkListenerTaskEnd","Stage\n' + text(whole()[5:])
REFUSED = {
    "empty": ("", "tells of no application"),
    "not a log": ("time,count\n0,1\n0,2\n", "line 1: is no event .* the log is damaged"),
    "other JSON": ('{"a": 1}\n', "line 1: .* is no event of Spark"),
    "damaged in the middle": (MIDDLE, "line 6: is no event .* Cut it off before that line"),
    "two applications": (text([*whole(), started("app-2")]), "two applications, app-1 and app-2"),
    "no query": (text([started(), added("0", 0.0)]), "has no finished micro-batch"),
    "odd event": (
        text([started(), {"Event": "SparkListenerExecutorAdded", "Timestamp": "noon"}]),
        "line 2: SparkListenerExecutorAdded is not as Spark writes it",
    ),
    "deep": ('{"Event":"SparkListenerTaskEnd","a":' + "[" * 100_000 + "\n{}\n", "line 1: is no"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "app-1"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_event_log(path)
    assert "app-1" in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.lz4").write_bytes(b"LZ4Block")
    with pytest.raises(InputError, match="compressed by lz4, which cannot be read here; write"):
        read_event_log(tmp_path / "app.lz4")
    with pytest.raises(InputError, match="no event log is in this folder"):
        read_event_log(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_event_log(tmp_path / "nothing")
    monkeypatch.setattr(event_log, "LONGEST_LINE", 1 << 10)
    long = tmp_path / "long"
    long.write_text('{"Event":"' + "x" * 5000)
    with pytest.raises(InputError, match="line 1: is longer than"):
        read_event_log(long)
    assert not is_event_log(tmp_path / "nothing") and not is_event_log(tmp_path)


def test_a_compressed_log_whole_and_cut_off(tmp_path: Path) -> None:
    plain = read_event_log(write(tmp_path / "app-1", whole(50)))
    lines = text(whole(50)).encode()
    path = tmp_path / "app-1.zstd"
    path.write_bytes(b"".join(zstandard.compress(p) for p in (lines[:5000], lines[5000:])))
    assert is_event_log(path)
    assert read_event_log(path).queries == plain.queries
    path.write_bytes(path.read_bytes()[:-300])
    assert len(read_event_log(path).queries[0].batches) < 50


def test_without_its_package_a_compressed_log_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "app.zstd"
    path.write_bytes(event_log.ZSTD + b"rest")
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(MissingError, match=r"pip install 'penstock\[sim\]'"):
        read_event_log(path)
