"""A deterministic event source: every row is a pure function of its offset.

Events are released on the wall clock by a rate pattern, so a running query sees the load rise
and fall; the same rows can be read again in a batch, so its result has a known answer. No
broker is needed. Rows are made as Arrow batches (about a million rows/s per slot).
"""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from penstock.core.errors import InputError, unknown
from penstock.workloads.patterns import Pattern, create, describe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "penstock-events"
SCHEMA = "offset bigint, key bigint, value double, time timestamp"
GRID = 0.05  # seconds between the points at which event times are exact
ROWS_PER_ARROW_BATCH = 65_536

_ARROW = pa.schema(
    [
        ("offset", pa.int64()),
        ("key", pa.int64()),
        ("value", pa.float64()),
        ("time", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """Which events, and when they are released.

    ``start`` the wall-clock second at which the pattern begins · ``seconds`` how long it lasts ·
    ``keys`` number of different keys · ``partitions`` tasks per micro-batch · ``max_rows`` most
    rows a micro-batch may take (``None``: all that wait).
    """

    pattern: Pattern
    start: float
    seconds: float
    seed: int = 0
    keys: int = 1000
    partitions: int = 8
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InputError(f"seconds {self.seconds} must be above 0")
        for name in ("keys", "partitions", "max_rows"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} {value} must be ≥ 1")

    @property
    def total(self) -> int:
        """All events there will ever be."""
        return int(self.pattern.offered(self.seconds))

    def released(self, now: float) -> int:
        """Events released until a moment of the wall clock."""
        elapsed = min(max(now - self.start, 0.0), self.seconds)
        return int(self.pattern.offered(elapsed))

    def rows(self, first: int, end: int) -> pa.RecordBatch:
        """The events with offsets ``first`` to ``end`` − 1.

        ``time`` is when the event was offered: the inverse of the pattern's integral, linear
        between points of a fixed grid, so that it does not depend on how a range is cut.
        """
        offsets = np.arange(first, end, dtype=np.int64)
        salt = np.uint64(self.seed * 0x9E3779B97F4A7C15 % 2**64)
        mixed = _mix(offsets.astype(np.uint64) + salt)
        keys = (mixed % np.uint64(self.keys)).astype(np.int64)
        values = (mixed >> np.uint64(11)).astype(np.float64) / float(1 << 53)
        micros = ((self.start + self._offered_at(offsets)) * 1e6).astype(np.int64)
        arrays = [pa.array(a) for a in (offsets, keys, values)]
        arrays.append(pa.array(micros).cast(_ARROW.field("time").type))
        return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)

    def _offered_at(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        if not len(offsets):
            return np.zeros(0)
        low = self._cell(float(offsets[0]))
        high = self._cell(float(offsets[-1])) + 1
        grid = np.arange(low, high + 1) * GRID
        offered = np.array([self.pattern.offered(float(t)) for t in grid])
        times: npt.NDArray[np.float64] = np.interp(offsets, offered, grid)
        return times

    def _cell(self, offset: float) -> int:
        """The last grid point at which no more than ``offset`` events were offered."""
        low, high = 0, int(self.seconds / GRID) + 2
        while high - low > 1:
            middle = (low + high) // 2
            if self.pattern.offered(middle * GRID) <= offset:
                low = middle
            else:
                high = middle
        return low

    def options(self) -> dict[str, str]:
        """As options of the data source."""
        values = {
            "pattern": json.dumps(describe(self.pattern)),
            "start": repr(self.start),
            "seconds": repr(self.seconds),
            "seed": str(self.seed),
            "keys": str(self.keys),
            "partitions": str(self.partitions),
        }
        if self.max_rows is not None:
            values["max_rows"] = str(self.max_rows)
        return values

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> EventStream:
        """The stream that a data source's options describe; unknown options are refused."""
        known = {"pattern", "start", "seconds", "seed", "keys", "partitions", "max_rows", "until"}
        for key in options:
            if key.lower() not in known and key.lower() != "path":
                raise unknown(f"option of {FORMAT}", key, known)
        try:
            pattern = json.loads(options.get("pattern", '{"name": "constant"}'))
            rows = options.get("max_rows")
            return cls(
                pattern=create(pattern.pop("name"), pattern),
                start=float(options.get("start", time.time())),
                seconds=float(options.get("seconds", 3600.0)),
                seed=int(options.get("seed", 0)),
                keys=int(options.get("keys", 1000)),
                partitions=int(options.get("partitions", 8)),
                max_rows=None if rows is None else int(rows),
            )
        except (KeyError, AttributeError, json.JSONDecodeError) as error:
            text = options.get("pattern")
            raise InputError(f"pattern {text!r} must be JSON with a name") from error


def stream(spark: SparkSession, events: EventStream) -> DataFrame:
    """The events as a streaming frame with columns offset, key, value, time."""
    _register(spark)
    return spark.readStream.format(FORMAT).options(**events.options()).load()


def batch(spark: SparkSession, events: EventStream, until: int) -> DataFrame:
    """The first ``until`` of the same events as a batch frame."""
    _register(spark)
    options = {**events.options(), "until": str(until)}
    return spark.read.format(FORMAT).options(**options).load()


_registered: weakref.WeakSet[SparkSession] = weakref.WeakSet()


def _register(spark: SparkSession) -> None:
    """Once per session; Spark warns about a second time."""
    if spark not in _registered:
        spark.dataSource.register(EventSource)
        _registered.add(spark)


class EventSource(DataSource):
    """Spark's view of an ``EventStream``: format ``penstock-events``."""

    @classmethod
    def name(cls) -> str:
        """The name after ``format``."""
        return FORMAT

    def schema(self) -> str:
        """The columns."""
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        """All events below the option ``until``, as a batch."""
        events = EventStream.from_options(self.options)
        return _BatchReader(events, int(self.options.get("until", events.total)))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """The events as they are released."""
        return _StreamReader(EventStream.from_options(self.options))


class _Range(InputPartition):
    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end


class _BatchReader(DataSourceReader):
    def __init__(self, events: EventStream, until: int) -> None:
        self.events, self.until = events, until

    def partitions(self) -> Sequence[InputPartition]:
        return _split(0, self.until, self.events.partitions)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self.events, partition)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, events: EventStream) -> None:
        self.events = events

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"offset": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        rows = self.events.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        released = max(self.events.released(time.time()), start["offset"])
        if isinstance(limit, ReadMaxRows):
            released = min(released, start["offset"] + limit.max_rows)
        return {"offset": released}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"offset": self.events.released(time.time())}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return _split(start["offset"], end["offset"], self.events.partitions)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self.events, partition)


def _split(first: int, end: int, parts: int) -> list[_Range]:
    cuts = [first + (end - first) * i // parts for i in range(parts + 1)]
    return [_Range(a, b) for a, b in pairwise(cuts) if b > a]


def _read(events: EventStream, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, _Range)
    for first in range(partition.first, partition.end, ROWS_PER_ARROW_BATCH):
        yield events.rows(first, min(first + ROWS_PER_ARROW_BATCH, partition.end))


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """splitmix64's finaliser: neighbouring offsets give unrelated values. [steele14]"""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
