"""One Autoscaler per application, also when a cell is run twice and an observation hangs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.core.loop import Decision
from penstock.history.journal import read
from penstock.policies import create
from penstock.spark import controller
from penstock.spark.autoscaler import Autoscaler
from tests.fakes.spark import FakeSession, look, without_spark
from tests.fakes.waiting import until


class Hanging:
    """A question that is not answered until it is let go."""

    def __init__(self) -> None:
        self.asked, self.answer = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.asked.set()
        assert self.answer.wait(60.0)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    monkeypatch.setattr(controller, "PATIENCE", 0.05)
    with without_spark():
        made = Hanging()
        yield made
        made.answer.set()


def loops() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "penstock"]


def gone(threads: list[threading.Thread]) -> Callable[[], bool]:
    return lambda: not any(t.is_alive() for t in threads)


@pytest.mark.parametrize("mode", ["act", "advise"])
def test_a_second_start_replaces_the_first(mode: Any, caplog: pytest.LogCaptureFixture) -> None:
    session = FakeSession([])
    before = set(loops())
    with without_spark():
        first = Autoscaler(session, "static", mode=mode).start()
        second = Autoscaler(session, "ds2", mode=mode).start()
        assert session.attached == 1
        assert len(set(loops()) - before) == 1
        session.story.append(look())
        session.over.clear()
        first.stop()  # the end of the first cell's with block: it is stopped already
        assert session.attached == 1
        second.stop()
        assert session.attached == 0
    said = [r.getMessage() for r in caplog.records if "already" in r.getMessage()]
    assert len(said) == 1
    assert f"(static in mode {mode}): it was stopped, this one takes over" in said[0]


def test_other_applications_are_left_alone() -> None:
    one, two = FakeSession([]), FakeSession([])
    with without_spark(), Autoscaler(one, mode="act"), Autoscaler(two, mode="act"):
        assert (one.attached, two.attached) == (1, 1)


def test_one_journal_goes_from_the_first_to_the_second(tmp_path: Path) -> None:
    session = FakeSession([look(1000.0)])
    with without_spark():
        Autoscaler(session, "static", journal=tmp_path / "j").start()
        until("the first has decided", session.over.is_set)
        session.over.clear()
        session.story.append(look(2000.0))
        with Autoscaler(session, "static", journal=tmp_path / "j"):
            until("the second has decided", session.over.is_set)
    assert [e.decision.seen.time for e in read(tmp_path / "j")[1]] == [1000.0, 2000.0]


def test_an_observation_that_comes_back_late_counts_for_nothing(
    hanging: Hanging, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock")
    session = FakeSession([hanging, look(1000.0)])
    made: list[Decision] = []
    scaler = Autoscaler(
        session, create("static", {"slots": 9}), mode="act", journal=tmp_path / "j",
        record=lambda decision, _: made.append(decision),
    )  # fmt: skip
    before = set(loops())
    scaler.start()
    until("it asked", hanging.asked.is_set)
    late = [t for t in loops() if t not in before]
    scaler.stop()
    assert session.attached == 0
    hanging.answer.set()
    until("the late thread has ended", gone(late))
    assert (made, scaler.last, session.requests) == ([], None, [])
    assert read(tmp_path / "j")[1] == []
    assert "no answer within" in caplog.text
    assert "executors" not in "".join(
        r.getMessage() for r in caplog.records if "attached" not in r.getMessage()
    )


def test_started_again_it_waits_for_the_thread_that_hangs(
    hanging: Hanging, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = FakeSession([hanging, look(1000.0), look(2000.0)])
    heard: list[float] = []
    scaler = Autoscaler(
        session, create("static", {"slots": 9}), mode="act", journal=tmp_path / "j",
        record=lambda decision, _: heard.append(decision.seen.time),
    )  # fmt: skip
    with scaler:
        until("it asked", hanging.asked.is_set)
        old = loops()
        for _ in range(2):  # nor does one that waits in vain let the next one in
            scaler.stop()
            scaler.start()
        assert session.attached == 1
        until("both said that they wait", lambda: caplog.text.count(": waiting for what") == 2, 9)
        assert session.story == [look(1000.0), look(2000.0)]  # nobody else has asked
        hanging.answer.set()
        until("the old thread has ended", gone(old))
        until("the new one has decided", session.over.is_set)
    # The old thread took the look at 1000 and dropped it.
    assert heard == [e.decision.seen.time for e in read(tmp_path / "j")[1]] == [2000.0]
    assert session.requests == [9]


def test_a_replaced_one_that_hangs_does_nothing_when_it_comes_back(
    hanging: Hanging, tmp_path: Path
) -> None:
    first = FakeSession([hanging, look(1000.0)])
    # The same application, seen through an engine of its own.
    second = FakeSession([look(2000.0)], sparkContext=first.sparkContext)
    heard: list[float] = []
    options: Any = {"mode": "act", "journal": tmp_path / "j",
                    "record": lambda decision, _: heard.append(decision.seen.time)}  # fmt: skip
    Autoscaler(first, create("static", {"slots": 9}), **options).start()
    until("it asked", hanging.asked.is_set)
    old = loops()
    with Autoscaler(second, create("static", {"slots": 6}), **options):
        until("the second has decided", second.over.is_set)
        hanging.answer.set()
        until("the first has ended", gone(old))
    assert first.requests == [6]  # which are those of the application
    assert heard == [e.decision.seen.time for e in read(tmp_path / "j")[1]] == [2000.0]


def test_a_new_start_never_acts_while_an_old_action_is_being_done(hanging: Hanging) -> None:
    first = FakeSession([look(1000.0)])
    second = FakeSession([look(2000.0), look(3000.0)], sparkContext=first.sparkContext)
    taken = first.sparkContext.requestTotalExecutors
    inside: list[int] = []

    def slow(*args: Any) -> bool:
        inside.append(args[0])
        assert len(inside) == 1, "two actions at once"
        if args[0] == 9:
            hanging()
        try:
            return taken(*args)
        finally:
            inside.pop()

    vars(first.sparkContext)["requestTotalExecutors"] = slow
    made: list[Decision] = []

    def record(decision: Decision, _: Any) -> None:
        made.append(decision)
        if len(made) == 1:  # it was refused; now the old action ends
            hanging.answer.set()
            until("the old action has ended", lambda: not inside)

    Autoscaler(first, create("static", {"slots": 9}), mode="act", cool_down=0).start()
    until("it acts", hanging.asked.is_set)
    with Autoscaler(second, create("static", {"slots": 6}), mode="act", cool_down=0, record=record):
        until("the second has decided", second.over.is_set)
    assert [d.outcome for d in made] == ["refused", "acted"]
    assert "has not been answered yet" in made[0].explain()
    assert first.requests == [9, 6]
