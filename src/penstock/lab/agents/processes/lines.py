"""Processes that talk in lines of JSON: orders on standard input, what is told on standard output.

The first order is a set-up. So a secret is on no command line and in no environment, and nothing
listens on a port that only a parent should reach. The end of standard input is the end of the
parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

MOST_LINE = 1 << 22


class LineProcess:
    """A child process, seen by its parent.

    It leads a session of its own, so that Ctrl-C reaches the parent alone.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, *command: str, keep: Sequence[int] = ()) -> LineProcess:
        """Run a command; the descriptors to ``keep`` are open in it under the same numbers."""
        return cls(
            await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                pass_fds=keep,
                start_new_session=True,
                limit=MOST_LINE,
            )
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def order(self, document: Mapping[str, Any]) -> None:
        """Tell it to do something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document).encode() + b"\n")

    async def said(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what it tells, until it ends; one that is killed may break off within a line."""
        assert self._process.stdout is not None
        while (line := await self._process.stdout.readline()).endswith(b"\n"):
            yield json.loads(line)

    def close(self) -> None:
        """Give no more orders, upon which it ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """Kill it; nothing happens if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def wait(self) -> int:
        """Its exit code, when it has ended."""
        return await self._process.wait()


def tell(document: Mapping[str, Any]) -> None:
    """One line from the child to its parent."""
    sys.stdout.write(json.dumps(document, separators=(",", ":")) + "\n")
    sys.stdout.flush()


async def orders() -> asyncio.StreamReader:
    """The child's standard input as a stream of lines."""
    reader = asyncio.StreamReader(limit=MOST_LINE)
    pipe = os.fdopen(0, "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    return reader
