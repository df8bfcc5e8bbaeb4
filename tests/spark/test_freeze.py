"""The kill switch: by file, by signal, by call; frozen it observes, says and does not act."""

from __future__ import annotations

import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import InputError
from penstock.history.journal import read
from penstock.policies import Static
from penstock.spark.autoscaler import Autoscaler
from penstock.spark.freeze import KillSwitch
from tests.fakes.spark import FakeSession, look, looks, played, without_spark
from tests.fakes.waiting import until


def test_frozen_by_a_call_it_says_what_it_would_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock")
    switch, path = KillSwitch(), tmp_path / "j"
    switch.freeze("the night of the sale")
    story: list[Any] = [*looks(1000.0, 1000.0, 1000.0), switch.thaw, look(1100.0), look(1200.0)]
    session, made = played(story, Static(slots=6), switch=switch, journal=path)
    assert [d.applied for d in made] == [False, False, False, True, False]
    assert [d.changes["executors"].slots for d in made[:3]] == [6, 6, 6]
    assert session.requests == [6]
    assert [e.decision.notes for e in read(path)[1]][:3] == [("frozen: the night of the sale",)] * 3
    assert [d.outcome for d in made] == ["frozen", "frozen", "frozen", "acted", "held"]
    assert {(d.bound, d.why) for d in made[:3]} == {("kill-switch", "the night of the sale")}
    said = [r.getMessage() for r in caplog.records]
    assert [line for line in said if line.startswith("frozen")] == [
        "frozen: the night of the sale; observing goes on, nothing is done"
    ]
    assert sum(line.startswith("thawed") for line in said) == 1
    (would,) = [line for line in said if line.startswith("would do")]
    assert "executors 4→6" in would and would.endswith("; frozen: the night of the sale")


def test_frozen_while_a_file_exists(tmp_path: Path) -> None:
    file = tmp_path / "freeze"
    file.write_text("until Monday\nask Ada\n")
    story: list[Any] = [look(1000.0), file.unlink, look(1100.0), file.touch, look(1200.0)]
    session, made = played(story, Static(slots=6), freeze_file=file)
    assert made[0].notes == (f"frozen: {file}: until Monday ask Ada",)
    assert made[1].applied and made[1].notes == ()
    assert made[2].notes == (f"frozen: {file} exists",)
    assert session.requests == [6]


def test_the_file_is_looked_at_again_right_before_acting(tmp_path: Path) -> None:
    """It appears while the policy thinks, and again while Spark is asked for its executors."""
    file = tmp_path / "freeze"

    class Slow(Static):
        def decide(self, seen: Any, memory: Any) -> Any:
            file.touch()
            return super().decide(seen, memory)

    session, (decision,) = played(looks(1000.0), Slow(slots=6), freeze_file=file)
    assert not decision.applied and decision.notes == (f"frozen: {file} exists",)
    file.unlink()
    asked: list[int] = []

    class Late(KillSwitch):
        @property
        def reason(self) -> str | None:
            asked.append(1)
            return "just now" if len(asked) == 3 else None  # the tick, the loop, the last gate

    session, (decision,) = played(looks(1000.0), Static(slots=6), switch=Late())
    assert decision.notes == ("not done: frozen: just now",)
    assert (decision.outcome, decision.why) == ("frozen", "just now")
    assert session.requests == []


@pytest.mark.parametrize("name", ["folder", "file/inside"])
def test_odd_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    reason = KillSwitch(tmp_path / name).reason
    assert (reason is not None) is (name == "folder")


def test_a_file_that_cannot_be_looked_at_freezes(tmp_path: Path) -> None:
    file = tmp_path / "loop"
    file.symlink_to(file)
    assert "cannot be read" in (KillSwitch(file).reason or "")


def test_thawing_does_not_remove_the_file(tmp_path: Path) -> None:
    (tmp_path / "freeze").touch()
    switch = KillSwitch(tmp_path / "freeze")
    switch.freeze("also so")
    assert switch.reason == "also so"
    switch.thaw()
    assert switch.reason == f"{tmp_path / 'freeze'} exists"


def test_signals_freeze_and_thaw_and_are_given_back() -> None:
    before = signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGUSR2)
    session = FakeSession([])
    with without_spark(), Autoscaler(session, freeze_signals=True) as scaler:
        os.kill(os.getpid(), signal.SIGUSR1)
        until("frozen", lambda: scaler.switch.reason == "SIGUSR1")
        os.kill(os.getpid(), signal.SIGUSR2)
        until("thawed", lambda: scaler.switch.reason is None)
    assert (signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGUSR2)) == before


def test_signals_need_the_main_thread() -> None:
    caught: list[Exception] = []

    def start() -> None:
        try:
            Autoscaler(FakeSession([]), freeze_signals=True).start()
        except InputError as error:
            caught.append(error)

    with without_spark():
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
    assert "needs the main thread" in str(caught[0])


def test_frozen_by_the_program_and_thawed() -> None:
    with without_spark():
        scaler = Autoscaler(FakeSession([]))
        scaler.freeze("deploy")
        assert scaler.switch.reason == "deploy"
        scaler.thaw()
        assert scaler.switch.reason is None
