"""A dead worker is replaced, within limits; a dead master is reported. Shells stand in for both."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.core.errors import EngineError
from penstock.spark.local import processes
from penstock.spark.local.cluster_spec import ClusterSpec
from penstock.spark.local.daemons import Daemons, Restarts, Role
from tests.waiting import until

SCRIPTS: dict[str, str] = {
    "master": "echo \"Successfully started service 'sparkMaster' on port 7077.\"; exec sleep 600",
    "worker": "echo 'Successfully registered with master spark://…'; exec sleep 600",
}
Make = Callable[..., Daemons]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def make(tmp_path: Path, said: list[str]) -> Iterator[Make]:
    """Daemons made of shell scripts, ended with the test."""
    for name in ("logs", "work"):
        (tmp_path / name).mkdir()
    nursery = processes.Nursery()
    made: list[Daemons] = []

    def command(role: Role, arguments: list[str]) -> list[str]:
        return ["sh", "-c", SCRIPTS[role], role, *arguments]

    def start(limit: Restarts | None = None, command: object = command) -> Daemons:
        daemons = Daemons(
            ClusterSpec(slots=3),
            nursery=nursery,
            command=command,  # type: ignore[arg-type]
            env=dict(os.environ),
            folder=tmp_path,
            say=said.append,
            limit=limit,
        )
        made.append(daemons)
        daemons.start()
        return daemons

    yield start
    for daemons in made:
        daemons.stop()
    nursery.close()


def kill_worker(daemons: Daemons) -> None:
    """Kill the worker and wait until another one plays its role."""
    worker = daemons.pid("worker")
    os.kill(worker, signal.SIGKILL)

    def replaced() -> bool:
        return daemons.failure is not None or daemons.pid("worker") != worker

    until("a new worker, or none any more", replaced, 10)


def test_a_killed_worker_is_replaced_with_the_same_offer(make: Make, said: list[str]) -> None:
    daemons = make()
    offer = Path(f"/proc/{daemons.pid('worker')}/cmdline")
    until("it sleeps", lambda: b"sleep" in offer.read_bytes(), 10)
    assert daemons.url == "spark://127.0.0.1:7077"
    kill_worker(daemons)
    until("said", lambda: any("the new worker is ready" in line for line in said), 10)
    assert "the Spark worker was killed (signal 9); starting a new one…" in said
    assert (daemons.restarts, daemons.failure) == (1, None)
    assert processes.running(daemons.pid("worker"))


def test_a_worker_that_dies_too_often_is_given_up(make: Make, said: list[str]) -> None:
    daemons = make(Restarts(most=2, within=3600.0))
    for _ in range(3):
        kill_worker(daemons)
    assert daemons.restarts == 2
    assert "again after 2 new ones within 3600 s" in (daemons.failure or "")
    assert said[-1] == daemons.failure


def test_a_dead_master_is_reported_and_nothing_is_restarted(make: Make, said: list[str]) -> None:
    daemons = make()
    os.kill(daemons.pid("master"), signal.SIGKILL)
    until("reported", lambda: daemons.failure is not None, 10)
    assert "a master cannot be replaced" in said[-1]
    assert daemons.restarts == 0


def test_stopping_restarts_nothing(make: Make, said: list[str]) -> None:
    daemons = make()
    pids = [daemons.pid("master"), daemons.pid("worker")]
    daemons.stop()
    assert not any(map(processes.running, pids))
    assert (daemons.restarts, daemons.failure) == (0, None)
    assert said == ["starting the Spark master…", "starting a worker with 3 slots…"]


def test_a_worker_that_never_starts_tells_its_last_words(make: Make) -> None:
    def broken(role: Role, arguments: list[str]) -> list[str]:
        return ["sh", "-c", SCRIPTS["master"] if role == "master" else "echo no memory; exit 7"]

    with pytest.raises(EngineError, match="worker ended with exit code 7:\nno memory"):
        make(command=broken)
