"""Agents as real processes over loopback, with stand-ins for drivers and executors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import EngineError, InputError
from penstock.decentralized.messages import Address
from penstock.decentralized.policy import Probabilistic
from penstock.lab.agents.executors.host import Applications
from penstock.lab.agents.executors.load import GroupAccount
from penstock.lab.agents.executors.local import LocalAgents
from penstock.lab.agents.executors.setup import AgentSettings
from penstock.lab.host.cgroups import Groups, Hierarchy
from penstock.lab.host.processes import with_variable
from penstock.spark.split.wire import Address as Socket
from penstock.spark.split.wire import Server
from tests.fakes.waiting import until

pytestmark = pytest.mark.alone

KEY = "a key of this test"
MOST = 2
QUOTA = 0.5
# At full load an agent always adds others, at none it always leaves.
CERTAIN = Probabilistic(ratio=0.3, up=0.5, down=0.2)
AGENT_SETTINGS = AgentSettings(policy=CERTAIN, period=0.8, window=0.6, patience=3.0)


class StandIn:
    """An application: a driver that answers at a socket, executors that are control groups."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.load = name, 0.25
        self.asked: list[Any] = []
        self._folder = folder / name
        self._executors: dict[str, tuple[Path, float]] = {}
        self._next = 0
        self.start()
        self.server = Server(Socket.parse(folder / f"{name}.sock"), self.answer, key=KEY)

    def start(self) -> None:
        group = self._folder / "run" / str(self._next)
        group.mkdir(parents=True)
        (group / "cpu.max").write_text(f"{round(QUOTA * 1e5)} 100000")
        self._executors[str(self._next)] = group, 0.0
        self._next += 1
        self.work(0.0)

    def work(self, seconds: float) -> None:
        """All executors work for a while."""
        for id, (group, used) in list(self._executors.items()):
            now = used + seconds * QUOTA * self.load
            self._executors[id] = group, now
            part = group / "cpu.stat.part"
            part.write_text(f"usage_usec {round(now * 1e6)}\n")
            part.replace(group / "cpu.stat")

    def crash(self, executor: str) -> None:
        del self._executors[executor]

    @property
    def executors(self) -> dict[str, dict[str, Any]]:
        hierarchy = Hierarchy(version=2, cpu=self._folder, account=self._folder)
        groups = Groups(hierarchy=hierarchy, name="run")
        return {id: GroupAccount(groups=groups, key=id).document() for id in self._executors}

    def answer(self, question: Any) -> Any:
        self.asked.append(question)
        match question:
            case {"ask": "add"}:
                if len(self._executors) >= MOST:
                    raise EngineError(f"{MOST + 1} executors are outside the limits of 1 to {MOST}")
                self.start()
            case {"ask": "remove", "executor": str(id)}:
                if id not in self._executors:
                    raise EngineError(f"there is no executor {id!r}")
                del self._executors[id]
        return {}


class Stage:
    """Three applications in a row whose executors use CPU as time passes."""

    def __init__(self, folder: Path) -> None:
        self.applications = {n: StandIn(n, folder) for n in ("source", "map", "sink")}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def agents(self, key: str = KEY) -> LocalAgents:
        described = Applications(
            drivers={n: str(a.server.address) for n, a in self.applications.items()},
            edges=(("source", "map"), ("map", "sink")),
            key=key,
        )
        return LocalAgents(
            described,
            AGENT_SETTINGS,
            lambda: {n: a.executors for n, a in self.applications.items()},
        )

    def _work(self) -> None:
        last = time.monotonic()
        while not self._over.wait(0.02):
            now = time.monotonic()
            for application in self.applications.values():
                application.work(now - last)
            last = now

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        for application in self.applications.values():
            application.server.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.close()


def phases(agents: LocalAgents, operator: str) -> dict[Address, str]:
    return {a: r.get("phase", "") for a, r in agents.agents().items() if a.operator == operator}


def neighbours(agents: LocalAgents) -> dict[str, int]:
    return {str(a): r.get("neighbours", 0) for a, r in agents.agents().items()}


def test_agents_scale_an_operator_up_and_down_through_its_driver(stage: Stage) -> None:
    busy = stage.applications["map"]
    with stage.agents() as agents:
        until("all agents know each other", lambda: neighbours(agents) == {
            "source0": 1, "map0": 2, "sink0": 1})  # fmt: skip
        busy.load = 1.0
        until("the map has a second agent at work", lambda: sorted(
            phases(agents, "map").values()) == ["active", "active"])  # fmt: skip
        until("its neighbours know", lambda: neighbours(agents)["sink0"] == 2)
        until("a wish is refused", lambda: agents.counts()["refused additions"] >= 1)
        busy.load = 0.0
        until("the second has left", lambda: list(busy.executors) == ["0"])
        until("its neighbours know", lambda: neighbours(agents) == {
            "source0": 1, "map0": 2, "sink0": 1})  # fmt: skip
        agents.rest()
        counts = agents.counts()
        assert counts["messages"] == counts["messages by the formula"] > 0
        assert {q["ask"] for q in busy.asked} == {"add", "remove"}
        removed = [q for q in busy.asked if q["ask"] == "remove"]
        assert all(q["who"] != "map0" and q["executor"] != "0" for q in removed)
        assert stage.applications["source"].asked == stage.applications["sink"].asked == []
        said = [a.what for a in agents.actions() if a.what.startswith("refused")]
        assert "outside the limits of 1 to 2" in said[0]


def test_an_agent_follows_its_executor_and_is_replaced_when_it_crashes(stage: Stage) -> None:
    lost = stage.applications["map"]
    with stage.agents() as agents:
        until("all agents know each other", lambda: neighbours(agents).get("map0") == 2)
        agents.kill(Address("sink", 0))
        until("the sink's keeper is back", lambda: (
            "sink0", "beside executor 0, life 2") in said(agents))  # fmt: skip
        lost.crash("0")
        until("its agent has ended", lambda: ("map0", "its executor is gone") in said(agents))
        lost.start()
        until("the replacement has the keeper's role", lambda: (
            "map0", "beside executor 1, life 2") in said(agents))  # fmt: skip
        until("all agents know each other", lambda: neighbours(agents) == {
            "source0": 1, "map0": 2, "sink0": 1})  # fmt: skip
        assert lost.asked == []


def said(agents: LocalAgents) -> set[tuple[str, str]]:
    return {(action.instance, action.what) for action in agents.actions()}


def test_a_driver_does_nothing_for_who_has_another_key(stage: Stage) -> None:
    busy = stage.applications["map"]
    busy.load = 1.0
    with stage.agents(key="another key") as agents:
        until("a wish was refused", lambda: agents.counts()["refused additions"] >= 1)
        assert "has another key" in " ".join(a.what for a in agents.actions())
    assert (busy.asked, list(busy.executors)) == ([], ["0"])


def test_no_process_is_left(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TEST_STAGE", str(id(stage)))
    with pytest.raises(KeyboardInterrupt), stage.agents() as agents:
        until("agents run", lambda: len(agents.agents()) == 3)
        assert len(with_variable("PENSTOCK_TEST_STAGE", str(id(stage)))) == 3
        raise KeyboardInterrupt
    assert with_variable("PENSTOCK_TEST_STAGE", str(id(stage))) == []
    with pytest.raises(EngineError, match="has ended"):
        agents.counts()


def test_every_operator_needs_a_driver() -> None:
    with pytest.raises(InputError, match="no driver of map"):
        Applications(drivers={"source": "s"}, edges=(("source", "map"),))
    with pytest.raises(InputError, match="window 3 ≤ period 2"):
        AgentSettings(period=2.0, window=3.0)
