"""Spark's own examples beside the truth: the feed, the event log, the proof's arithmetic."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import InputError, MissingError
from penstock.lab.proofs import examples, examples_run
from penstock.lab.proofs.examples import backlogs_of, judge, keep, prove, rates_of, reactions_of
from penstock.lab.proofs.examples_course import EventLog, ExampleCourse, Look, Ran, looks_of
from penstock.lab.proofs.examples_feed import SocketFeed, lines_of
from penstock.lab.proofs.examples_run import BY_NAME, ExampleError, ExamplesSettings
from tests.fakes.spark import look as snapshot
from tests.fakes.spark import looks as snapshots
from tests.fakes.waiting import until

LOW, HIGH, RISE, FALL, END = 100.0, 1000.0, 100.0, 200.0, 400.0


def look(time: float, executors: int = 1, **kw: Any) -> Look:
    base = Look(time=time, executors=executors, offered=None, lag=None, running=None, asked=None)
    return replace(base, **kw)


def fed(moment: float) -> int:
    return int(LOW * moment + (HIGH - LOW) * (min(max(moment, RISE), FALL) - RISE))


def course(**kw: Any) -> ExampleCourse:
    """A batch every 20 s that takes all that was fed; the truth is seen every 10 s."""
    counts = tuple((float(t), fed(t)) for t in range(int(END) + 1))
    batches = tuple(
        Ran(start=float(t), end=t + 20.0, rows=fed(t) - (fed(t - 20) if t else 0))
        for t in range(0, int(END), 20)
    )
    base = ExampleCourse(
        name="windowed", period=10.0, window=10.0, rise=RISE, fall=FALL, end=END, low=LOW,
        high=HIGH, counts=counts, batches=batches, joined=(5.0, 118.0), left=(330.0,), looks=(),
    )  # fmt: skip
    looks = []
    for at in range(10, int(END), 10):
        size = 1 if at < 120 or at > 330 else 2
        rate = HIGH if RISE < at <= FALL else LOW
        asked = {110: 2, 320: 1}.get(at)
        waits = base.waiting(float(at))
        looks.append(look(float(at), size, offered=rate, lag=waits, asked=asked))
    return replace(base, looks=tuple(looks), **kw)


def test_reactions_count_from_the_steps_of_the_load() -> None:
    found = reactions_of(course())
    assert (found.asked, found.registered, found.down) == (10.0, 18.0, 120.0)
    assert (found.before, found.peak, found.last, found.given_back) == (1, 2, 1, 1)
    hasty = tuple(replace(k, executors=1) if k.time > FALL - 20 else k for k in course().looks)
    assert reactions_of(replace(course(), looks=hasty)).given_back == 0


def test_an_action_before_the_rise_is_no_answer_to_it() -> None:
    early = [replace(k, asked=2 if k.time == 50.0 else None) for k in course().looks]
    found = reactions_of(replace(course(), looks=tuple(early)))
    assert (found.asked, found.registered, found.down) == (None, None, None)


def test_true_figures_hold_and_false_ones_do_not() -> None:
    good = judge([course()])
    assert good.held, [c for c in good.checks if not c.held]
    assert [c.figure.split(": ")[1] for c in good.checks] == [
        "load rose to executor registered", "executors given back", "rate true", "backlog true",
    ]  # fmt: skip
    off = tuple(replace(k, offered=(k.offered or 0.0) * 1.2) for k in course().looks)
    blind = tuple(replace(k, lag=0.0) for k in course().looks)
    late = tuple(replace(k, asked=2 if k.time == 180.0 else None) for k in course().looks)
    for looks, wrong in ((off, {"rate true"}), (late, {"load rose to executor registered"})):
        found = judge([replace(course(), looks=looks)])
        assert {c.figure.split(": ")[1] for c in found.checks if not c.held} == wrong
    # One batch of slack: blindness shows where more than a batch waits.
    stuck = (*course().batches[:6], Ran(start=120.0, end=390.0, rows=900))
    found = judge([replace(course(), looks=blind, batches=stuck)])
    failed = {c.figure.split(": ")[1] for c in found.checks if not c.held}
    assert failed == {"backlog true", "backlog, long batches true"}


def test_rates_are_compared_where_the_load_had_not_changed() -> None:
    times = [c.time for c in rates_of(course())]
    assert min(times) == 30.0  # as much as a look covers was fed
    assert not [t for t in times if RISE < t < RISE + 30.0 or FALL < t < FALL + 30.0]
    assert all(c.error < 0.01 for c in rates_of(course()))


def test_what_waits_is_not_known_after_the_last_batch_of_the_log() -> None:
    short = replace(course(), batches=course().batches[:3])
    assert short.waiting(60.0) is not None and short.waiting(61.0) is None
    assert {c.time for c in backlogs_of(short)} <= {10.0, 20.0, 30.0, 40.0, 50.0, 60.0}
    assert replace(course(), batches=()).waiting(10.0) is None


def test_finished_examples_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(course(), tmp_path / "old")

    def run(name: str, *_: Any, **__: Any) -> ExampleCourse:
        if name == "sessions":
            raise MissingError("it needs pandas")
        if name == "sessionization":
            raise ExampleError("it ended with exit code 1:\nTraceback\nAnalysisException: no\n")
        return replace(course(), name=name)

    monkeypatch.setattr(examples, "run", run)
    said: list[str] = []
    names = ("windowed", "sessionization", "kafka", "sessions")
    spec = ExamplesSettings(only=names, done=str(tmp_path / "old"))
    (tmp_path / "new").mkdir()
    proof = prove(spec, folder=tmp_path / "new", say=said.append)
    assert [d["example"] for d in proof.details] == ["windowed", "kafka"]
    assert "not run: sessions: it needs pandas" in proof.notes
    assert "not run: sessionization: AnalysisException: no" in proof.notes
    assert "it needs pandas" in said and len(said) == 2
    assert (tmp_path / "new" / "report.png").stat().st_size > 10_000
    assert (tmp_path / "new" / "windowed" / "course.json").is_file()
    with pytest.raises(InputError, match="there is no such folder"):
        prove(replace(spec, done=str(tmp_path / "no")), folder=tmp_path, say=said.append)
    with pytest.raises(MissingError):
        prove(ExamplesSettings(only=("sessions",)), folder=tmp_path, say=said.append)


def test_a_missing_package_is_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examples_run, "find_spec", lambda name: None)
    monkeypatch.setattr(examples_run, "find_spark", lambda: tmp_path)
    with pytest.raises(MissingError, match=r"session_window\.py needs pandas: pip install pandas"):
        examples_run.script_of(BY_NAME["sessions"])
    monkeypatch.setattr(examples_run, "find_spec", lambda name: object())
    with pytest.raises(MissingError, match="this pyspark package has no"):
        examples_run.script_of(BY_NAME["sessions"])


def test_the_event_log_tells_batches_and_executors(tmp_path: Path) -> None:
    progress = {
        "timestamp": "2026-01-01T00:00:10.500Z", "batchDuration": 2500,
        "sources": [{"numInputRows": 30}, {"numInputRows": 12}],
    }  # fmt: skip
    kind = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    events = [
        {"Event": "SparkListenerExecutorAdded", "Timestamp": 4000},
        {"Event": kind, "progress": progress},
        {"Event": kind, "progress": json.dumps(progress)},
        {"Event": "SparkListenerExecutorRemoved", "Timestamp": 9500},
    ]
    text = "".join(json.dumps(e) + "\n" for e in events) + '{"Event": "torn'
    (tmp_path / "app-1.inprogress").write_text(text)
    (tmp_path / ".app-1.crc").write_bytes(b"\x00")
    log = EventLog.read(tmp_path)
    ran = Ran(start=1767225610.5, end=1767225613.0, rows=42)
    assert log == EventLog(batches=(ran, ran), joined=(4.0,), left=(9.5,))


def test_looks_are_what_the_journal_says() -> None:
    from penstock.core.guards import Guards
    from penstock.core.loop import State, plan
    from penstock.policies import DS2

    shown = [replace(s, pools={"executors": snapshot_slots(2)}) for s in snapshots(1000.0, 9000.0)]
    decisions = [plan(DS2(), Guards(maximum=8), s, State())[0] for s in shown]
    acted = [replace(d, applied=bool(d.changes)) for d in decisions]
    first, second = looks_of(acted)
    assert (first.time, first.executors, first.offered, first.lag) == (1000.0, 2, 1000.0, 100.0)
    assert second.offered == 9000.0
    assert second.asked == 8
    assert looks_of(decisions)[1].asked is None  # nobody was asked


def snapshot_slots(count: int) -> Any:
    from penstock.core.model import Slot

    assert snapshot().pools == {"executors": ()}
    return tuple(Slot(id=str(n)) for n in range(count))


def test_a_socket_is_fed_what_is_counted() -> None:
    lines = lines_of(vocabulary=5, words=3, seed=0)
    assert len({len(line.split()) for line in lines}) == 1 and lines[0].endswith(b"\n")
    read = 0
    with (
        SocketFeed(lines, rate=2000.0) as feed,
        socket.create_connection(("127.0.0.1", feed.port)) as client,
    ):

        def enough() -> bool:
            nonlocal read
            read += client.recv(1 << 16).count(b"\n")
            return len(feed.counts) >= 3

        until("some lines were counted", enough)
        counted = feed.counts[-1][1]
        while read < counted:
            read += client.recv(1 << 16).count(b"\n")
    assert counted > 0
    times, totals = zip(*feed.counts, strict=True)
    assert list(times) == sorted(times) and list(totals) == sorted(totals)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"only": ("no",)}, "unknown example 'no'; there are windowed, sessions"),
        ({"only": ()}, "--only names none"),
        ({"period": 1.0}, "--period 1 must lie between 2 and 60"),
        ({"busy": 5.0}, "--busy 5 must lie between 3 periods"),
        ({"executors": 1}, "--executors 1 must lie between 2 and 64"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        ExamplesSettings(**settings)
