"""A host: starts an agent beside every executor on a machine, and ends it with it.

It decides nothing. It makes the socket that an agent listens on, so that its place is known before
its process runs; those of the keepers it keeps, so that the next process of a keeper listens at the
same place.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.errors import EngineError, InputError
from penstock.decentralized.messages import Address
from penstock.lab.agents.executors.assignment import Assignment, Assignments
from penstock.lab.agents.executors.setup import AgentSettings, Neighbours, Setup
from penstock.lab.agents.pipeline.process import BACKLOG, LEFT, MOST_LINE
from penstock.lab.agents.pipeline.result import AgentAction
from penstock.lab.agents.transport.wire import Place

LOOK_SECONDS = 0.25
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


@dataclass(slots=True, kw_only=True)
class _Child:
    assignment: Assignment
    place: Place
    process: asyncio.subprocess.Process

    def order(self, document: Mapping[str, Any]) -> None:
        if self.process.stdin is not None:
            self.process.stdin.write(json.dumps(document).encode() + b"\n")


class Host:
    """All agents of a pipeline on this machine; lives in an event loop.

    ``look`` what executors there are · ``listen`` the address that agents listen at.
    """

    def __init__(
        self,
        applications: Applications,
        settings: AgentSettings,
        look: Look,
        *,
        listen: str = "127.0.0.1",
    ) -> None:
        self._applications = applications
        self._settings = settings
        self._look = look
        self._listen = listen
        self._secret = secrets.token_bytes(32)
        self._assignments = {
            name: Assignments(name, arrival=settings.arrival, clock=time.monotonic)
            for name in applications.drivers
        }
        self._keepers: dict[str, socket.socket] = {}
        self._children: dict[Address, _Child] = {}
        self._watching: set[asyncio.Task[None]] = set()
        self._reports: dict[tuple[Address, int], dict[str, Any]] = {}
        self._ending = False
        self.actions: list[AgentAction] = []

    async def run(self) -> None:
        """Look after agents until cancelled; no process is left."""
        try:
            for name in self._assignments:
                self._keepers[name] = self._socket()
            while True:
                await self._match()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await self.end()

    async def end(self) -> None:
        """End every agent, whatever it is doing; returns when they are gone."""
        self._ending = True
        children = list(self._children.values())
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                child.process.kill()
        await asyncio.gather(*(child.process.wait() for child in children))
        for task in list(self._watching):
            task.cancel()
        for listening in self._keepers.values():
            listening.close()

    def rest(self) -> None:
        """Nobody decides any more; what is under way ends."""
        for child in self._children.values():
            child.order({"rest": True})

    def kill(self, address: Address) -> None:
        """Kill an agent, as a crash would."""
        self._note(address, "killed")
        self._children[address].process.kill()

    # What can be seen.

    @property
    def agents(self) -> dict[Address, dict[str, Any]]:
        """The agents that live, and what each reported last; empty before its first report."""
        return {
            who: self._reports.get((who, child.assignment.life), {})
            for who, child in self._children.items()
        }

    @property
    def counts(self) -> Counter[str]:
        """Of all agents that there were, together."""
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
                with contextlib.suppress(KeyError, ProcessLookupError):
                    self._children[who].process.kill()
            for assignment in new:
                await self._start(assignment, executors[assignment.executor])

    async def _start(self, assignment: Assignment, account: Mapping[str, Any]) -> None:
        operator, keeper = assignment.address.operator, assignment.address.keeper
        creator = None if assignment.creator is None else self._children.get(assignment.creator)
        if creator is None and not keeper:  # it has just ended: look again who is there
            self._assignments[operator].ended(assignment.address, left=False)
            return
        after, before = self._applications.next_to(operator)
        listening = self._keepers[operator] if keeper else self._socket()
        place = Place(*listening.getsockname())
        setup = Setup(
            address=assignment.address,
            place=place,
            executor=assignment.executor,
            account=account,
            driver=self._applications.drivers[operator],
            key=self._applications.key,
            settings=self._settings,
            secret=self._secret,
            above=bool(before),
            below=bool(after),
            life=assignment.life,
            creator=None if creator is None else (creator.assignment.address, creator.place),
            succs=self._keepers_of(after) if keeper else (),
            preds=self._keepers_of(before) if keeper else (),
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            PROCESS,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[listening.fileno()],
            start_new_session=True,
            limit=MOST_LINE,
        )
        child = _Child(assignment=assignment, place=place, process=process)
        self._children[assignment.address] = child
        child.order(setup.document(listening.fileno()))
        if not keeper:
            listening.close()  # so that nobody can dial it when its process is gone
        if creator is not None:
            creator.order({"came": [[*assignment.address, *place]], "asked": assignment.asked})
        self._note(
            assignment.address, f"beside executor {assignment.executor}, life {assignment.life}"
        )
        task = asyncio.create_task(self._watch(child))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    async def _watch(self, child: _Child) -> None:
        """Take down what an agent says, until it ends."""
        address, out = child.assignment.address, child.process.stdout
        assert out is not None
        while (line := await out.readline()).endswith(b"\n"):  # a killed one may break off
            match json.loads(line):
                case {"report": dict(report)}:
                    self._reports[address, child.assignment.life] = report
                case {"expect": int(count)}:
                    for _ in range(count):
                        self._assignments[address.operator].expect(address)
                case said:
                    self._note(address, _words(said))
        code = await child.process.wait()
        if self._children.get(address) is child:
            del self._children[address]
        assignments = self._assignments[address.operator]
        if assignments.executor_of(address) == child.assignment.executor and not self._ending:
            assignments.ended(address, left=code == LEFT)
            if code != LEFT:
                self._note(address, f"ended with code {code}")

    def _keepers_of(self, operators: Sequence[str]) -> Neighbours:
        return tuple(
            (Address(name, 0), Place(*self._keepers[name].getsockname())) for name in operators
        )

    def _socket(self) -> socket.socket:
        made = socket.socket()
        try:
            made.bind((self._listen, 0))
        except OSError as error:
            made.close()
            raise EngineError(
                f"cannot listen at {self._listen}: {error.strerror}; an address of this machine is "
                f"needed"
            ) from None
        made.listen(BACKLOG)
        return made

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
