"""Log lines as a Spark data source: format ``penstock-logs``, released on the wall clock."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.lab.sources.released import register
from penstock.workloads.logs import TimedLogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "penstock-logs"
SCHEMA = "id BIGINT, released DOUBLE, line STRING"


def stream(spark: SparkSession, logs: TimedLogs) -> DataFrame:
    """The lines as they are released: number, epoch seconds, text."""
    register(spark, LogSource)
    return spark.readStream.format(FORMAT).options(**logs.options()).load()


class LogSource(DataSource):
    """Spark's view of ``TimedLogs``."""

    @classmethod
    def name(cls) -> str:
        """The name after ``format``."""
        return FORMAT

    @cached_property
    def logs(self) -> TimedLogs:
        """What the options say."""
        return TimedLogs.from_options(self.options)

    def schema(self) -> str:
        """Number, moment of release, text."""
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """The lines as they are released."""
        return _Reader(self.logs)


@dataclass(frozen=True)  # Spark's class has a __dict__ of its own
class _Lines(InputPartition):
    first: int
    end: int


class _Reader(DataSourceStreamReader):
    def __init__(self, logs: TimedLogs) -> None:
        self.logs = logs

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"offset": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        return {"offset": self.logs.released(time.time())}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [_Lines(start["offset"], end["offset"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Lines)
        first, end = partition.first, partition.end
        yield pa.RecordBatch.from_pydict(
            {
                "id": pa.array(range(first, end), pa.int64()),
                "released": pa.array(self.logs.release_times(first, end), pa.float64()),
                "line": pa.array(self.logs.texts(first, end), pa.string()),
            }
        )
