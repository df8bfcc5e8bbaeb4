"""A dead worker is replaced, within limits; a dead master is reported. Shells stand in for both."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.core.errors import EngineError, InputError
from penstock.lab.clusters.standalone.daemons import Daemons, Post, Restarts, Role
from penstock.lab.host import processes
from tests.fakes.waiting import until

SCRIPTS: dict[str, str] = {
    "master": "echo \"Successfully started service 'sparkMaster' on port 7077.\"; exec sleep 600",
    "worker": "echo 'Successfully registered with master spark://…'; exec sleep 600",
}
ONLY = Post(slots=3, memory="1g", cpu_share=0.2)
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

    def command(role: Role, name: str, arguments: list[str]) -> list[str]:
        return ["sh", "-c", SCRIPTS[role], name, *arguments]

    def start(*posts: Post, limit: Restarts | None = None, command: object = command) -> Daemons:
        daemons = Daemons(
            nursery=nursery,
            command=command,  # type: ignore[arg-type]
            env=dict(os.environ),
            folder=tmp_path,
            say=said.append,
            limit=limit,
        )
        made.append(daemons)
        daemons.start(*(posts or (ONLY,)))
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
    daemons = make(limit=Restarts(most=2, within=3600.0))
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
    def broken(role: Role, name: str, arguments: list[str]) -> list[str]:
        return ["sh", "-c", SCRIPTS["master"] if role == "master" else "echo no memory; exit 7"]

    with pytest.raises(EngineError, match="worker ended with exit code 7:\nno memory"):
        make(command=broken)


def test_workers_come_and_go_and_each_is_known_by_its_process(make: Make) -> None:
    daemons = make(Post(name="a", slots=1, memory="1g", cpu_share=0.2))
    other = Post(name="b", slots=1, memory="1g", cpu_share=0.5)
    daemons.add(other)
    assert list(daemons.posts) == ["a", "b"]
    first, second = daemons.pid("a"), daemons.pid("b")
    assert daemons.post_of(second) == other
    assert daemons.post_of(1) is None
    with pytest.raises(InputError, match="there is a worker 'b' already"):
        daemons.add(other)
    os.kill(first, signal.SIGKILL)
    until("only the dead one is replaced", lambda: daemons.pid("a") != first, 10)
    daemons.remove("b")
    daemons.remove("b")
    assert not processes.running(second)
    assert list(daemons.posts) == ["a"]
    assert daemons.restarts == 1


def test_a_worker_is_told_its_own_address(make: Make, tmp_path: Path) -> None:
    daemons = make(Post(name="far", slots=1, memory="600m", cpu_share=1.0, host="127.0.0.9"))
    environment = Path(f"/proc/{daemons.pid('far')}/environ").read_bytes().split(b"\0")
    assert b"SPARK_LOCAL_IP=127.0.0.9" in environment
    arguments: list[list[str]] = []

    def command(role: Role, name: str, given: list[str]) -> list[str]:
        arguments.append([name, *given])
        return ["sh", "-c", SCRIPTS[role]]

    make(Post(name="far", slots=1, memory="600m", cpu_share=1.0, host="127.0.0.9"), command=command)
    assert arguments[0][:3] == ["master", "--host", "127.0.0.1"]
    assert arguments[1][:3] == ["far", "--host", "127.0.0.9"]
    assert arguments[1][5:9] == ["-c", "1", "-m", "600m"]
