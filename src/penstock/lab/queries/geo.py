"""The geo jobs as Spark streaming queries with a known answer: start one, compare its result.

::

    job = create("id-id", JobSettings(scale=20))
    events = job.events(start=time.time(), seconds=600, partitions=8)
    running = start(spark, job, events, folder=folder, trigger=2)
    wait_until_final(running, events, until, within=60)
    stop(running)
    print(compare(spark, job, events, folder=folder, until=until))
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from penstock.lab.queries.comparison import Comparison, compare_rows
from penstock.lab.queries.geo_jobs import JOBS, GeoJob, JobSettings, create
from penstock.lab.queries.running import (
    MARGIN,
    Sink,
    await_final,
    check_trigger,
    has_read,
    result_of,
    start_query,
    stop,
)
from penstock.lab.sources.geo import batch, stream
from penstock.workloads.timed_rows import TimedRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = [
    "JOBS",
    "STATE",
    "Comparison",
    "GeoJob",
    "JobSettings",
    "compare",
    "create",
    "start",
    "stop",
    "wait_until_final",
]


STATE = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming."
    "state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.join.stateFormatVersion": "3",
}
"""Settings of a session under which the joins' state costs least: a store per partition, not four,
that writes down only what has changed. They hold for queries that are started afterwards."""


def start(
    spark: SparkSession,
    job: GeoJob,
    events: Sequence[TimedRows],
    *,
    folder: Path,
    trigger: float,
    name: str | None = None,
    sink: Sink = "parquet",
) -> StreamingQuery:
    """Start a job with a batch every ``trigger`` seconds; see ``running.start_query``."""
    check_trigger(trigger)
    result = job.build([stream(spark, rows) for rows in events])
    return start_query(result, name=name or job.name, folder=folder, trigger=trigger, sink=sink)


def wait_until_final(
    running: StreamingQuery, events: Sequence[TimedRows], until: float, *, within: float
) -> None:
    """Wait until all that happened before ``until`` (epoch seconds) is in the result.

    A row comes out as soon as the last of its records is read, so no later ones are needed.
    """
    wanted = [rows.released(until + MARGIN) for rows in events]
    await_final(running, lambda: has_read(running, wanted), until, within=within)


def compare(
    spark: SparkSession,
    job: GeoJob,
    events: Sequence[TimedRows],
    *,
    folder: Path,
    until: float,
) -> Comparison:
    """The streamed rows beside a batch run over the same events, row by row as multisets.

    Compared are the rows whose events all happened before ``until`` (epoch seconds); no later
    event can add, change or remove one of them. Wait for them first (:func:`wait_until_final`).
    """
    result = result_of(folder)
    moment = until + MARGIN
    expected = job.build([batch(spark, rows, moment) for rows in events])
    streamed = spark.read.schema(expected.schema).parquet(str(result))
    final = F.col("time") < F.timestamp_micros(F.lit(round(until * 1e6)))
    covered = sum(rows.released(moment) for rows in events)
    return compare_rows(streamed.where(final), expected.where(final), covered)
