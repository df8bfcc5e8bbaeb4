"""Taxi rides and messages of sensors as a Spark data source: format ``penstock-geo``.

Rows are made as Arrow batches where they are read, released on the wall clock by a rate pattern;
the same rows can be read again as a batch, so a pipeline over them has a known answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from penstock.lab.sources.released import BatchReader, StreamReader, in_batches, register
from penstock.workloads.timed_rows import TimedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "penstock-geo"


def stream(spark: SparkSession, rows: TimedRows) -> DataFrame:
    """Rows as they are released."""
    register(spark, GeoSource)
    return spark.readStream.format(FORMAT).options(**rows.options()).load()


def batch(spark: SparkSession, rows: TimedRows, until: float) -> DataFrame:
    """The rows that are released until an epoch second."""
    register(spark, GeoSource)
    options = replace(rows, until=until).options()
    return spark.read.format(FORMAT).options(**options).load()


class GeoSource(DataSource):
    """Spark's view of ``TimedRows``."""

    @classmethod
    def name(cls) -> str:
        """The name after ``format``."""
        return FORMAT

    @cached_property
    def rows(self) -> TimedRows:
        """What the options say."""
        return TimedRows.from_options(self.options)

    def schema(self) -> str:
        """The columns of the content."""
        return self.rows.content.schema.ddl

    def reader(self, schema: Any) -> DataSourceReader:
        """All rows released until the option ``until``."""
        return BatchReader(_Rows(self.rows))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """The rows as they are released."""
        return StreamReader(_Rows(self.rows))


@dataclass(frozen=True, slots=True)
class _Rows:
    """``TimedRows`` as the readers ask for them."""

    made: TimedRows

    @property
    def partitions(self) -> int:
        return self.made.partitions

    @property
    def limit(self) -> int | None:
        return self.made.max_rows

    @property
    def count(self) -> int:
        until = self.made.until
        return self.made.total if until is None else self.made.released(until)

    def released(self, now: float) -> int:
        return self.made.released(now)

    def read(self, first: int, end: int) -> Iterator[Any]:
        return in_batches(self.made.rows, first, end)
