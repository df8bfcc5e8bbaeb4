"""Nexmark's events in Kafka: written at the pattern's rate, each once, one topic per table.

::

    with NexmarkProducer(events, bootstrap_servers="127.0.0.1:9092") as producer:
        producer.wait()

Row n of a table is a record of its own, at the place that :mod:`penstock.lab.kafka.records`
gives it. Its value is JSON, its timestamp the moment of its release (milliseconds, cut off). A
producer that starts again goes on where the end offsets say.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from penstock.core.errors import EngineError, InputError
from penstock.lab.clusters.standalone.daemons import tail
from penstock.lab.host import leftovers
from penstock.lab.host.processes import NormalExit, Nursery, terminate
from penstock.lab.kafka.cluster import KafkaCluster
from penstock.lab.kafka.records import encode, end_of
from penstock.lab.kafka.writer import STOP_SECONDS, Board, board
from penstock.workloads.nexmark import NexmarkStream, Reading, Table

PREFIX = "nexmark"
LOOK = 0.1  # seconds between looks at the processes
CAUGHT_UP = 2.0  # seconds behind that a producer in time may be
MOST_PROCESSES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a producer is, over all tables.

    ``written`` events that Kafka has acknowledged, those of an earlier start among them ·
    ``released`` events whose time has come · ``total`` all there will ever be ·
    ``behind_seconds`` since the oldest event that is released and not written was released.
    """

    written: int
    released: int
    total: int
    behind_seconds: float

    @property
    def done(self) -> bool:
        """Whether all are written."""
        return self.written >= self.total


def topic_of(table: Table, prefix: str = PREFIX) -> str:
    """The topic of a table.

    >>> topic_of("bid")
    'nexmark-bid'
    """
    return f"{prefix}-{table}"


