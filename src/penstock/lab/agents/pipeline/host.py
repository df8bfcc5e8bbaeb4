"""A host: starts and ends the processes of instances on one machine. It decides nothing.

``python -m penstock.lab.agents.pipeline.host``, started by the runner, at another site with
whatever command leads there. The first line on standard input is its set-up; further lines are
orders; the end of standard input is the end of the run, and of every process here. An instance asks
its host for new ones over its own standard output, so a host listens on no port.

The host makes the socket that an instance listens on. So its place is known before its process
runs, and a keeper's socket outlives it: its next process listens at the same place.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.errors import EngineError
from penstock.decentralized.messages import Address
from penstock.lab.agents.pipeline.operators import Pipeline
from penstock.lab.agents.pipeline.process import BACKLOG, MOST_LINE, address_of, lines_of, tell
from penstock.lab.agents.pipeline.setup import Setup
from penstock.lab.agents.transport.wire import Place, read_place

MOST_LIVES = 10  # processes that a keeper may have; one that always crashes has a fault
PROCESS = "penstock.lab.agents.pipeline.process"


@dataclass(slots=True, kw_only=True)
class _Child:
    setup: Setup
    process: asyncio.subprocess.Process
    listening: socket.socket | None  # kept for a keeper

    def note(self, what: Mapping[str, Any]) -> None:
        """Keep of a first view what holds for ever: the keepers next to it."""
        match what:
            case {"begin": [list(succs), list(preds)]}:
                after, before = (
                    tuple(p for p in map(read_place, view) if p[0].keeper)
                    for view in (succs, preds)
                )
                self.setup = replace(self.setup, succs=after, preds=before)

    def order(self, document: Mapping[str, Any]) -> None:
        if self.process.stdin is not None:
            self.process.stdin.write(json.dumps(document).encode() + b"\n")


class Host:
    """All instances on this machine.

    ``listen`` the address they listen at · ``number``, ``hosts`` which of how many hosts this is,
    so that no two give the same serial · ``most`` instances that this machine can hold.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._pipeline = Pipeline.of(document["pipeline"])
        self._secret = bytes.fromhex(document["secret"])
        self._seed: int = document["seed"]
        self._patience: float = document["patience"]
        self._listen: str = document["listen"]
        self._most: int = document["most"]
        self._stride: int = document["hosts"]
        number: int = document["number"]
        self._next = {name: size + number for name, size in self._pipeline.sizes.items()}
        self._children: dict[Address, _Child] = {}
        self._watching: set[asyncio.Task[None]] = set()
        self._ending = False

    async def follow(self, order: Mapping[str, Any]) -> None:
        """Do what the runner says."""
        match order:
            case {"start": list(addresses)}:
                for document in addresses:
                    await self._start(address_of(document))
            case {"order": dict(what), "to": list(document)}:
                child = self._children.get(address_of(document))
                if child is not None:
                    child.note(what)
                    child.order(what)
            case {"kill": list(document)}:
                child = self._children.get(address_of(document))
                if child is not None:
                    child.process.kill()

    async def end(self) -> None:
        """End every process, whatever it is doing; returns when they are gone."""
        self._ending = True
        children = list(self._children.values())
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                child.process.kill()
        await asyncio.gather(*(child.process.wait() for child in children))

    async def _start(self, address: Address, creator: _Child | None = None) -> Place:
        listening = socket.socket()
        try:
            listening.bind((self._listen, 0))
        except OSError as error:
            raise EngineError(
                f"cannot listen at {self._listen}: {error.strerror}; an address of this machine is "
                f"needed"
            ) from None
        listening.listen(BACKLOG)
        setup = Setup(
            address=address,
            place=Place(*listening.getsockname()),
            pipeline=self._pipeline,
            secret=self._secret,
            seed=self._seed,
            creator=None if creator is None else (creator.setup.address, creator.setup.place),
            patience=self._patience,
        )
        await self._launch(setup, listening)
        return setup.place

    async def _launch(self, setup: Setup, listening: socket.socket) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            PROCESS,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[listening.fileno()],
            limit=MOST_LINE,
        )
        keeper = setup.address.keeper and self._pipeline.operator(setup.address.operator)
        child = _Child(setup=setup, process=process, listening=listening if keeper else None)
        self._children[setup.address] = child
        child.order(setup.document(listening.fileno()))
        if not keeper:
            listening.close()  # so that nobody can dial it when its process is gone
        tell(
            {
                "event": "started",
                "from": list(setup.address),
                "place": list(setup.place),
                "life": setup.life,
                "pid": process.pid,
            }
        )
        task = asyncio.create_task(self._watch(child))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    async def _watch(self, child: _Child) -> None:
        """Pass on what a child says, until it ends; start a keeper that crashed again."""
        address, out = child.setup.address, child.process.stdout
        assert out is not None
        while (line := await out.readline()).endswith(b"\n"):  # a killed one may break off
            match json.loads(line):
                case {"spawn": int(count)}:
                    await self._spawn(child, count)
                case said:
                    tell({"from": list(address), "life": child.setup.life, **said})
        code = await child.process.wait()
        tell({"event": "ended", "from": list(address), "life": child.setup.life, "code": code})
        del self._children[address]
        if child.listening is not None:
            if code != 0 and child.setup.life < MOST_LIVES and not self._ending:
                await self._launch(replace(child.setup, life=child.setup.life + 1), child.listening)
            else:
                child.listening.close()

    async def _spawn(self, creator: _Child, count: int) -> None:
        """New instances for one that asks; as many as there is room for."""
        operator, made = creator.setup.address.operator, []
        for _ in range(min(count, self._most - len(self._children))):
            address = Address(operator, self._next[operator])
            self._next[operator] += self._stride
            made.append([*address, *await self._start(address, creator)])
        if len(made) < count:
            tell({"event": "no room", "from": list(creator.setup.address), "asked": count})
        creator.order({"spawned": made})


async def _run() -> None:
    lines = await lines_of(0)
    host = Host(json.loads(await lines.readline()))
    try:
        while line := await lines.readline():
            await host.follow(json.loads(line))
    finally:
        await host.end()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        try:
            asyncio.run(_run())
        except EngineError as problem:
            sys.stderr.write(f"{problem}\n")
            sys.stderr.flush()
    os._exit(0)  # nothing is left to be tidied; a closed pipe must not become an error
