"""The process of one agent: ``python -m penstock.lab.agents.executors.process``, started by a host.

As that of ``penstock.lab.agents.pipeline.process``: a set-up and orders come on standard input,
what it tells goes to standard output, and the end of standard input is its end.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os

from penstock.lab.agents.executors.account import account_of
from penstock.lab.agents.executors.agent import ExecutorAgent
from penstock.lab.agents.executors.driver import WiredDriver
from penstock.lab.agents.executors.load import LoadMeter
from penstock.lab.agents.executors.setup import Setup
from penstock.lab.agents.pipeline.process import (
    ORPHANED,
    REPORT_SECONDS,
    dialler,
    ended,
    lines_of,
    lived,
    tell,
)
from penstock.lab.agents.transport.wire import read_place
from penstock.spark.split.wire import Address


async def _run() -> None:
    lines = await lines_of(0)
    setup, listening = Setup.of(json.loads(await lines.readline()))
    agent = ExecutorAgent(
        setup,
        meter=LoadMeter(
            account_of(setup.account), setup.ways.window, asyncio.get_running_loop().time
        ),
        driver=WiredDriver(address=Address.parse(setup.driver), key=setup.key),
        dial=dialler(setup.place),
        expect=lambda: tell({"expect": 1}),
        tell=tell,
    )
    why = await lived(agent, listening, _orders(agent, lines), _reports(agent))
    tell({"report": agent.report()})
    ended(why)


async def _orders(agent: ExecutorAgent, lines: asyncio.StreamReader) -> None:
    while line := await lines.readline():
        match json.loads(line):
            case {"came": list(places), "asked": bool(asked)}:
                agent.came(dict(map(read_place, places)), asked=asked)
            case {"rest": _}:
                agent.rest()
                tell({"report": agent.report()})
    os._exit(ORPHANED)  # the host is gone


async def _reports(agent: ExecutorAgent) -> None:
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        tell({"report": agent.report()})


if __name__ == "__main__":
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # a peer that is gone is no surprise
    asyncio.run(_run())
