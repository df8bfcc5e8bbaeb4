"""One process of a producer: it writes the rows of its partitions at their release.

Run by :mod:`penstock.lab.kafka.producer`, never by hand. Process k of K has the partitions whose
number leaves the rest k when divided by K. All of them keep together: none writes an event that is
released more than ``SPREAD`` seconds after one that Kafka has not acknowledged yet. So however
slow the broker or one of the processes is, a reader never finds one partition further ahead of
another, and a watermark that allows for it loses nothing.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock.core.errors import EngineError
from penstock.lab.kafka.cluster import producer
from penstock.lab.kafka.records import encode, end_of, rows_before
from penstock.workloads.nexmark import Reading

if TYPE_CHECKING:
    from confluent_kafka import Producer

SPREAD = 0.5  # seconds of release time that partitions may be apart
TICK = 0.05  # seconds between two looks at the clock
WAIT = 0.005  # seconds between two looks at the other processes
BLOCK = 16_384  # rows made at once
MOST_WAITING = 100_000  # records that Kafka has not acknowledged
STOP_SECONDS = 5.0  # for the last acknowledgements when told to stop
GIVE_UP_MS = 1_800_000  # half an hour without the broker
MICRO = 1_000_000
SETTINGS = {
    "enable.idempotence": True,  # implies acks=all, and that order survives retries
    "enable.gapless.guarantee": True,  # rather stop than leave a record out
    "message.timeout.ms": GIVE_UP_MS,
    "reconnect.backoff.max.ms": 1_000,
    "delivery.report.only.error": True,
    "queue.buffering.max.messages": MOST_WAITING + BLOCK,
    "queue.buffering.max.kbytes": 1 << 20,
    "batch.size": 1_000_000,
    "batch.num.messages": 10_000,
    "linger.ms": 20,
}
Board = npt.NDArray[np.int64]  # per process: written until (µs of release time), records written


def board(file: Path, processes: int) -> Board:
    """What the processes tell each other and their parent, in shared memory."""
    return np.memmap(file, dtype=np.int64, mode="r+", shape=(processes, 2))


class TableWriter:
    """The rows of one table that this process writes, and the next offset of each partition."""

    def __init__(self, topic: str, reading: Reading, following: Mapping[int, int]) -> None:
        self.topic, self.reading = topic, reading
        self.stream, self.table = reading.stream, reading.table
        self.partitions = reading.stream.partitions
        self.next = dict(sorted(following.items()))

    @property
    def first(self) -> int:
        """The first row that is not written."""
        return min(rows_before(p, offset, self.partitions) for p, offset in self.next.items())

    @property
    def begins(self) -> int:
        """When that row is released, or the stream's end (µs since the epoch)."""
        if self.first >= self.stream.total(self.table):
            return round(self.stream.end * MICRO)
        return int(self.stream.release_times(self.table, self.first, self.first + 1)[0])

    def blocks(self, until: int) -> list[tuple[int, int]]:
        """Ranges of rows released until a moment (µs), from a multiple of the partitions on."""
        end = self.stream.released(self.table, until / MICRO)
        first = self.first // self.partitions * self.partitions
        step = max(BLOCK // self.partitions, 1) * self.partitions
        return [(begin, min(begin + step, end)) for begin in range(first, end, step)]

    def send(self, out: Producer, begin: int, end: int) -> int:
        """Hand the rows of a block to the client, those that are written already left out."""
        rows = self.stream.rows(self.table, begin, end, self.reading.schema.columns)
        moments = self.stream.release_times(self.table, begin, end) // 1000
        if len(self.next) < self.partitions:
            mine = np.flatnonzero(np.isin(np.arange(begin, end) % self.partitions, [*self.next]))
            rows, moments = rows.take(mine), moments[mine]
        values, times = encode(rows).to_pylist(), moments.tolist()
        sent, turn, produce = 0, len(self.next), out.produce
        for place, (partition, offset) in enumerate(self.next.items()):
            fresh = slice(place + turn * (offset - begin // self.partitions), None, turn)
            for value, moment in zip(values[fresh], times[fresh], strict=True):
                produce(self.topic, value, partition=partition, timestamp=moment)
            self.next[partition] = max(offset, end_of(partition, end, self.partitions))
            sent += self.next[partition] - offset
        return sent


class Writer:
    """Writes its tables at their release until the end, or until it is told to stop."""

    def __init__(
        self,
        tables: Sequence[TableWriter],
        number: int,
        shared: Board,
        servers: str,
        extra: Any = None,
    ) -> None:
        self.tables, self.number, self.shared = tables, number, shared
        self.stopping = False
        self._failure: str | None = None
        told = {"error_cb": self._trouble, "on_delivery": self._lost}
        self._out = producer(servers, {**SETTINGS, **told}, extra)

    def run(self) -> None:
        """Until all is written, or a signal."""
        end = max(round(table.stream.end * MICRO) for table in self.tables)
        at = min(table.begins for table in self.tables) - 1
        self._tell(at, 0)
        while at < end and not self.stopping:
            now = time.time_ns() // 1000
            together = int(self.shared[:, 0].min()) + round(SPREAD * MICRO)
            until = min(now, together, end)
            if until > at and self._write(until):
                at = until
            elif until <= at:
                time.sleep(WAIT)
            if until == now:
                time.sleep(TICK)

    def _write(self, until: int) -> bool:
        """All rows released until a moment (µs); whether Kafka has acknowledged them."""
        sent = 0
        for table in self.tables:
            for begin, end in table.blocks(until):
                if not self._acknowledged(MOST_WAITING):
                    return False
                sent += table.send(self._out, begin, end)
        if not self._acknowledged(0):
            return False
        self._tell(until, sent)
        return True

    def _acknowledged(self, most: int) -> bool:
        """Wait until no more than so many records wait; False if it had to stop before."""
        deadline = None
        while len(self._out) > most:
            self._out.flush(TICK) if not most else self._out.poll(WAIT)
            if self.stopping:
                deadline = deadline or time.monotonic() + STOP_SECONDS
                if time.monotonic() > deadline:
                    return False
            if self._failure is not None:
                raise EngineError(self._failure)
        return True

    def _tell(self, until: int, sent: int) -> None:
        self.shared[self.number, 1] += sent
        self.shared[self.number, 0] = until

    def _lost(self, error: Any, message: Any) -> None:
        self._failure = (
            f"Kafka did not take a record of {message.topic()}: {error.str()}. What is written is "
            "whole: start the producer again to go on"
        )

    def _trouble(self, error: Any) -> None:
        if error.fatal():
            self._failure = f"the Kafka client gave up: {error.str()}"


def main() -> None:
    """Do the job in the file named first, as the process whose number comes second."""
    job, number = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    count = job["processes"]
    tables = [
        TableWriter(
            each["topic"],
            Reading.from_options(each["reading"]),
            {p: offset for p, offset in enumerate(each["next"]) if p % count == number},
        )
        for each in job["tables"]
    ]
    shared = board(Path(job["board"]), count)
    writer = Writer(tables, number, shared, job["servers"], job["extra"])
    signal.signal(signal.SIGTERM, lambda *_: setattr(writer, "stopping", True))
    try:
        writer.run()
    except EngineError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
