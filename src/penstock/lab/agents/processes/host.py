"""A host: starts, feeds, hears and ends the processes of agents on one machine.

It decides nothing: which agents there are to be, and what becomes of what they tell, is the
business of who owns it: the instances of a pipeline of ours, or agents beside executors.

The host makes the socket that an agent listens on. So its place is known before its process runs,
and a keeper's socket, which its owner keeps, outlives it: its next process listens at the same
place.
"""

from __future__ import annotations

import asyncio
import socket as sockets
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.core.errors import EngineError
from penstock.decentralized.messages import Address
from penstock.lab.agents.processes.lines import LineProcess
from penstock.lab.agents.protocol.setup import AgentSetup

BACKLOG = 256  # connections that may wait while a process starts


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAction:
    """What an agent did, or what happened to it."""

    time: float
    instance: str
    what: str


class Setup(Protocol):
    """What an agent is told when it is started, whatever its kind."""

    @property
    def me(self) -> AgentSetup:
        """Who it is."""

    def document(self) -> dict[str, Any]:
        """All of it as plain values."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentProcess:
    """An agent that was started."""

    me: AgentSetup
    process: LineProcess

    def order(self, document: Mapping[str, Any]) -> None:
        """Tell it to do something."""
        self.process.order(document)


Heard = Callable[[AgentProcess, dict[str, Any]], Awaitable[None]]
Ended = Callable[[AgentProcess, int], Awaitable[None]]


class AgentHost:
    """All agents of one kind on this machine; lives in an event loop.

    module: what each process runs
    listen: the address that agents listen at
    heard: gets what an agent tells, one after the other
    ended: gets an agent whose process has ended, and its exit code
    living: the agents whose processes run
    ending: whether all are being ended
    """

    def __init__(self, module: str, *, listen: str, heard: Heard, ended: Ended) -> None:
        self._module = module
        self._listen = listen
        self._heard = heard
        self._ended = ended
        self._watching: set[asyncio.Task[None]] = set()
        self.living: dict[Address, AgentProcess] = {}
        self.ending = False

    def socket(self) -> sockets.socket:
        """A socket for an agent to listen on."""
        made = sockets.socket()
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

    async def start(self, setup: Setup, listening: sockets.socket, *, keep: bool) -> AgentProcess:
        """Start an agent that listens on a socket.

        Unless its owner wants to ``keep`` it, the socket is closed here, so that nobody can dial it
        when the agent's process is gone.
        """
        descriptor = listening.fileno()
        process = await LineProcess.start(sys.executable, "-m", self._module, keep=[descriptor])
        agent = AgentProcess(me=setup.me, process=process)
        self.living[setup.me.address] = agent
        agent.order({**setup.document(), "listening": descriptor})
        if not keep:
            listening.close()
        task = asyncio.create_task(self._watch(agent))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
        return agent

    def kill(self, address: Address) -> None:
        """Kill an agent, as a crash would; nothing happens if there is none."""
        if address in self.living:
            self.living[address].process.kill()

    async def end(self) -> None:
        """End every agent, whatever it is doing; returns when they are gone."""
        self.ending = True
        agents = list(self.living.values())
        for agent in agents:
            agent.process.kill()
        await asyncio.gather(*(agent.process.wait() for agent in agents))
        for task in list(self._watching):
            task.cancel()

    async def _watch(self, agent: AgentProcess) -> None:
        """Hear what an agent tells, until it ends."""
        async for said in agent.process.said():
            await self._heard(agent, said)
        code = await agent.process.wait()
        if self.living.get(agent.me.address) is agent:
            del self.living[agent.me.address]
        await self._ended(agent, code)
