"""What runs in the process of one agent, whatever its kind; a host started it.

A set-up and orders come on standard input, what the agent tells goes to standard output, and the
end of standard input is the end of the host: the process then ends at once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from penstock.lab.agents.processes.host import BACKLOG
from penstock.lab.agents.processes.lines import orders, tell
from penstock.lab.agents.transport.frames import MOST_BYTES
from penstock.lab.agents.transport.link import Connection, Dial
from penstock.lab.agents.transport.reception import Reception
from penstock.lab.agents.transport.wire import Place

REPORT_SECONDS = 1.0
LEFT, FAILED, GIVEN_UP, ORPHANED = 0, 1, 3, 4  # exit codes


class Agent(Protocol):
    """An agent of any kind."""

    @property
    def reception(self) -> Reception:
        """What takes its incoming connections."""

    async def run(self) -> str:
        """Work until it ends; returns the reason."""

    def report(self) -> dict[str, Any]:
        """How it is, for those who watch."""

    def rest(self) -> None:
        """Decide nothing any more; an action that is under way goes on."""


class Hosted(Protocol):
    """An agent, and how it follows the orders of its kind."""

    @property
    def agent(self) -> Agent:
        """The agent that runs in this process."""

    def follow(self, order: dict[str, Any]) -> None:
        """Do what the host says."""


def main(made: Callable[[dict[str, Any]], Hosted]) -> None:
    """Run the agent that is ``made`` from its set-up, until it ends; so does the process."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # a peer that is gone is no surprise
    asyncio.run(_run(made))


async def _run(made: Callable[[dict[str, Any]], Hosted]) -> None:
    lines = await orders()
    setup = json.loads(await lines.readline())
    listening: int = setup.pop("listening")
    hosted = made(setup)
    agent = hosted.agent
    asyncio.get_running_loop().set_exception_handler(_fail)
    server = await asyncio.start_server(
        agent.reception.serve,
        sock=socket.socket(fileno=listening),
        limit=MOST_BYTES,
        backlog=BACKLOG,
    )
    beside = [asyncio.create_task(_follow(hosted, lines)), asyncio.create_task(_reports(agent))]
    for task in beside:
        task.add_done_callback(checked)
    async with server:
        why = await agent.run()
    tell({"report": agent.report()})
    tell({"event": "ends", "why": why})
    os._exit(LEFT if why == "left" else GIVEN_UP)  # nobody waits for what is still open


async def _follow(hosted: Hosted, lines: asyncio.StreamReader) -> None:
    """Follow orders until there is nobody to give them."""
    while line := await lines.readline():
        match json.loads(line):
            case {"rest": _}:
                hosted.agent.rest()
                tell({"report": hosted.agent.report()})
            case order:
                hosted.follow(order)
    os._exit(ORPHANED)  # the host is gone


async def _reports(agent: Agent) -> None:
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        tell({"report": agent.report()})


def dialler(mine: Place) -> Dial:
    """Dials others from where an agent listens."""

    async def dial(place: Place) -> Connection:
        return await asyncio.open_connection(
            place.host, place.port, limit=MOST_BYTES, local_addr=(mine.host, 0)
        )

    return dial


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