class NexmarkProducer:
    """Writes the tables of a stream in processes of its own; they end with this one.

    Topics are ``<prefix>-<table>`` with as many partitions as ``events.partitions``; they are
    made if they do not exist. ``columns`` leaves out columns of some tables. ``extra`` are
    librdkafka's settings for TLS and passwords.
    """

    def __init__(
        self,
        events: NexmarkStream,
        *,
        bootstrap_servers: str,
        prefix: str = PREFIX,
        columns: Mapping[Table, Sequence[str]] | None = None,
        processes: int = 1,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        most = min(events.partitions, MOST_PROCESSES)
        if not 1 <= processes <= most:
            raise InputError(
                f"processes {processes} must be between 1 and {most}: they share the "
                f"{events.partitions} partitions of each topic"
            )
        self.events, self.count, self.prefix = events, processes, prefix
        self.topics = {table: topic_of(table, prefix) for table in events.tables}
        wanted = {table: tuple(c) for table, c in (columns or {}).items()}
        self.readings = [
            Reading(stream=events, table=table, columns=wanted.get(table))
            for table in events.tables
        ]
        self._servers, self._extra = bootstrap_servers, dict(extra or {})
        self._run: leftovers.OwnedRun | None = None
        self._nursery = Nursery()
        self._children: list[subprocess.Popen[bytes]] = []
        self._signals = NormalExit()
        self._board: Board | None = None
        self._before = 0

    def start(self) -> Self:
        """Make the topics, see where to go on, and start the processes."""
        if self._run is not None:
            raise InputError("this producer is running already")
        self._cluster = KafkaCluster(self._servers, extra=self._extra)
        following = {reading.table: self._following(reading) for reading in self.readings}
        self._before = sum(map(sum, following.values()))
        self._run = run = leftovers.open_run(leftovers.cache_folder())
        self._signals.take()
        try:
            file = run.folder / "board"
            file.write_bytes(bytes(16 * self.count))
            self._board = board(file, self.count)
            job = run.folder / "job.json"  # not on the command line: it may hold a password
            job.write_text(json.dumps(self._job(str(file), following)))
            for number in range(self.count):
                self._children.append(self._writer(job, number))
        except BaseException:
            self.stop()
            raise
        return self

    def progress(self) -> Progress:
        """How far it is; raises if one of its processes failed."""
        self._fail_if_one_failed()
        written = self._before + (0 if self._board is None else int(self._board[:, 1].sum()))
        now = time.time()
        total = sum(self.events.total(table) for table in self.events.tables)
        behind = now - _released_at(self.events, written + 1) if written < total else 0.0
        return Progress(
            written=written,
            released=_released(self.events, now),
            total=total,
            behind_seconds=max(behind, 0.0),
        )

    def wait(
        self,
        *,
        within: float | None = None,
        watch: Callable[[Progress], None] = lambda progress: None,
    ) -> Progress:
        """Wait until all is written, then compare the end offsets with what they must be."""
        deadline = None if within is None else time.monotonic() + within
        while any(child.poll() is None for child in self._children):
            watch(progress := self.progress())
            if deadline is not None and time.monotonic() > deadline:
                raise EngineError(
                    f"{progress.written:,} of {progress.total:,} events are written after "
                    f"{within:g} s; the producer is {progress.behind_seconds:.1f} s behind"
                )
            time.sleep(LOOK)
        watch(progress := self.progress())
        if progress.done:
            self._check()
        return progress

    def catch_up(self, *, within: float) -> None:
        """Wait until all that is released is written, but for the last moments."""
        deadline = time.monotonic() + within
        while (progress := self.progress()).behind_seconds > CAUGHT_UP and not progress.done:
            if time.monotonic() > deadline:
                raise EngineError(
                    f"{progress.written:,} of {progress.released:,} events are written after "
                    f"{within:g} s; the producer is {progress.behind_seconds:.1f} s behind"
                )
            time.sleep(LOOK)

    def stop(self) -> None:
        """End the processes in order, whatever they have written; a later start goes on there."""
        run = self._run
        if run is None:
            return
        try:
            for child in self._children:
                child.terminate()
            for child in self._children:
                terminate(child, within=2 * STOP_SECONDS)
        finally:
            self._nursery.close()
            self._board = None
            run.clear()
            self._run = None
            self._signals.restore()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _writer(self, job: Path, number: int) -> subprocess.Popen[bytes]:
        assert self._run is not None
        return self._nursery.start(
            [sys.executable, "-m", "penstock.lab.kafka.writer", str(job), str(number)],
            env=dict(os.environ) | {leftovers.RUN_VARIABLE: self._run.id},
            cwd=job.parent,
            log=job.parent / f"writer-{number}.log",
        )

    def _following(self, reading: Reading) -> list[int]:
        """The next offset of each partition of a table's topic, which is made if needed."""
        topic, count = self.topics[reading.table], self.events.partitions
        self._cluster.create_topic(topic, count)
        ends = self._cluster.settled_offsets(topic)
        if any(ends.values()) and self._cluster.first_value(topic) != _first(reading):
            raise InputError(
                f"topic {topic} holds other events: to go on with it give the same workload, "
                "start and columns; else use another prefix, or delete it"
            )
        self._refuse_surplus(reading.table, ends)
        return [ends[partition] for partition in range(count)]

    def _refuse_surplus(self, table: Table, ends: Mapping[int, int]) -> None:
        total = self.events.total(table)
        for partition, end in ends.items():
            most = end_of(partition, total, self.events.partitions)
            if end > most:
                raise EngineError(
                    f"partition {partition} of topic {self.topics[table]} has {end} records, but "
                    f"there are only {most}: did something else write to it? Delete the topic"
                )

    def _check(self) -> None:
        """Every partition has as many records as it must, and no more."""
        for table, topic in self.topics.items():
            ends = self._cluster.end_offsets(topic)
            self._refuse_surplus(table, ends)
            if (have := sum(ends.values())) != (total := self.events.total(table)):
                raise EngineError(f"topic {topic} has {have:,} of {total:,} records")

    def _job(self, shared: str, following: Mapping[Table, Sequence[int]]) -> dict[str, Any]:
        return {
            "servers": self._servers,
            "extra": self._extra,
            "processes": self.count,
            "board": shared,
            "tables": [
                {
                    "topic": self.topics[reading.table],
                    "reading": reading.options(),
                    "next": following[reading.table],
                }
                for reading in self.readings
            ],
        }

    def _fail_if_one_failed(self) -> None:
        for number, child in enumerate(self._children):
            if self._run is not None and child.poll() not in (None, 0):
                log = self._run.folder / f"writer-{number}.log"
                raise EngineError(f"the producer failed: {tail(log) or 'it was killed'}")


def _first(reading: Reading) -> bytes | None:
    """The value of row 0, which is the first record of partition 0."""
    if reading.rows == 0:
        return None
    rows = reading.stream.rows(reading.table, 0, 1, reading.schema.columns)
    value = encode(rows)[0].as_py()
    assert isinstance(value, bytes)
    return value


def _released(events: NexmarkStream, now: float) -> int:
    return sum(events.released(table, now) for table in events.tables)


def _released_at(events: NexmarkStream, count: int) -> float:
    """The epoch second at which so many events have been released, to the millisecond."""
    moments = range(int(events.seconds * 1000) + 2)
    place = bisect_left(moments, count, key=lambda ms: _released(events, events.start + ms / 1000))
    return events.start + place / 1000
