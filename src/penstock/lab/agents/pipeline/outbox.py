"""Records on their way out: shared out evenly, and kept back while receivers have enough."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from penstock.lab.agents.transport.channel import RecordBatch
from penstock.lab.agents.transport.link import Link

Clock = Callable[[], float]


class Outbox:
    """Gives batches to receivers in turn; one that has its window full is passed over.

    ``targets`` the links to those that may get records now · ``window`` records that each of so
    many receivers may have that are not done · ``siblings`` how many instances the receivers'
    operator has, which is written on the records · ``turn`` who comes first.
    """

    def __init__(
        self,
        targets: Callable[[], Sequence[Link]],
        window: Callable[[int], float],
        siblings: Callable[[], int],
        clock: Clock,
        turn: int = 0,
    ) -> None:
        self._targets = targets
        self._window = window
        self._siblings = siblings
        self._clock = clock
        self._turn = turn
        self._waiting: deque[RecordBatch] = deque()
        self._clear = asyncio.Event()
        self._clear.set()
        self._blocked_since: float | None = None
        self._blocked = 0.0

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    @property
    def blocked(self) -> float:
        """Seconds so far in which something waited for a receiver."""
        now = 0.0 if self._blocked_since is None else self._clock() - self._blocked_since
        return self._blocked + now

    @property
    def fill(self) -> float:
        """What the receivers have that is not done, as a share of what they may have."""
        links = self._targets()
        room = self._window(len(links)) * len(links)
        return sum(link.out.records for link in links) / room if room else 0.0

    def put(self, batch: RecordBatch) -> None:
        """Send a batch as soon as somebody can take it."""
        self._waiting.append(batch)
        self.flush()

    def put_back(self, batches: Sequence[RecordBatch]) -> None:
        """Send batches whose receiver is gone to others, before all that wait."""
        self._waiting.extendleft(reversed(batches))
        self.flush()

    def flush(self) -> None:
        """Send what can be sent now."""
        while self._waiting and (link := self._next()) is not None:
            link.records(self._waiting.popleft(), self._siblings())
        if not self._waiting:
            self._clear.set()
            if self._blocked_since is not None:
                self._blocked += self._clock() - self._blocked_since
                self._blocked_since = None
        elif self._blocked_since is None:
            self._clear.clear()
            self._blocked_since = self._clock()

    async def clear(self) -> None:
        """Wait until nothing waits."""
        await self._clear.wait()

    def _next(self) -> Link | None:
        links = self._targets()
        window = self._window(len(links))
        for step in range(len(links)):
            link = links[(self._turn + step) % len(links)]
            if link.out.records < window:
                self._turn = (self._turn + step + 1) % len(links)
                return link
        return None
