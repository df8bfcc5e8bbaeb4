"""Sites, seen by the runner: one host each, and what is told there."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from penstock.core.errors import InputError
from penstock.lab.agents.pipeline.process import MOST_LINE

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
        """From ``ADDRESS`` or ``ADDRESS=COMMAND``."""
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
    """The runner's line to the host of one site."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def order(self, document: Mapping[str, Any]) -> None:
        """Tell the host to do something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document).encode() + b"\n")

    async def listen(self, tell: Tell) -> None:
        """Pass on what the host says, until it ends."""
        assert self._process.stdout is not None
        while (line := await self._process.stdout.readline()).endswith(b"\n"):
            tell(json.loads(line))
        tell({"event": HOST_ENDED})

    async def end(self) -> None:
        """End the site: every process there, then its host."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def opened(
    sites: Sequence[AgentSite],
    setup: Mapping[str, Any],
    tell: Callable[[int, dict[str, Any]], None],
) -> AsyncIterator[list[HostConnection]]:
    """A host at every site, and none afterwards; ``tell`` gets the site's number and what is said.

    Hosts lead sessions of their own, so that Ctrl-C reaches the runner alone.
    """
    posts: list[HostConnection] = []
    tasks: list[asyncio.Task[None]] = []
    try:
        for number, site in enumerate(sites):
            process = await asyncio.create_subprocess_exec(
                *site.prefix,
                sys.executable,
                "-m",
                HOST,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=MOST_LINE,
            )
            post = HostConnection(process)
            posts.append(post)
            own = {"listen": site.address, "number": number, "hosts": len(sites)}
            post.order({**setup, **own})

            def said(document: dict[str, Any], number: int = number) -> None:
                tell(number, document)

            tasks.append(asyncio.create_task(post.listen(said)))
        yield posts
    finally:
        await asyncio.gather(*(post.end() for post in posts))
        await asyncio.gather(*tasks, return_exceptions=True)
