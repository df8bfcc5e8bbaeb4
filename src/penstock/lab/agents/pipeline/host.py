"""The host of the instances at one site: does what the runner and its instances ask for.

``python -m penstock.lab.agents.pipeline.host``, started by the runner, at another site with
whatever command leads there. The first line on standard input is its set-up; further lines are
orders; the end of standard input is the end of the run, and of every process here. An instance asks
its host for new ones over its own standard output, so a host listens on no port.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.core.errors import EngineError
from penstock.decentralized.messages import Address
from penstock.lab.agents.pipeline.agent import InstanceSetup
from penstock.lab.agents.pipeline.operators import Pipeline
from penstock.lab.agents.processes.host import AgentHost, AgentProcess
from penstock.lab.agents.processes.lines import orders, tell
from penstock.lab.agents.protocol.setup import AgentSetup
from penstock.lab.agents.transport.wire import Place, read_address, read_place

MOST_LIVES = 10  # processes that a keeper may have; one that always crashes has a fault
PROCESS = "penstock.lab.agents.pipeline.agent"


class InstanceHost:
    """All instances on this machine.

    What the runner says of it: ``listen`` the address they listen at · ``number``, ``hosts`` which
    of how many hosts this is, so that no two give the same serial · ``most`` instances that this
    machine can hold.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._pipeline = Pipeline.of(document["pipeline"])
        self._secret = bytes.fromhex(document["secret"])
        self._seed: int = document["seed"]
        self._patience: float = document["patience"]
        self._most: int = document["most"]
        self._stride: int = document["hosts"]
        number: int = document["number"]
        self._next = {name: size + number for name, size in self._pipeline.sizes.items()}
        self._setups: dict[Address, InstanceSetup] = {}
        self._keepers: dict[Address, socket.socket] = {}
        self._host = AgentHost(
            PROCESS, listen=document["listen"], heard=self._heard, ended=self._ended
        )

    async def follow(self, order: Mapping[str, Any]) -> None:
        """Do what the runner says."""
        match order:
            case {"start": list(addresses)}:
                for document in addresses:
                    await self._create(read_address(document))
            case {"order": dict(what), "to": list(document)}:
                address = read_address(document)
                if address in self._host.living:
                    self._remember_keepers(address, what)
                    self._host.living[address].order(what)
            case {"kill": list(document)}:
                self._host.kill(read_address(document))

    async def end(self) -> None:
        """End every process, whatever it is doing; returns when they are gone."""
        await self._host.end()

    def _remember_keepers(self, address: Address, order: Mapping[str, Any]) -> None:
        """Keep of a first view what holds for ever: the keepers next to an instance."""
        match order:
            case {"begin": [list(succs), list(preds)]}:
                after, before = (
                    tuple(p for p in map(read_place, view) if p[0].keeper)
                    for view in (succs, preds)
                )
                setup = self._setups[address]
                self._setups[address] = replace(
                    setup, me=replace(setup.me, succs=after, preds=before)
                )

    async def _create(self, address: Address, creator: AgentSetup | None = None) -> Place:
        listening = self._host.socket()
        me = AgentSetup(
            address=address,
            place=Place(*listening.getsockname()),
            secret=self._secret,
            creator=None if creator is None else (creator.address, creator.place),
            patience=self._patience,
        )
        if address.keeper and self._pipeline.operator(address.operator):
            self._keepers[address] = listening
        await self._start(InstanceSetup(me=me, pipeline=self._pipeline, seed=self._seed), listening)
        return me.place

    async def _start(self, setup: InstanceSetup, listening: socket.socket) -> None:
        me = setup.me
        self._setups[me.address] = setup
        started = await self._host.start(setup, listening, keep=me.address in self._keepers)
        tell(
            {
                "event": "started",
                "from": list(me.address),
                "place": list(me.place),
                "life": me.life,
                "pid": started.process.pid,
            }
        )

    async def _heard(self, agent: AgentProcess, said: dict[str, Any]) -> None:
        """Pass on what an instance says, or give it new ones."""
        match said:
            case {"spawn": int(count)}:
                await self._spawn(agent, count)
            case _:
                tell({"from": list(agent.me.address), "life": agent.me.life, **said})

    async def _ended(self, agent: AgentProcess, code: int) -> None:
        """Start a keeper that crashed again."""
        address, life = agent.me.address, agent.me.life
        tell({"event": "ended", "from": list(address), "life": life, "code": code})
        setup = self._setups.pop(address)
        if address in self._keepers:
            if code != 0 and life < MOST_LIVES and not self._host.ending:
                again = replace(setup, me=replace(setup.me, life=life + 1))
                await self._start(again, self._keepers[address])
            else:
                self._keepers.pop(address).close()

    async def _spawn(self, creator: AgentProcess, count: int) -> None:
        """New instances for one that asks; as many as there is room for."""
        operator, made = creator.me.address.operator, []
        for _ in range(min(count, self._most - len(self._host.living))):
            address = Address(operator, self._next[operator])
            self._next[operator] += self._stride
            made.append([*address, *await self._create(address, creator.me)])
        if len(made) < count:
            tell({"event": "no room", "from": list(creator.me.address), "asked": count})
        creator.order({"spawned": made})


async def _run() -> None:
    lines = await orders()
    host = InstanceHost(json.loads(await lines.readline()))
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
