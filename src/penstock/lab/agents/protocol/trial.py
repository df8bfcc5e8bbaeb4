"""Trials: every period an instance looks at its own load and decides. [belkhiria19, Alg. 11]"""

from __future__ import annotations

import asyncio
import random
from typing import Protocol

from penstock.decentralized.policy import LocalPolicy

MEASURED = 0.4  # share of a period over which the load is measured, its end
HELD_BACK = 0.5  # share of its window that waits below an instance; with more it does not leave


class Trier(Protocol):
    """An instance that tries."""

    @property
    def free(self) -> bool:
        """Whether it may begin an action."""

    @property
    def may_leave(self) -> bool:
        """Whether a low load is a reason to leave."""

    @property
    def siblings(self) -> int:
        """Instances of its operator, itself among them, as far as it knows."""

    def load(self) -> float | None:
        """Its load as a share of its capacity; ``None`` if it cannot tell: then nothing is done."""

    async def duplicate(self, count: int) -> int:
        """Create siblings; how many it got."""

    def leave(self) -> None:
        """Begin to leave."""


class Trials:
    """Decides for one instance, by its own load, the number of its siblings and a draw.

    The source and the sink do not decide: they have no ``policy``.
    """

    def __init__(
        self,
        trier: Trier,
        policy: LocalPolicy | None,
        period: float | None,
        chance: random.Random,
    ) -> None:
        self._trier = trier
        self._policy = policy
        self._period = period
        self._chance = chance
        self._rest = self._deciding = False

    @property
    def resting(self) -> bool:
        """Whether it decides nothing any more, and has decided nothing that has not begun."""
        return self._rest and not self._deciding

    def rest(self) -> None:
        """Decide nothing any more."""
        self._rest = True

    async def run(self) -> None:
        """Try for ever; the first time after a period and a random part of one."""
        if self._policy is None or self._period is None:
            await asyncio.Event().wait()
            return
        await asyncio.sleep(self._chance.random() * self._period)
        while True:
            await asyncio.sleep(self._period)
            await self.once()

    async def once(self) -> int:
        """One trial; what was decided."""
        trier = self._trier
        if self._policy is None or self._rest or not trier.free:
            return 0
        load = trier.load()
        if load is None:
            return 0
        change = self._policy.decide(load, 1.0, trier.siblings, self._chance.random())
        if change > 0:
            self._deciding = True
            try:
                return await trier.duplicate(change)
            finally:
                self._deciding = False
        if change < 0 and trier.may_leave:
            trier.leave()
        return change
