"""The source: the outside world that sends records, on time whatever the pipeline does."""

from __future__ import annotations

import asyncio

from penstock.lab.agents.pipeline.operators import Pipeline
from penstock.lab.agents.pipeline.outbox import Clock, Outbox
from penstock.lab.agents.pipeline.records import emitted
from penstock.lab.agents.pipeline.worker import STEP
from penstock.lab.agents.protocol.trial import Sleep
from penstock.lab.agents.transport.channel import Done, Parcel
from penstock.lab.agents.transport.frames import MOST_RECORDS

TICK = 0.01  # seconds between two looks at what is due


class Source:
    """Emits its share of the pipeline's records as they are due; late ones as soon as it can."""

    def __init__(
        self, pipeline: Pipeline, serial: int, outbox: Outbox, clock: Clock, sleep: Sleep
    ) -> None:
        self._pipeline = pipeline
        self._serial = serial
        self._outbox = outbox
        self._clock = clock
        self._sleep = sleep
        self._go = asyncio.Event()
        self._all_done = asyncio.Event()
        self._most = min(MOST_RECORDS, max(1, round(pipeline.operators[0].capacity * STEP)))
        self.total = (pipeline.records + pipeline.sources - 1 - serial) // pipeline.sources
        self.emitted = 0
        self.done = 0

    @property
    def waiting(self) -> int:
        """Records that were emitted and wait for a receiver: none, they wait unmade."""
        return 0

    @property
    def processed(self) -> int:
        """Records that have reached the sink with all that became of them."""
        return self.done

    @property
    def idle(self) -> bool:
        """Whether all that was emitted is done."""
        return self.done == self.emitted

    def put(self, ids: bytes, done: Done) -> None:
        """Nothing comes to a source; what does is dropped."""
        done()

    def start(self) -> None:
        """Nothing: a source waits for ``go``."""

    def go(self) -> None:
        """The load begins."""
        self._go.set()

    async def run(self) -> None:
        """Emit everything; returns when all of it is done."""
        from penstock.workloads.cosine import Cosine

        p = self._pipeline
        load = Cosine(low=p.low, high=p.high, period=p.seconds)
        await self._go.wait()
        begun = self._clock()
        while self.emitted < self.total:
            late = self._clock() - begun
            due = int(load.offered(late) / p.sources) if late < p.seconds else self.total
            while self.emitted < min(due, self.total):
                await self._outbox.clear()
                after = min(due, self.total, self.emitted + self._most)
                self._emit(after)
            await self._sleep(TICK)
        if self.total:
            await self._all_done.wait()

    def _emit(self, after: int) -> None:
        count = after - self.emitted
        ids = emitted(self.emitted, after, self._serial, self._pipeline.sources)
        self.emitted = after

        def done() -> None:
            self.done += count
            if self.done == self.total:
                self._all_done.set()

        self._outbox.put(Parcel(ids=ids, done=done))
