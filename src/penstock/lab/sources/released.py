"""Spark's readers of rows that are released on the wall clock: what the sources share.

Rows have numbers from 0 on; an offset ``{"offset": n}`` is the first n. So the backlog of a query
is ``latestOffset`` − ``endOffset`` in its progress, and a range that is read again, by whatever
task, has the same rows.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_PER_ARROW_BATCH = 32_768


class Released(Protocol):
    """Rows by number, and when they are released."""

    @property
    def partitions(self) -> int:
        """Tasks that a micro-batch is cut into."""
        ...

    @property
    def limit(self) -> int | None:
        """Most rows that a micro-batch takes; ``None``: all that wait."""
        ...

    @property
    def count(self) -> int:
        """How many rows a batch has."""
        ...

    def released(self, now: float) -> int:
        """Rows released until an epoch second."""
        ...

    def read(self, first: int, end: int) -> Iterator[Any]:
        """Rows ``first`` to ``end`` − 1 as Spark takes them: Arrow batches, or tuples."""
        ...


def in_batches(
    rows: Callable[[int, int], pa.RecordBatch], first: int, end: int
) -> Iterator[pa.RecordBatch]:
    """A range of rows as Arrow batches that are not too large."""
    for begin in range(first, end, ROWS_PER_ARROW_BATCH):
        yield rows(begin, min(begin + ROWS_PER_ARROW_BATCH, end))


_registered: weakref.WeakKeyDictionary[SparkSession, set[str]] = weakref.WeakKeyDictionary()


def register(spark: SparkSession, source: type[DataSource]) -> None:
    """Make a format known to a session; once, since Spark warns about a second time."""
    known = _registered.setdefault(spark, set())
    if source.name() not in known:
        spark.dataSource.register(source)
        known.add(source.name())


@dataclass(frozen=True)  # Spark's class has a __dict__ of its own
class _Range(InputPartition):
    first: int
    end: int


class BatchReader(DataSourceReader):
    """All rows at once."""

    def __init__(self, rows: Released) -> None:
        self.rows = rows

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of rows of about the same length."""
        return _split(0, self.rows.count, self.rows.partitions)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one of them."""
        assert isinstance(partition, _Range)
        return self.rows.read(partition.first, partition.end)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The rows as they are released."""

    def __init__(self, rows: Released) -> None:
        self.rows = rows
        self.stop_at = math.inf  # epoch seconds; what is released later is never read

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's names)
        """The offset of a query that has read nothing yet."""
        return {"offset": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read what is there by now."""
        self.stop_at = time.time()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The most rows that a micro-batch may take."""
        limit = self.rows.limit
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Where the next micro-batch ends."""
        released = max(self._released(), start["offset"])
        if isinstance(limit, ReadMaxRows):
            released = min(released, start["offset"] + limit.max_rows)
        return {"offset": released}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """All that could be read."""
        return {"offset": self._released()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Equal ranges of a micro-batch."""
        return _split(start["offset"], end["offset"], self.rows.partitions)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one of them."""
        assert isinstance(partition, _Range)
        return self.rows.read(partition.first, partition.end)

    def _released(self) -> int:
        return self.rows.released(min(time.time(), self.stop_at))


def _split(first: int, end: int, parts: int) -> list[_Range]:
    cuts = [first + (end - first) * i // parts for i in range(parts + 1)]
    return [_Range(a, b) for a, b in pairwise(cuts) if b > a]
