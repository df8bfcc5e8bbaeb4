"""The host of the agents beside executors: starts one beside every executor, and ends it with it.

It decides nothing. Which agent stands beside which executor is worked out by ``Assignments``, which
touches no process. The sockets of the keepers it keeps, so that the next process of a keeper
listens at the same place.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.errors import InputError
from penstock.decentralized.messages import Address
from penstock.lab.agents.executors.setup import AgentSettings, ExecutorAgentSetup
from penstock.lab.agents.processes.agent import LEFT
from penstock.lab.agents.processes.host import AgentAction, AgentHost, AgentProcess
from penstock.lab.agents.protocol.setup import AgentSetup, Neighbours
from penstock.lab.agents.transport.wire import Place

LISTEN = "127.0.0.1"  # the address of this machine that agents listen at
LOOK_SECONDS = 0.25
MOST_LIVES = 10  # agents that an executor may have; one that always crashes has a fault
PROCESS = "penstock.lab.agents.executors.agent"
Look = Callable[[], Mapping[str, Mapping[str, Mapping[str, Any]]]]
"""The registered executors of every operator, each with the account of its load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applications:
    """The applications of a pipeline: where the driver of each listens, and who reads whom.

    ``key`` what drivers and agents know, where others can reach those addresses.
    """

    drivers: Mapping[str, str]
    edges: Sequence[tuple[str, str]]
    key: str | None = None

    def __post_init__(self) -> None:
        if strange := {name for edge in self.edges for name in edge} - set(self.drivers):
            raise InputError(f"no driver of {', '.join(sorted(strange))}: give where it listens")

    def next_to(self, operator: str) -> tuple[list[str], list[str]]:
        """The operators after and before one."""
        after = [b for a, b in self.edges if a == operator]
        return after, [a for a, b in self.edges if b == operator]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """An agent to be started.

    ``creator`` who starts it by the protocol, ``None`` for the keeper · ``asked`` whether that one
    has asked for the executor; else nobody has, and the keeper announces it.
    """

    address: Address
    executor: str
    life: int = 1
    creator: Address | None = None
    asked: bool = False


class Assignments:
    """The executors of one operator and their agents.

    The first executor gets the keeper. When the keeper is gone, by a crash of its agent or with its
    executor, the next executor without an agent gets its role. Any other executor is given to the
    agent that has waited longest for one, at most ``arrival`` seconds; to the keeper if nobody has:
    Spark has replaced an executor that was lost.
    """

    def __init__(self, operator: str, *, arrival: float, clock: Callable[[], float]) -> None:
        self._keeper = Address(operator, 0)
        self._arrival = arrival
        self._clock = clock
        self._assignments: dict[Address, str] = {}
        self._leaving: set[str] = set()
        self._expectations: deque[tuple[Address, float]] = deque()
        self._lives: Counter[str] = Counter()  # agents that an executor has had
        self._keepers = 0
        self._next = 1

    @property
    def addresses(self) -> list[Address]:
        """The agents that there are."""
        return sorted(self._assignments)

    def executor_of(self, address: Address) -> str | None:
        """The executor that an agent stands beside."""
        return self._assignments.get(address)

    def expect(self, creator: Address) -> None:
        """An agent has been granted an executor."""
        self._expectations.append((creator, self._clock() + self._arrival))

    def ended(self, address: Address, *, left: bool) -> None:
        """An agent has ended; ``left``: by the protocol, and its executor goes."""
        executor = self._assignments.pop(address, None)
        if left and executor is not None:
            self._leaving.add(executor)

    def look(self, executors: Collection[str]) -> tuple[list[Address], list[Assignment]]:
        """The agents to end, and those to start, now that these executors are there."""
        self._leaving &= set(executors)
        over = [who for who, executor in self._assignments.items() if executor not in executors]
        for who in over:
            del self._assignments[who]
        alone = set(executors) - set(self._assignments.values()) - self._leaving
        found = [self._assigned(executor) for executor in sorted(alone, key=_age)]
        return over, [assignment for assignment in found if assignment is not None]

    def _assigned(self, executor: str) -> Assignment | None:
        if self._lives[executor] >= MOST_LIVES:
            return None
        self._lives[executor] += 1
        if self._keeper not in self._assignments:
            self._keepers += 1
            assignment = Assignment(address=self._keeper, executor=executor, life=self._keepers)
        else:
            address = Address(self._keeper.operator, self._next)
            self._next += 1
            creator = self._expectant()
            assignment = Assignment(
                address=address,
                executor=executor,
                creator=creator or self._keeper,
                asked=creator is not None,
            )
        self._assignments[assignment.address] = executor
        return assignment

    def _expectant(self) -> Address | None:
        while self._expectations:
            creator, until = self._expectations.popleft()
            if creator in self._assignments and self._clock() <= until:
                return creator
        return None


def _age(executor: str) -> tuple[int, str]:
    """Spark numbers executors as they come.

    >>> sorted(["10", "2"], key=_age)
    ['2', '10']
    """
    return (int(executor), "") if executor.isdigit() else (1 << 62, executor)


