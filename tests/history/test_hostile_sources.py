"""Files that nobody should have to read: each is understood with a remark, or refused with the
file, the line, the value and the way out. None ends in a traceback, or in wrong figures.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from penstock.comparison.sources import read_source
from penstock.core.errors import InputError
from penstock.history import event_log, event_reader, event_runs
from penstock.history.learning.learn import learn
from penstock.history.recording import RecordedApplication
from tests.fakes.microbatch_examples import single
from tests.fakes.recorded_runs import write_down
from tests.history.test_event_log import (
    added,
    batch,
    progress,
    started,
    submitted,
    task,
    text,
    whole,
    write,
)
from tests.history.test_progress_file import document

Lines = list[bytes]
Make = Callable[[Path], Path]
Expected = str | tuple[str, ...]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """A journal of a quarter of an hour, line by line."""
    from penstock.workloads.patterns import Cosine

    made = single(max_rows=5000, trigger=1.0)
    load = Cosine(low=200.0, high=2000.0, period=300.0)
    folder = tmp_path_factory.mktemp("journal")
    written = write_down(folder, made, load, seconds=900.0, start=2, seed=1)
    return written.journal.read_bytes().splitlines(keepends=True)


def put(folder: Path, content: bytes | str, name: str = "app-1") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rolled(folder: Path, parts: Mapping[int, str]) -> Path:
    log = folder / "eventlog_v2_app-1"
    log.mkdir()
    for number, part in parts.items():
        (log / f"events_{number}_app-1").write_text(part)
    return log


def loop(folder: Path) -> Path:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    return folder / "a"


def changed(event: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {**event, "progress": {**event["progress"], **values}}


def packed(folder: Path, content: bytes) -> Path:
    return put(folder, zstandard.compress(content), "app-1.zstd")


EVENTS = text(whole(5)).splitlines(keepends=True)
HALF = '{"Event":"SparkListenerTaskEnd","Stage ID":1,"Stag'
DEEP = '{"Event":"SparkListenerTaskEnd","a":' + "[" * 50_000

REFUSED: dict[str, tuple[Make, Expected]] = {
    "empty file": (lambda p: put(p, ""), ("app-1: is empty", "give a journal")),
    "empty folder": (lambda p: p, ("nothing in it", "give a journal")),
    "folder of other things": (lambda p: put(p, "x", "notes.txt").parent, "notes.txt"),
    "folder with several logs": (
        lambda p: (write(p / "app-1", whole()), write(p / "app-2", whole()))[0].parent,
        ("holds 2 event logs; give one of them", "app-2"),
    ),
    "nothing there": (lambda p: p / "gone", ("there is no such file", "give a journal")),
    "binary": (lambda p: put(p, bytes(range(256)) * 9), ("line 1: binary data", "give a journal")),
    "a picture": (lambda p: put(p, b"\x89PNG\r\n\x1a\n\0\0"), ("line 1", "give a journal")),
    "half a line in the middle": (
        lambda p: put(p, "".join(EVENTS[:4]) + HALF + "\n" + "".join(EVENTS[4:])),
        ("app-1, line 5: is no event", "Cut it off before that line"),
    ),
    "half a line at the end of a part": (
        lambda p: rolled(p, {1: "".join(EVENTS[:6]) + HALF, 2: "".join(EVENTS[6:])}),
        ("events_1_app-1, line 7: is no event", "Cut it off"),
    ),
    "a part is missing": (
        lambda p: rolled(p, {1: "".join(EVENTS[:6]), 3: "".join(EVENTS[6:])}),
        ("events_3_app-1: part 2 of the log is missing before it", "copy it back"),
    ),
    "two applications": (
        lambda p: write(p / "app-1", [*whole(), started("app-2"), *whole()]),
        ("app-1, line 36: the log holds two applications, app-1 and app-2", "by itself"),
    ),
    "a bomb in one line": (
        lambda p: packed(p, b'{"Event":"' + b"x" * (80 << 20)),
        ("app-1.zstd, line 1: is longer than 64 MiB", "no event log"),
    ),
    "damaged zstd": (
        lambda p: put(p, zstandard.compress(text(whole(400)).encode())[:-900] + b"\0" * 900,
                      "app-1.zstd"),
        ("app-1.zstd, after line", "copy the log again"),
    ),
    "lz4": (lambda p: put(p, b"LZ4Block", "app-1.lz4"), "compressed by lz4"),
    "gzip": (
        lambda p: put(p, gzip.compress(text(whole()).encode()), "app-1.gz"),
        ("compressed by gzip", "unpack it"),
    ),
    "a gzip bomb": (lambda p: put(p, gzip.compress(bytes(50 << 20))), "compressed by gzip"),
    "NaN": (
        lambda p: put(p, text(whole()).replace('"batchDuration":800', '"batchDuration":NaN')),
        ("line 13", "nan", "remove the line"),
    ),
    "Infinity": (
        lambda p: put(p, text(whole()).replace('"Executor Run Time":100',
                                               '"Executor Run Time":Infinity')),
        ("line 5: SparkListenerTaskEnd", "infinity", "remove the line"),
    ),
    "negative times": (
        lambda p: write(p / "app-1", [started(), changed(progress(0, 9), batchDuration=-5)]),
        ("line 2: batchDuration = -5 ms", "remove the line"),
    ),
    "time before the epoch": (
        lambda p: write(p / "app-1",
                        [started(), changed(progress(0, 9), timestamp="1900-01-01T00:00:00Z")]),
        ("line 2: timestamp = -2.2", "remove the line"),
    ),
    "huge integers": (
        lambda p: write(p / "app-1", [started(), changed(progress(0, 9),
                                                         numInputRows=10**400)]),
        ("line 2", "remove the line"),
    ),
    "a huge count": (
        lambda p: write(p / "app-1", [started(), progress(0, 10**30)]),
        ("line 2: numInputRows", "1e+30", "remove the line"),
    ),
    "wrong types": (
        lambda p: write(p / "app-1", [started(), changed(progress(0, 9), sources="none")]),
        ("line 2", "is not as Spark writes it", "remove the line"),
    ),
    "a list of numbers": (lambda p: put(p, "[1, 2]\n"), ("line 1: a JSON list", "give a journal")),
    "another JSON": (lambda p: put(p, '{"a": 1}\n'), ("object with 'a'", "give a journal")),
    "deep nesting": (lambda p: put(p, DEEP + "\n{}\n"), ("line 1: is no event", "Cut it off")),
    "a CSV": (
        lambda p: put(p, "time,count\n0,1\n60,2\n", "week.csv"),
        ("week.csv, line 1: 'time,count'", "penstock compare --trace"),
    ),
    "a symlink loop": (loop, ("a: is a link that leads nowhere", "give a journal")),
    "a device": (lambda p: Path("/dev/null"), "no ordinary file"),
    "progress with a NaN": (
        lambda p: put(p, json.dumps(document(0)) + "\n" + json.dumps(
            document(1, batchDuration=float("nan"))), "p.json"),
        ("p.json, line 2", "nan", "remove the line"),
    ),
    "half of progress in the middle": (
        lambda p: put(p, json.dumps(document(0)) + "\n" + json.dumps(document(1))[:50] + "\n" +
                      json.dumps(document(2)), "p.json"),
        ("p.json, line 2", "is no JSON document", "remove it"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_way_out(name: str, tmp_path: Path) -> None:
    make, expected = REFUSED[name]
    path = make(tmp_path)
    with pytest.raises(InputError) as caught:
        read_source(path)
    said = str(caught.value)
    for part in (expected,) if isinstance(expected, str) else expected:
        assert part in said
    assert str(path) in said or str(tmp_path) in said
    assert len(said) < 1000


UNDERSTOOD: dict[str, tuple[Make, str, int]] = {
    "half a line at the end": (
        lambda p: put(p, text(whole(5)) + HALF),
        "half a line at the end was left out",
        5,
    ),
    "a log that was cut off": (
        lambda p: write(p / "app-1", whole(5)[:-1]),
        "ends before the application did",
        5,
    ),
    "all of it twice": (
        lambda p: write(p / "app-1", [*whole(5), *whole(5)]),
        "5 batches of run 9f6f2b52 are there twice or out of order",
        5,
    ),
    "ends of tasks out of order": (
        lambda p: write(p / "app-1", [*whole(3), submitted(70, 3, 2), task(70, 0, read=9),
                                      progress(3, 9), task(70, 1, read=9)]),
        "1 batches lack ends of tasks",
        4,
    ),
    "batches out of order": (
        lambda p: write(p / "app-1", [started(), *batch(1), *batch(0), *batch(2)]),
        "1 batches of run 9f6f2b52 are there twice or out of order",
        2,
    ),
    "a clock that jumps": (
        lambda p: write(p / "app-1", [*whole(3), changed(
            progress(3, 9), timestamp="2027-01-15T07:00:00.000Z")]),
        "the clock goes back by up to 3,602 s",
        4,
    ),
    "executors that nobody saw come": (
        lambda p: write(p / "app-1", [started(), added("1", 0.0), *batch(0), *batch(1)]),
        "1 executors (0) worked whose coming is not told",
        2,
    ),
    "without its beginning": (
        lambda p: write(p / "app-1", whole(4)[1:]),
        "does not begin with the application's start",
        4,
    ),
    "progress that begins anew": (
        lambda p: put(p, "\n".join(json.dumps(document(n % 3, 10 + n)) for n in range(5)), "p"),
        "2 batches are there twice; the last of each counts",
        3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_understood_with_a_remark(name: str, tmp_path: Path) -> None:
    make, remark, batches = UNDERSTOOD[name]
    found = read_source(make(tmp_path))
    assert any(remark in said for said in found.remarks)
    assert sum(not b.idle for q in found.queries for b in q.batches) == batches


def spoilt(line: bytes, **query: Any) -> bytes:
    """A line of a journal with other figures of its query."""
    known = json.loads(line)
    (name,) = known["decision"]["seen"]["queries"]
    known["decision"]["seen"]["queries"][name] |= query
    return json.dumps(known).encode() + b"\n"


JOURNALS: dict[str, tuple[Callable[[Lines], bytes], Expected]] = {
    "another format": (
        lambda of: of[0].replace(b'{"policy"', b'{"format":9,"policy"') + of[1],
        ("journal format 9", "this version reads 1"),
    ),
    "no header": (lambda of: b"".join(of[1:]), ("line 1", "a decision without the header")),
    "another encoding": (
        lambda of: b"".join(of).decode().encode("utf-16"),
        ("line 1", "binary data"),
    ),
    "half a line in the middle": (
        lambda of: b"".join([*of[:5], of[5][:99], b"\n", *of[6:]]),
        "line 6: not JSON",
    ),
    "an event among the lines": (
        lambda of: b"".join([*of[:3], EVENTS[0].encode(), *of[3:]]),
        ("line 4: not a decision", "SparkListenerApplicationStart"),
    ),
    "NaN": (
        lambda of: b"".join([*of[:9], spoilt(of[9], busy_per_record=float("nan")), *of[10:]]),
        ("line 10: busy_per_record of q nan must be", "remove the line"),
    ),
    "negative": (
        lambda of: b"".join([*of[:9], spoilt(of[9], rows=-7), *of[10:]]),
        ("line 10: rows of q -7 must be", "remove the line"),
    ),
    "a text for a number": (
        lambda of: b"".join([*of[:9], spoilt(of[9], rows="many"), *of[10:]]),
        ("line 10: rows of q many must be", "remove the line"),
    ),
    "deep nesting": (
        lambda of: b"".join([*of[:3], b"[" * 50_000 + b"\n", *of[3:]]),
        "line 4: not JSON",
    ),
    "only its header": (lambda of: of[0], ("none of its 0 ticks", "advise for longer")),
    "of a pipeline without batches": (
        lambda of: of[0] + json.dumps(_without_queries(of[5])).encode() + b"\n",
        ("line 2: tells of no streaming query", "give the journal of a Spark application"),
    ),
}


def _without_queries(line: bytes) -> Any:
    known = json.loads(line)
    del known["decision"]["seen"]["queries"]
    return known


@pytest.mark.parametrize("name", JOURNALS)
def test_journals_that_are_refused(name: str, lines: Lines, tmp_path: Path) -> None:
    make, expected = JOURNALS[name]
    path = put(tmp_path, make(lines), "decisions.jsonl")
    with pytest.raises(InputError) as caught:
        read_source(path)
    said = str(caught.value)
    for part in (str(path), *((expected,) if isinstance(expected, str) else expected)):
        assert part in said


def test_journals_that_are_understood(lines: Lines, tmp_path: Path) -> None:
    whole = read_source(put(tmp_path, b"".join(lines), "decisions.jsonl"))
    torn = read_source(put(tmp_path, b"".join(lines)[:-40], "torn.jsonl"))
    assert len(_rates(torn)) == len(_rates(whole)) - 1
    again = read_source(put(tmp_path, b"".join([*lines, *lines[1:]]), "again.jsonl"))
    assert any("time goes back by" in said for said in again.remarks)
    assert [len(q.batches) for q in again.queries] == [len(whole.queries[0].batches)] * 2
    (learned,) = learn(again).demand.values()
    (once,) = learn(whole).demand.values()
    assert learned.records == pytest.approx(once.records)


def _rates(found: RecordedApplication) -> Any:
    (demand,) = found.queries[0].demand.values()
    return demand.rates


def test_a_rotated_journal_is_read_with_the_older_ones(lines: Lines, tmp_path: Path) -> None:
    whole = read_source(put(tmp_path, b"".join(lines), "whole.jsonl"))
    put(tmp_path, b"".join(lines[:20]), "decisions.jsonl.2")
    put(tmp_path, b"".join([lines[0], *lines[20:40]]), "decisions.jsonl.1")
    put(tmp_path, b"".join([lines[0], *lines[40:]]), "decisions.jsonl")
    parts = read_source(tmp_path)
    assert parts.queries == tuple(replace(q) for q in whole.queries)
    assert parts.executors == whole.executors


def test_many_lines_of_a_bomb_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "FREE", 1 << 20)
    monkeypatch.setattr(event_log, "MOST_RATIO", 100)
    path = packed(tmp_path, text([started(), *[task(0, 0)] * 20_000]).encode())
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        read_source(path)


def test_what_is_kept_of_many_batches_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_reader, "KEPT_BATCHES", 100)
    monkeypatch.setattr(event_runs, "MOST_TASKS", 50)
    found = read_source(write(tmp_path / "app-1", whole(900)))
    (query,) = found.queries
    assert 30 <= len(query.batches) <= 132 and len(query.stages) <= 132
    assert sum(map(len, query.tasks.values())) <= 200
    assert query.plannings is not None and query.plannings.count == 900
    assert any("of 900 batches one in" in said for said in found.remarks)
    monkeypatch.setattr(event_reader, "MOST_BATCHES", 500)
    with pytest.raises(InputError, match="more than 500 batches; give a part of it"):
        read_source(tmp_path / "app-1")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    with pytest.raises(InputError, match="cannot be read"):
        read_source(closed)


def test_app_is_for_addresses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--app app-1 chooses among the applications of an addr"):
        read_source(tmp_path, app="app-1")


def test_sizes_are_for_progress_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--cores 2 is for files of progress documents only"):
        read_source(write(tmp_path / "app-1", whole()), cores=2)


def test_progress_files_need_what_they_ran_on(tmp_path: Path) -> None:
    path = put(tmp_path, "\n".join(
        json.dumps(document(n, 100 + 37 * (n % 9), batchDuration=200 + 37 * (n % 9)))
        for n in range(50)))  # fmt: skip
    with pytest.raises(InputError, match=r"app-1: tells of batches only.* --executors N"):
        learn(read_source(path))
    with pytest.raises(InputError, match="--executors 0 must be from 1"):
        learn(read_source(path), executors=0)
    found = learn(read_source(path), executors=2, cores=2, partitions=8)
    (query,) = found.profile.queries
    (stage,) = query.stages
    assert (stage.tasks, found.sizes) == (8, (2,))
    # 100 ms whatever their size, 1 ms for each record on four cores.
    assert query.planning + query.commit == pytest.approx(0.1, rel=0.05)
    assert stage.per_record == pytest.approx(4e-3, rel=0.05)
    assert any("only durations of batches are known" in said for said in found.remarks)
    assert read_source(path, executors=2, cores=2, partitions=8).executors == tuple(
        read_source(path, executors=2, cores=2).executors
    )
