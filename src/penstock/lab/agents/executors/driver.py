"""What an agent asks its application's driver for: one executor more, or its own to leave."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from penstock.core.errors import EngineError, InputError, PenstockError
from penstock.spark.split.wire import ADD, REMOVE, Address, Document, ask

TRIES = 3  # of a wish to leave that gets no answer; all neighbours know already
PAUSE = 1.0  # seconds between two


class Driver(Protocol):
    """Carries out ±1, or raises with the reason."""

    async def add(self, who: str) -> None:
        """One executor more."""

    async def remove(self, who: str, executor: str) -> None:
        """This very executor leaves when its tasks are done, and is not replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredDriver:
    """A driver at the other end of a socket (``penstock.spark.split.member``).

    ``key`` what both sides know, where others can reach the address.
    """

    address: Address
    key: str | None = None

    async def add(self, who: str) -> None:
        """Ask once: an answer that is lost must not become two executors."""
        await self._ask({"ask": ADD, "who": who})

    async def remove(self, who: str, executor: str) -> None:
        """Ask until there is an answer: asked twice it is done once."""
        for left in reversed(range(TRIES)):
            try:
                await self._ask({"ask": REMOVE, "who": who, "executor": executor})
                return
            except EngineError:
                if not left:
                    raise
                await asyncio.sleep(PAUSE)

    async def _ask(self, question: Document) -> None:
        try:
            await asyncio.to_thread(ask, self.address, question, key=self.key)
        except PenstockError:
            raise
        except Exception as error:  # whatever it is, it is no yes
            raise InputError(f"no wish could be made at {self.address}: {error}") from error
