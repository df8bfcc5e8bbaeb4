"""An operator's work: records in, as long as its capacity says, records out."""

from __future__ import annotations

import asyncio
from collections import deque

from penstock.lab.agents.pipeline.operators import Operator
from penstock.lab.agents.pipeline.outbox import Clock, Outbox
from penstock.lab.agents.pipeline.records import transformed
from penstock.lab.agents.protocol.trial import Sleep
from penstock.lab.agents.transport.channel import Done, Parcel
from penstock.lab.agents.transport.frames import MOST_RECORDS

STEP = 0.05  # seconds of work at a time, at most


class Meter:
    """Records received per second, over the last ``span`` seconds."""

    def __init__(self, span: float, clock: Clock) -> None:
        self._span = span
        self._clock = clock
        self._begun = clock()
        self._noted: deque[tuple[float, int]] = deque()

    def note(self, records: int) -> None:
        """So many came now."""
        self._noted.append((self._clock(), records))
        self._drop()

    def rate(self) -> float:
        """Records/s; 0 when nothing came."""
        self._drop()
        seconds = min(self._span, self._clock() - self._begun)
        return sum(n for _, n in self._noted) / seconds if seconds > 0.0 else 0.0

    def _drop(self) -> None:
        since = self._clock() - self._span
        while self._noted and self._noted[0][0] < since:
            self._noted.popleft()


class Worker:
    """Takes what has come, works on it for n/C seconds, and sends what became of it.

    What came is done when all that became of it is done, so an input is never forgotten before the
    sink has its results. While the outbox is blocked no work begins: that is the back pressure.
    """

    def __init__(self, operator: Operator, outbox: Outbox, clock: Clock, sleep: Sleep) -> None:
        self._operator = operator
        self._outbox = outbox
        self._clock = clock
        self._sleep = sleep
        self._queue: deque[Parcel] = deque()
        self._come = asyncio.Event()
        self._started = asyncio.Event()
        self._most = min(MOST_RECORDS, max(1, round(operator.capacity * STEP)))
        self._at_work = 0
        self.processed = 0

    @property
    def waiting(self) -> int:
        """Records that have come and are not worked on yet."""
        return sum(parcel.records for parcel in self._queue)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to work on or to send."""
        return not self._queue and not self._at_work and self._outbox.empty

    def put(self, ids: bytes, done: Done) -> None:
        """Records have come."""
        self._queue.append(Parcel(ids=ids, done=done))
        self._come.set()

    def start(self) -> None:
        """From now on it works; before, it only stores."""
        self._started.set()

    async def run(self) -> None:
        """Work for ever."""
        await self._started.wait()
        free = self._clock()
        while True:
            if not self._queue:
                self._come.clear()
                await self._come.wait()
                free = max(free, self._clock())
            if not self._outbox.empty:
                await self._outbox.clear()
                free = max(free, self._clock())
            taken = self._take()
            free += self._at_work / self._operator.capacity
            await self._sleep(free - self._clock())
            self._finish(taken)

    def _take(self) -> list[Parcel]:
        taken = [self._queue.popleft()]
        self._at_work = taken[0].records
        while self._queue and self._at_work + self._queue[0].records <= self._most:
            taken.append(self._queue.popleft())
            self._at_work += taken[-1].records
        return taken

    def _finish(self, taken: list[Parcel]) -> None:
        ids = b"".join(parcel.ids for parcel in taken)
        out = transformed(ids, self._operator)
        self.processed += self._at_work
        self._at_work = 0
        step = 8 * min(MOST_RECORDS, max(1, round(self._most * self._operator.selectivity)))
        parts = [out[at : at + step] for at in range(0, len(out), step)]
        done = _after(len(parts), taken)
        for part in parts:
            self._outbox.put(Parcel(ids=part, done=done))


def _after(parts: int, taken: list[Parcel]) -> Done:
    """What to call when each of the parts is done: then so are the inputs."""
    left = parts

    def done() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            for parcel in taken:
                parcel.done()

    if not parts:
        done()
    return done
