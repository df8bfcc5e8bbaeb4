"""Nexmark's events as a Spark data source: format ``penstock-nexmark``.

Rows are made as Arrow batches where they are read, released on the wall clock by a rate pattern;
the same rows can be read again as a batch, so a query over them has a known answer.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from penstock.workloads.nexmark import NexmarkStream, Reading, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "penstock-nexmark"
ROWS_PER_ARROW_BATCH = 32_768


def stream(
    spark: SparkSession,
    events: NexmarkStream,
    table: Table,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """One table as a streaming frame, with these columns or all."""
    reading = Reading(stream=events, table=table, columns=_tuple(columns))
    register(spark)
    return spark.readStream.format(FORMAT).options(**reading.options()).load()


def batch(
    spark: SparkSession,
    events: NexmarkStream,
    table: Table,
    until: float,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The rows of one table that are released until an epoch second, as a batch frame."""
    reading = Reading(stream=events, table=table, columns=_tuple(columns), until=until)
    return read(spark, reading)


def read(spark: SparkSession, reading: Reading) -> DataFrame:
    """What a reading says, as a batch frame."""
    register(spark)
    return spark.read.format(FORMAT).options(**reading.options()).load()


def _tuple(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if columns is None else tuple(columns)


_registered: weakref.WeakSet[SparkSession] = weakref.WeakSet()


def register(spark: SparkSession) -> None:
    """Make the format known to a session; once, since Spark warns about a second time."""
    if spark not in _registered:
        spark.dataSource.register(NexmarkSource)
        _registered.add(spark)


class NexmarkSource(DataSource):
    """Spark's view of one table of a ``NexmarkStream``."""

    @classmethod
    def name(cls) -> str:
        """The name after ``format``."""
        return FORMAT

    @cached_property
    def reading(self) -> Reading:
        """What the options say."""
        return Reading.from_options(self.options)

    def schema(self) -> str:
        """The columns that are asked for."""
        return self.reading.schema.ddl

    def reader(self, schema: Any) -> DataSourceReader:
        """All rows released until the option ``until``."""
        return _BatchReader(self.reading)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """The rows as they are released."""
        return _StreamReader(self.reading)


@dataclass(frozen=True)  # Spark's class has a __dict__ of its own
class _Range(InputPartition):
    first: int
    end: int


class _BatchReader(DataSourceReader):
    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        return _split(0, self.reading.rows, self.reading.stream.partitions)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self.reading, partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.stop_at = math.inf  # epoch seconds; what is released later is never read

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"offset": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.stop_at = time.time()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        rows = self.reading.stream.limit(self.reading.table)
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        released = max(self._released(), start["offset"])
        if isinstance(limit, ReadMaxRows):
            released = min(released, start["offset"] + limit.max_rows)
        return {"offset": released}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"offset": self._released()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return _split(start["offset"], end["offset"], self.reading.stream.partitions)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self.reading, partition)

    def _released(self) -> int:
        now = min(time.time(), self.stop_at)
        return self.reading.stream.released(self.reading.table, now)


def _split(first: int, end: int, parts: int) -> list[_Range]:
    cuts = [first + (end - first) * i // parts for i in range(parts + 1)]
    return [_Range(a, b) for a, b in pairwise(cuts) if b > a]


def _read(reading: Reading, partition: InputPartition) -> Iterator[Any]:
    assert isinstance(partition, _Range)
    batches = _batches(reading, partition)
    return _tuples(batches) if reading.row_by_row else batches


def _batches(reading: Reading, part: _Range) -> Iterator[pa.RecordBatch]:
    for first in range(part.first, part.end, ROWS_PER_ARROW_BATCH):
        end = min(first + ROWS_PER_ARROW_BATCH, part.end)
        yield reading.stream.rows(reading.table, first, end, reading.schema.columns)


def _tuples(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for rows in batches:
        yield from zip(*(column.to_pylist() for column in rows.columns), strict=True)
