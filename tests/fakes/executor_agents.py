"""Agents beside executors in one process: a pretended Spark, and time that passes when all wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from penstock.core.errors import EngineError
from penstock.decentralized.messages import Address
from penstock.lab.agents.executors.agent import ExecutorAgent
from penstock.lab.agents.executors.host import Applications, Assignment, Assignments
from penstock.lab.agents.executors.load import LoadMeter
from penstock.lab.agents.executors.setup import AgentSettings, ExecutorAgentSetup
from penstock.lab.agents.protocol.setup import AgentSetup
from penstock.lab.agents.transport.link import Connection
from penstock.lab.agents.transport.wire import Place
from tests.fakes.agents_memory import pair

SECRET = b"a secret of this run"
CHAIN = (("source", "map"), ("map", "sink"))
START = 3.0  # seconds until an executor has registered
DECOMMISSION = 2.0  # seconds until one that leaves is gone
LOOK = 0.25
AGENT_SETTINGS = AgentSettings(period=20.0, window=12.0, patience=10.0, arrival=60.0)


class PretendedSpark:
    """An application: executors that come and go as its driver is asked to."""

    def __init__(self, most: int = 4) -> None:
        self.most, self.executors, self.total = most, {"0"}, 1
        self.load: float | None = 0.7  # of each executor
        self.wishes: list[tuple[str, ...]] = []
        self._next = 1

    async def add(self, who: str) -> None:
        if self.total >= self.most:
            raise EngineError(f"{self.total + 1} executors are outside the limits of 1 to 4")
        self.total += 1
        self.wishes.append(("add", who))
        asyncio.get_running_loop().call_later(START, self.start)

    async def remove(self, who: str, executor: str) -> None:
        if executor not in self.executors:
            raise EngineError(f"there is no executor {executor!r}")
        self.total -= 1
        self.wishes.append(("remove", who, executor))
        asyncio.get_running_loop().call_later(DECOMMISSION, self.executors.discard, executor)

    def start(self) -> None:
        self.executors.add(str(self._next))
        self._next += 1

    def crash(self, executor: str) -> None:
        """One dies; Spark replaces it."""
        self.executors.discard(executor)
        asyncio.get_running_loop().call_later(START, self.start)


class Pretended(LoadMeter):
    """The load is what the test says."""

    def __init__(self, spark: PretendedSpark) -> None:
        self._spark, self.every = spark, 1.0

    def sample(self) -> None:
        return

    def load(self) -> float | None:
        return self._spark.load


class Crew:
    """All agents of a pipeline, placed as a host places them; their processes are tasks."""

    def __init__(
        self,
        settings: AgentSettings = AGENT_SETTINGS,
        secrets: Mapping[str, bytes] | None = None,
    ) -> None:
        self.spark = {name: PretendedSpark() for name in ("source", "map", "sink")}
        self.agents: dict[Address, ExecutorAgent] = {}
        self.all: list[ExecutorAgent] = []
        self.told: list[tuple[Address, dict[str, Any]]] = []
        self.ends: list[tuple[Address, str]] = []
        self._settings = settings
        self._secrets = secrets or {}
        self._applications = Applications(drivers=dict.fromkeys(self.spark, ""), edges=CHAIN)
        clock = asyncio.get_running_loop().time
        self.assignments = {
            n: Assignments(n, arrival=settings.arrival, clock=clock) for n in self.spark
        }
        self._ports = iter(range(10, 1 << 16))
        self._kept = {name: Place("memory", number) for number, name in enumerate(self.spark, 1)}
        self._queues: dict[Place, list[Connection]] = {}
        self._listening: dict[Place, ExecutorAgent] = {}
        self._open: dict[Place, list[Any]] = {}
        self._tasks: dict[Address, asyncio.Task[str]] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while True:
            for name, assignments in self.assignments.items():
                over, new = assignments.look(self.spark[name].executors)
                for who in over:
                    self.kill(who)
                for assignment in new:
                    self._start(assignment)
            await asyncio.sleep(LOOK)

    def _start(self, assignment: Assignment) -> None:
        name, keeper = assignment.address.operator, assignment.address.keeper
        creator = None if assignment.creator is None else self.agents.get(assignment.creator)
        if creator is None and not keeper:
            self.assignments[name].ended(assignment.address, left=False)
            return
        after, before = self._applications.next_to(name)
        setup = ExecutorAgentSetup(
            me=AgentSetup(
                address=assignment.address,
                place=self._kept[name] if keeper else Place("memory", next(self._ports)),
                secret=self._secrets.get(name, SECRET),
                life=assignment.life,
                creator=None
                if creator is None
                else (creator.setup.me.address, creator.setup.me.place),
                patience=self._settings.patience,
                succs=tuple((Address(n, 0), self._kept[n]) for n in after) if keeper else (),
                preds=tuple((Address(n, 0), self._kept[n]) for n in before) if keeper else (),
            ),
            executor=assignment.executor,
            account={},
            driver="",
            settings=self._settings,
            above=bool(before),
            below=bool(after),
        )

        async def dial(place: Place) -> Connection:
            return self._connect(place)

        agent = ExecutorAgent(
            setup,
            meter=Pretended(self.spark[name]),
            driver=self.spark[name],
            dial=dial,
            expect=lambda: self.assignments[name].expect(assignment.address),
            tell=lambda what: self.told.append((assignment.address, what)),
        )
        self.agents[assignment.address] = self._listening[setup.me.place] = agent
        self.all.append(agent)
        for far in self._queues.pop(setup.me.place, []):
            self._serve(agent, far)
        if creator is not None:
            creator.came({assignment.address: setup.me.place}, asked=assignment.asked)
        task = self._tasks[assignment.address] = asyncio.create_task(agent.run())
        task.add_done_callback(lambda done: self._ended(agent, done))

    def _connect(self, place: Place) -> Connection:
        near, far = pair()
        if place in self._listening:
            self._serve(self._listening[place], far)
        elif place in self._kept.values():
            self._queues.setdefault(place, []).append(far)
        else:
            raise ConnectionRefusedError
        self._open.setdefault(place, []).extend([near[1], far[1]])
        return near

    def _serve(self, agent: ExecutorAgent, far: Connection) -> None:
        task = asyncio.create_task(agent.reception.serve(*far))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    def kill(self, who: Address) -> None:
        """A crash of an agent, or the end of one whose executor is gone."""
        if who in self._tasks:
            self._tasks[who].cancel()

    def _ended(self, agent: ExecutorAgent, done: asyncio.Task[str]) -> None:
        who, place = agent.setup.me.address, agent.setup.me.place
        why = "killed" if done.cancelled() else done.result()
        self.ends.append((who, why))
        if self.agents.get(who) is agent:
            del self.agents[who]
            self._tasks.pop(who)
        if self._listening.get(place) is agent:
            del self._listening[place]
            for writer in self._open.pop(place, []):
                writer.cut()
        if self.assignments[who.operator].executor_of(who) == agent.setup.executor:
            self.assignments[who.operator].ended(who, left=why == "left")

    # ---- what can be seen ----------------------------------------------------------------------

    def of(self, operator: str) -> list[Address]:
        return sorted(a for a in self.agents if a.operator == operator)

    def count(self, name: str) -> int:
        return sum(agent.counts[name] for agent in self.all)

    async def until(self, holds: Any, seconds: float = 100.0) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                await asyncio.sleep(0.1)

    def views_agree(self) -> bool:
        """Every agent knows all agents next to it, and nobody else; nothing is under way."""
        after = dict(CHAIN)
        before = {b: a for a, b in CHAIN}
        for address, agent in self.agents.items():
            me = agent.membership.me
            succs = set(self.of(after.get(address.operator, "")))
            preds = set(self.of(before.get(address.operator, "")))
            if me.phase != "active" or me.succs != succs or me.preds != preds:
                return False
        beside = {a.setup.executor for a in self.agents.values() if a.setup.me.address.operator}
        return bool(beside)

    async def stop(self) -> None:
        self._looking.cancel()
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), *self._serving, return_exceptions=True)
