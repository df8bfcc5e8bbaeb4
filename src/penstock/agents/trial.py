"""Trials: every period an instance looks at its own load and decides. [belkhiria19, Alg. 11]"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from penstock.agents.pipeline import Operator
from penstock.agents.worker import Sleep

if TYPE_CHECKING:
    from penstock.agents.agent import Agent

MEASURED = 0.4  # share of a period over which the load is measured, its end
HELD_BACK = 0.5  # share of its window that waits below an instance; with more it does not leave


class Trials:
    """Decides for one instance, by its own load, the number of its siblings and a draw.

    When much of what an instance has sent waits below it, it gets less than there is to do: those
    before it are held back. Its load is no reason to leave then. Nor does the only instance leave
    that its predecessors know; it is one without a keeper, which is gone with its host. The source
    and the sink do not decide.
    """

    def __init__(
        self,
        agent: Agent,
        operator: Operator | None,
        period: float | None,
        chance: random.Random,
        sleep: Sleep,
    ) -> None:
        self._agent = agent
        self._operator = operator
        self._period = period
        self._chance = chance
        self._sleep = sleep
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
        if self._operator is None or self._period is None:
            await asyncio.Event().wait()
            return
        await self._sleep(self._chance.random() * self._period)
        while True:
            await self._sleep(self._period)
            await self.once()

    async def once(self) -> int:
        """One trial; what was decided."""
        agent, operator = self._agent, self._operator
        if operator is None or self._rest or not agent.membership.free:
            return 0
        change = operator.policy.decide(
            agent.meter.rate(), operator.capacity, agent.siblings, self._chance.random()
        )
        if change > 0:
            self._deciding = True
            try:
                return await agent.duplicate(change)
            finally:
                self._deciding = False
        if change < 0 and agent.siblings > 1 and agent.outbox.fill < HELD_BACK:
            agent.leave()
        return change
