"""Sites, seen by the runner: one host each, and what is told there."""

from __future__ import annotations

import asyncio
import ipaddress
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from penstock.core.errors import InputError
from penstock.lab.agents.processes.lines import LineProcess

HOST = "penstock.lab.agents.pipeline.host"
HOST_ENDED = "host ended"
END_SECONDS = 5.0
Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSite:
    """A machine: the address that its instances listen at, and the command that leads there.

    >>> AgentSite.of("10.1.0.2=ip netns exec b")
    AgentSite(address='10.1.0.2', prefix=('ip', 'netns', 'exec', 'b'))
    """

    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> AgentSite:
        """The site that ``ADDRESS`` or ``ADDRESS=COMMAND`` names."""
        address, _, command = text.partition("=")
        return cls(address=address.strip(), prefix=tuple(command.split()))

    def __post_init__(self) -> None:
        try:
            ipaddress.IPv4Address(self.address)
        except ValueError:
            raise InputError(
                f"a site must look like ADDRESS or ADDRESS=COMMAND; {self.address!r} is no IPv4 "
                f"address, such as 127.0.0.1"
            ) from None


class HostConnection:
    """The runner's connection to the host of one site."""

    def __init__(self, process: LineProcess) -> None:
        self._process = process

    def order(self, document: Mapping[str, Any]) -> None:
        """Tell the host to do something."""
        self._process.order(document)

    async def listen(self, tell: Tell) -> None:
        """Pass on what the host says, until it ends."""
        async for said in self._process.said():
            tell(said)
        tell({"event": HOST_ENDED})

    async def end(self) -> None:
        """End the site: every process there, then its host."""
        self._process.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def opened(
    sites: Sequence[AgentSite],
    setup: Mapping[str, Any],
    tell: Callable[[int, dict[str, Any]], None],
) -> AsyncIterator[list[HostConnection]]:
    """A host at every site, and none afterwards.

    ``tell`` gets the number of the site and what is said there.
    """
    hosts: list[HostConnection] = []
    tasks: list[asyncio.Task[None]] = []
    try:
        for number, site in enumerate(sites):
            process = await LineProcess.start(*site.prefix, sys.executable, "-m", HOST)
            host = HostConnection(process)
            hosts.append(host)
            own = {"listen": site.address, "number": number, "hosts": len(sites)}
            host.order({**setup, **own})

            def said(document: dict[str, Any], number: int = number) -> None:
                tell(number, document)

            tasks.append(asyncio.create_task(host.listen(said)))
        yield hosts
    finally:
        await asyncio.gather(*(host.end() for host in hosts))
        await asyncio.gather(*tasks, return_exceptions=True)
