"""The process of one instance, started by a host.

``python -m penstock.lab.agents.pipeline.process``. The first line on standard input is its set-up,
the secret with it, so that nothing of it is on a command line or in an environment. Further lines
are orders and the host's answers; the end of standard input is the end of the host, and the process
ends at once. What it tells goes to standard output, a line of JSON each.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
import traceback
from collections.abc import Coroutine
from typing import Any, NoReturn, Protocol

from penstock.decentralized.messages import Address
from penstock.lab.agents.pipeline.agent import Agent
from penstock.lab.agents.pipeline.setup import Setup
from penstock.lab.agents.pipeline.stages import Sink, Source
from penstock.lab.agents.transport.frames import MOST_BYTES
from penstock.lab.agents.transport.link import Connection, Dial
from penstock.lab.agents.transport.reception import Reception
from penstock.lab.agents.transport.wire import Place, Places, read_place

REPORT_SECONDS = 1.0
BACKLOG = 256  # connections that may wait while a process starts
MOST_LINE = 1 << 22
LEFT, FAILED, GIVEN_UP, ORPHANED = 0, 1, 3, 4  # exit codes


def tell(document: dict[str, Any]) -> None:
    """One line to the host."""
    sys.stdout.write(json.dumps(document, separators=(",", ":")) + "\n")
    sys.stdout.flush()


async def lines_of(descriptor: int) -> asyncio.StreamReader:
    """A pipe as a stream of lines."""
    reader = asyncio.StreamReader(limit=MOST_LINE)
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    return reader


class _Desk:
    """Takes orders, asks the host for new instances, and reports."""

    def __init__(self) -> None:
        self.agent: Agent | None = None
        self._answer: asyncio.Future[Places] | None = None
        self._actions: set[asyncio.Task[int]] = set()

    async def spawn(self, count: int) -> Places:
        """Ask the host."""
        self._answer = asyncio.get_running_loop().create_future()
        tell({"spawn": count})
        try:
            return await self._answer
        finally:
            self._answer = None

    async def orders(self, lines: asyncio.StreamReader) -> None:
        """Follow orders until there is nobody to give them."""
        while line := await lines.readline():
            self._follow(json.loads(line))
        os._exit(ORPHANED)  # the host is gone

    async def reports(self) -> None:
        """Say every second how it is."""
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            self.report()

    def report(self) -> None:
        """Say how it is."""
        if self.agent is not None:
            tell({"report": self.agent.report()})

    def _follow(self, order: dict[str, Any]) -> None:
        agent = self.agent
        assert agent is not None
        match order:
            case {"spawned": list(places)} if self._answer is not None:
                self._answer.set_result(dict(map(read_place, places)))
            case {"begin": [list(succs), list(preds)]}:
                agent.begin(dict(map(read_place, succs)), dict(map(read_place, preds)))
            case {"go": _} if isinstance(agent.stage, Source):
                agent.stage.go()
            case {"duplicate": int(count)} if agent.membership.free:
                task = asyncio.create_task(agent.duplicate(count))
                self._actions.add(task)
                task.add_done_callback(self._actions.discard)
                task.add_done_callback(checked)
            case {"leave": _} if agent.membership.free:
                agent.leave()
            case {"rest": _}:
                agent.rest()
                self.report()
            case {"audit": dict(sent)} if isinstance(agent.stage, Sink):
                found = agent.stage.audit({int(serial): n for serial, n in sent.items()})
                tell({"event": "audited", **found})


async def _run() -> None:
    desk = _Desk()
    lines = await lines_of(0)
    setup, listening = Setup.of(json.loads(await lines.readline()))
    loop = asyncio.get_running_loop()
    agent = desk.agent = Agent(
        setup, dial=dialler(setup.place), spawn=desk.spawn, tell=tell, clock=loop.time
    )
    why = await lived(agent, listening, desk.orders(lines), desk.reports())
    desk.report()
    ended(why)


class Lives(Protocol):
    """What is run in a process."""

    @property
    def reception(self) -> Reception:
        """Who may come in."""

    async def run(self) -> str:
        """Work until it ends; the reason."""


def dialler(mine: Place) -> Dial:
    """Dials others from where an instance listens."""

    async def dial(place: Place) -> Connection:
        return await asyncio.open_connection(
            place.host, place.port, limit=MOST_BYTES, local_addr=(mine.host, 0)
        )

    return dial


async def lived(agent: Lives, listening: int, *beside: Coroutine[Any, Any, None]) -> str:
    """Run an instance that listens at a descriptor, with what runs ``beside`` it; why it ends."""
    asyncio.get_running_loop().set_exception_handler(_fail)
    server = await asyncio.start_server(
        agent.reception.serve,
        sock=socket.socket(fileno=listening),
        limit=MOST_BYTES,
        backlog=BACKLOG,
    )
    tasks = [asyncio.create_task(work) for work in beside]
    for task in tasks:
        task.add_done_callback(checked)
    async with server:
        return await agent.run()


def ended(why: str) -> NoReturn:
    """Say why it ends, and end; nobody waits for what is still open."""
    tell({"event": "ends", "why": why})
    os._exit(LEFT if why == "left" else GIVEN_UP)


def checked(task: asyncio.Task[Any]) -> None:
    """A task that failed ends the process."""
    if not task.cancelled() and (problem := task.exception()) is not None:
        _fail(task.get_loop(), {"message": "a task failed", "exception": problem})


def _fail(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A fault of ours ends the process; its peers then do what they do when one crashes."""
    problem = context.get("exception")
    sys.stderr.write(f"{context['message']}\n")
    if problem is not None:
        traceback.print_exception(problem)
    sys.stderr.flush()
    os._exit(FAILED)


def address_of(document: list[Any]) -> Address:
    """An address from a plain value."""
    return Address(str(document[0]), int(document[1]))


if __name__ == "__main__":
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # a peer that is gone is no surprise
    asyncio.run(_run())
