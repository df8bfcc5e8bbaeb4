"""What an instance does with records: an operator's work, the source, or the sink."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from penstock.core.errors import unknown
from penstock.decentralized.messages import Address
from penstock.lab.agents.pipeline.operators import SINK, SOURCE, Operator, Pipeline
from penstock.lab.agents.pipeline.outbox import Clock, Outbox
from penstock.lab.agents.pipeline.records import Seen, audit, emitted, transformed
from penstock.lab.agents.transport.channel import Done, RecordBatch
from penstock.lab.agents.transport.frames import MOST_RECORDS


class Stage(Protocol):
    """Records come to it; it works when it has been started."""

    @property
    def waiting(self) -> int:
        """Records that wait for it."""

    @property
    def processed(self) -> int:
        """Records that it is through with."""

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do."""

    def put(self, ids: bytes, done: Done) -> None:
        """Records have come."""

    def start(self) -> None:
        """Let it work."""

    async def run(self) -> None:
        """Work until it has nothing more to do, or for ever."""


def made_stage(address: Address, pipeline: Pipeline, outbox: Outbox, clock: Clock) -> Stage:
    """What the instance at an address does."""
    if address.operator == SOURCE:
        return Source(pipeline, address.serial, outbox, clock)
    if address.operator == SINK:
        return Sink(pipeline)
    operator = pipeline.operator(address.operator)
    if operator is None:
        raise unknown("operator", address.operator, pipeline.names)
    return Worker(operator, outbox, clock)


STEP = 0.05  # seconds of work at a time, at most


class Meter:
    """Records received per second, over the last ``span`` seconds."""

    def __init__(self, span: float, clock: Clock) -> None:
        self._span = span
        self._clock = clock
        self._begun = clock()
        self._noted: deque[tuple[float, int]] = deque()

    def note(self, records: int) -> None:
        """Count records that came now."""
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

    def __init__(self, operator: Operator, outbox: Outbox, clock: Clock) -> None:
        self._operator = operator
        self._outbox = outbox
        self._clock = clock
        self._queue: deque[RecordBatch] = deque()
        self._come = asyncio.Event()
        self._started = asyncio.Event()
        self._most = min(MOST_RECORDS, max(1, round(operator.capacity * STEP)))
        self._at_work = 0
        self.processed = 0

    @property
    def waiting(self) -> int:
        """Records that have come and are not worked on yet."""
        return sum(batch.records for batch in self._queue)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to work on or to send."""
        return not self._queue and not self._at_work and self._outbox.empty

    def put(self, ids: bytes, done: Done) -> None:
        """Records have come."""
        self._queue.append(RecordBatch(ids=ids, done=done))
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
            await asyncio.sleep(free - self._clock())
            self._finish(taken)

    def _take(self) -> list[RecordBatch]:
        taken = [self._queue.popleft()]
        self._at_work = taken[0].records
        while self._queue and self._at_work + self._queue[0].records <= self._most:
            taken.append(self._queue.popleft())
            self._at_work += taken[-1].records
        return taken

    def _finish(self, taken: list[RecordBatch]) -> None:
        ids = b"".join(batch.ids for batch in taken)
        out = transformed(ids, self._operator)
        self.processed += self._at_work
        self._at_work = 0
        step = 8 * min(MOST_RECORDS, max(1, round(self._most * self._operator.selectivity)))
        parts = [out[at : at + step] for at in range(0, len(out), step)]
        done = _after(len(parts), taken)
        for part in parts:
            self._outbox.put(RecordBatch(ids=part, done=done))


def _after(parts: int, taken: list[RecordBatch]) -> Done:
    """What to call when each of the parts is done: then so are the inputs."""
    left = parts

    def done() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            for batch in taken:
                batch.done()

    if not parts:
        done()
    return done


TICK = 0.01  # seconds between two looks at what is due


class Source:
    """Emits its share of the pipeline's records as they are due; late ones as soon as it can."""

    def __init__(self, pipeline: Pipeline, serial: int, outbox: Outbox, clock: Clock) -> None:
        self._pipeline = pipeline
        self._serial = serial
        self._outbox = outbox
        self._clock = clock
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
        """Does nothing: a source waits for ``go``."""

    def go(self) -> None:
        """Begin to emit."""
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
            await asyncio.sleep(TICK)
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

        self._outbox.put(RecordBatch(ids=ids, done=done))


class Sink:
    """Takes a record the first time it comes and drops it when it comes again."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._seen = Seen()

    waiting = 0
    idle = True

    @property
    def processed(self) -> int:
        """Different records that came."""
        return self._seen.distinct

    def put(self, ids: bytes, done: Done) -> None:
        """Records have come."""
        self._seen.add(ids)
        done()

    def start(self) -> None:
        """Does nothing: a sink has nobody to wait for."""

    async def run(self) -> None:
        """Wait: a sink does nothing but take what comes."""
        await asyncio.Event().wait()

    def audit(self, sent: Mapping[int, int]) -> dict[str, int]:
        """What came against what should have."""
        return audit(self._seen, self._pipeline, sent)
