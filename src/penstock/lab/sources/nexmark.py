"""Nexmark's events as a Spark data source: format ``penstock-nexmark``.

Rows are made as Arrow batches where they are read, released on the wall clock by a rate pattern;
the same rows can be read again as a batch, so a query over them has a known answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from penstock.lab.sources import released
from penstock.lab.sources.released import BatchReader, StreamReader, in_batches
from penstock.workloads.nexmark import NexmarkStream, Reading, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "penstock-nexmark"


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


def register(spark: SparkSession) -> None:
    """Make the format known to a session."""
    released.register(spark, NexmarkSource)


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
        return BatchReader(_Table(self.reading))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """The rows as they are released."""
        return StreamReader(_Table(self.reading))


@dataclass(frozen=True, slots=True)
class _Table:
    """A ``Reading`` as the readers ask for it."""

    reading: Reading

    @property
    def partitions(self) -> int:
        return self.reading.stream.partitions

    @property
    def limit(self) -> int | None:
        return self.reading.stream.limit(self.reading.table)

    @property
    def count(self) -> int:
        return self.reading.rows

    def released(self, now: float) -> int:
        return self.reading.stream.released(self.reading.table, now)

    def read(self, first: int, end: int) -> Iterator[Any]:
        batches = in_batches(self._rows, first, end)
        return _tuples(batches) if self.reading.row_by_row else batches

    def _rows(self, first: int, end: int) -> pa.RecordBatch:
        reading = self.reading
        return reading.stream.rows(reading.table, first, end, reading.schema.columns)


def _tuples(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for rows in batches:
        yield from zip(*(column.to_pylist() for column in rows.columns), strict=True)
