"""``penstock run`` around a script whose session is a fake: attach, freeze, metrics, sessions."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.history.journal import read
from tests.fakes.shell import Shell
from tests.fakes.spark import without_spark

# It says what happened on standard output, as its own work.
SCRIPT = """
import os, signal, sys
from pyspark.sql import SparkSession
from tests.fakes.spark import FakeSession, look
from tests.fakes.waiting import until

def played(story):
    session = FakeSession(story)
    SparkSession._instantiatedSession = session
    until("the story is over", session.over.is_set)
    return session

print("asked for", played([look(1000.0)]).requests)
os.kill(os.getpid(), signal.SIGUSR1)
print("frozen", played([look(2000.0)]).requests)
os.kill(os.getpid(), signal.SIGUSR2)
print("thawed", played([look(3000.0)]).requests, "arguments", sys.argv[1:])
sys.exit(7)
"""

# Its session has a key that nobody knows; it waits until that was said.
WRONG = """
import sys
from pyspark.sql import SparkSession
from tests.fakes.spark import FakeSession
from tests.fakes.waiting import until

looked = []

class Session(FakeSession):
    @property
    def conf(self):
        looked.append(1)
        return super().conf

session = Session([], conf_of_session={"spark.penstock.mod": "act"})
SparkSession._instantiatedSession = session
until("it was looked at", lambda: bool(looked))
print("went on")
"""


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    monkeypatch.setattr(sys, "path", sys.path[:])  # the script's folder is put first
    (tmp_path / "job.py").write_text(SCRIPT)
    return Shell.at(tmp_path, monkeypatch, capsys, "run", "job.py", "--policy", "static")


def test_every_session_gets_an_autoscaler_and_signals_reach_it(
    shell: Shell, tmp_path: Path
) -> None:
    handlers = logging.getLogger("penstock").handlers[:]
    before = signal.getsignal(signal.SIGUSR1)
    with without_spark():
        done = shell("x", "--set", "slots=6", "--mode", "act", "--journal", "j",
                     "--metrics-port", "0")  # fmt: skip
    assert done.code == 7
    assert done.out == "asked for [6]\nfrozen []\nthawed [6] arguments ['x']\n"
    assert done.err.startswith(
        "penstock: static in mode act, 1 to 80 executors, every 15 s, no configuration file\n"
    )
    assert done.err.count("attached to app-") == 3
    assert done.err.count("metrics at http://127.0.0.1:") == 3
    assert "frozen: SIGUSR1; observing goes on" in done.err
    assert [e.decision.applied for e in read(tmp_path / "j")[1]] == [True, False, True]
    assert logging.getLogger("penstock").handlers == handlers
    assert signal.getsignal(signal.SIGUSR1) == before


def test_a_port_in_use_and_a_wrong_key_of_the_session_do_no_harm(
    shell: Shell, tmp_path: Path
) -> None:
    with socket.socket() as taken, without_spark():
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = shell("--set", "slots=6", "--mode", "act", "--metrics-port", port)
    assert done.code == 7
    assert f"no metrics: metrics_port {port}" in done.err
    assert "asked for [6]\n" in done.out
    (tmp_path / "job.py").write_text(WRONG)
    done = shell("--freeze-file", "none")
    assert (done.code, done.out) == (0, "went on\n")
    assert "not attached: unknown Spark key spark.penstock.mod; did you mean" in done.err