class ExecutorAgentHost:
    """All agents of a pipeline on this machine; lives in an event loop.

    ``look`` what executors there are.
    """

    def __init__(
        self,
        applications: Applications,
        settings: AgentSettings,
        look: Look,
    ) -> None:
        self._applications = applications
        self._settings = settings
        self._look = look
        self._secret = secrets.token_bytes(32)
        self._assignments = {
            name: Assignments(name, arrival=settings.arrival, clock=time.monotonic)
            for name in applications.drivers
        }
        self._keepers: dict[str, socket.socket] = {}
        self._executors: dict[AgentProcess, str] = {}
        self._reports: dict[tuple[Address, int], dict[str, Any]] = {}
        self._host = AgentHost(PROCESS, listen=LISTEN, heard=self._heard, ended=self._ended)
        self.actions: list[AgentAction] = []

    async def run(self) -> None:
        """Look after agents until cancelled; no process is left."""
        try:
            for name in self._assignments:
                self._keepers[name] = self._host.socket()
            while True:
                await self._match()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await self._host.end()
            for listening in self._keepers.values():
                listening.close()

    def rest(self) -> None:
        """Nobody decides any more; what is under way ends."""
        for agent in self._host.living.values():
            agent.order({"rest": True})

    def kill(self, address: Address) -> None:
        """Kill an agent, as a crash would."""
        self._note(address, "killed")
        self._host.kill(address)

    # What can be seen.

    @property
    def agents(self) -> dict[Address, dict[str, Any]]:
        """The agents that live, and what each reported last; empty before its first report."""
        return {
            who: self._reports.get((who, agent.me.life), {})
            for who, agent in self._host.living.items()
        }

    @property
    def counts(self) -> Counter[str]:
        """What all agents that there were have counted, together."""
        total: Counter[str] = Counter()
        for report in self._reports.values():
            total.update(report["counts"])
        return total

    # Inside.

    async def _match(self) -> None:
        """An agent beside every executor, and none without."""
        found = await asyncio.to_thread(self._look)
        for name, assignments in self._assignments.items():
            executors = found.get(name, {})
            over, new = assignments.look(executors)
            for who in over:
                self._note(who, "its executor is gone")
                self._host.kill(who)
            for assignment in new:
                await self._start(assignment, executors[assignment.executor])

    async def _start(self, assignment: Assignment, account: Mapping[str, Any]) -> None:
        address, executor = assignment.address, assignment.executor
        operator, keeper = address.operator, address.keeper
        creator = None if assignment.creator is None else self._host.living.get(assignment.creator)
        if creator is None and not keeper:  # it has just ended: look again who is there
            self._assignments[operator].ended(address, left=False)
            return
        after, before = self._applications.next_to(operator)
        listening = self._keepers[operator] if keeper else self._host.socket()
        place = Place(*listening.getsockname())
        setup = ExecutorAgentSetup(
            me=AgentSetup(
                address=address,
                place=place,
                secret=self._secret,
                life=assignment.life,
                creator=None if creator is None else (creator.me.address, creator.me.place),
                patience=self._settings.patience,
                succs=self._keepers_of(after) if keeper else (),
                preds=self._keepers_of(before) if keeper else (),
            ),
            executor=executor,
            account=account,
            driver=self._applications.drivers[operator],
            settings=self._settings,
            key=self._applications.key,
            above=bool(before),
            below=bool(after),
        )
        agent = await self._host.start(setup, listening, keep=keeper)
        self._executors[agent] = executor
        if creator is not None:
            creator.order({"came": [[*address, *place]], "asked": assignment.asked})
        self._note(address, f"beside executor {executor}, life {assignment.life}")

    async def _heard(self, agent: AgentProcess, said: dict[str, Any]) -> None:
        """Take down what an agent says."""
        address = agent.me.address
        match said:
            case {"report": dict(report)}:
                self._reports[address, agent.me.life] = report
            case {"expect": int(count)}:
                for _ in range(count):
                    self._assignments[address.operator].expect(address)
            case _:
                self._note(address, _words(said))

    async def _ended(self, agent: AgentProcess, code: int) -> None:
        """The executor of an agent that has ended gets another, unless it leaves."""
        address, executor = agent.me.address, self._executors.pop(agent)
        assignments = self._assignments[address.operator]
        if assignments.executor_of(address) == executor and not self._host.ending:
            assignments.ended(address, left=code == LEFT)
            if code != LEFT:
                self._note(address, f"ended with code {code}")

    def _keepers_of(self, operators: Sequence[str]) -> Neighbours:
        return tuple(
            (Address(name, 0), Place(*self._keepers[name].getsockname())) for name in operators
        )

    def _note(self, who: Address, what: str) -> None:
        self.actions.append(AgentAction(time=time.time(), instance=str(who), what=what))


def _words(said: Mapping[str, Any]) -> str:
    """What an agent tells, in words.

    >>> _words({"event": "duplicates", "count": 2}), _words({"event": "refused", "why": "full"})
    ('duplicates 2', 'refused: full')
    """
    match said:
        case {"event": "duplicates", "count": int(count)}:
            return f"duplicates {count}"
        case {"event": "lost a peer", "peer": [str(operator), int(serial)]}:
            return f"lost {Address(operator, serial)}"
        case {"event": str(event), "why": str(why)}:
            return f"{event}: {why}"
    return str(said.get("event", said))
