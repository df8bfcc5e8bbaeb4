"""Nexmark as Spark streaming queries with a known answer: start one, compare its result.

::

    events = NexmarkStream(events=NexmarkEvents(), pattern=..., start=..., seconds=600)
    running = start(spark, QUERIES["q5"], events, Settings(), folder=folder, trigger=2)
    wait_until_final(running, QUERIES["q5"], events, until, within=60)
    stop(running)
    print(compare(spark, QUERIES["q5"], events, Settings(), folder=folder, until=until))
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.batches.progress import watermark_of
from penstock.core.errors import InputError
from penstock.lab.queries.comparison import Comparison, compare_rows
from penstock.lab.queries.nexmark_queries import QUERIES, Frames, NexmarkQuery, Settings
from penstock.lab.queries.running import (
    Sink,
    caught_up,
    check_trigger,
    complete_at,
    result_of,
    start_query,
    stop,
    wait_until_final,
)
from penstock.lab.sources.kafka import KafkaTopics
from penstock.lab.sources.nexmark import batch, stream
from penstock.workloads.nexmark import NexmarkStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = [
    "QUERIES",
    "Comparison",
    "NexmarkQuery",
    "Settings",
    "batch_frames",
    "caught_up",
    "compare",
    "frames",
    "start",
    "stop",
    "wait_until_final",
    "watermark_of",
]


def frames(
    spark: SparkSession,
    query: NexmarkQuery,
    events: NexmarkStream,
    topics: KafkaTopics | None = None,
) -> Frames:
    """The tables that a query reads, as streams: of the embedded source, or from Kafka."""
    if topics is None:
        return {t: stream(spark, events, t, columns) for t, columns in query.tables.items()}
    return {
        table: topics.stream(spark, table, columns, events.limit(table))
        for table, columns in query.tables.items()
    }


def batch_frames(
    spark: SparkSession, query: NexmarkQuery, events: NexmarkStream, until: float
) -> Frames:
    """The rows of those tables that are released until a moment (epoch seconds)."""
    return {
        table: batch(spark, events, table, until, columns)
        for table, columns in query.tables.items()
    }


def start(
    spark: SparkSession,
    query: NexmarkQuery,
    events: NexmarkStream,
    settings: Settings,
    *,
    folder: Path,
    trigger: float,
    name: str | None = None,
    sink: Sink = "parquet",
    topics: KafkaTopics | None = None,
) -> StreamingQuery:
    """Start a query with a batch every ``trigger`` seconds; 0 starts each after the last.

    It reads the embedded source, or ``topics`` in Kafka that a producer writes ``events`` to.

    Its checkpoint is in ``folder/checkpoint``. Its result goes to Parquet files in
    ``folder/result``, each row exactly once, also when executors come and go or the query is
    started again on the same folder; ``sink="noop"`` throws it away, to measure the query.
    Returns when the query has opened its sources; raises if it cannot.
    """
    _check(query, events, settings, 0.0 if topics is None else topics.spread)
    check_trigger(trigger)
    result = query.build(frames(spark, query, events, topics), settings)
    return start_query(result, name=name or query.name, folder=folder, trigger=trigger, sink=sink)


def compare(
    spark: SparkSession,
    query: NexmarkQuery,
    events: NexmarkStream,
    settings: Settings,
    *,
    folder: Path,
    until: float,
) -> Comparison:
    """The streamed rows beside a batch run over the same events, row by row as multisets.

    Compared are the rows that are final at ``until`` (epoch seconds of event time): those of
    Q1 to Q3 whose events all happened before it, and windows and sessions that ended by then.
    No later event can add, change or remove one of them. Both sides are cut the same way, so it
    does not matter how much further the stream has come; that it has come this far is for the
    caller to wait for (:func:`wait_until_final`), else the rest is missing.

    Events are released up to their disorder after they happened, so the batch reads those that
    are released until ``until`` + disorder. A watermark of at least the disorder makes none of
    them late in the stream.
    """
    _check(query, events, settings)
    result = result_of(folder)
    moment = complete_at(events, until)
    expected = query.build(batch_frames(spark, query, events, moment), settings)
    streamed = spark.read.schema(expected.schema).parquet(str(result))
    covered = sum(events.released(table, moment) for table in query.tables)
    final = query.final(until)
    return compare_rows(streamed.where(final), expected.where(final), covered)


def _check(
    query: NexmarkQuery, events: NexmarkStream, settings: Settings, spread: float = 0.0
) -> None:
    if settings.watermark < (least := events.events.disorder + spread):
        between = f" and {spread:g} s between partitions" if spread else ""
        raise InputError(
            f"watermark = {settings.watermark:g} s is below the events' disorder of "
            f"{events.events.disorder:g} s{between}: late events would be dropped. Set it to "
            f"{least:g} or more"
        )
    if absent := [table for table in query.tables if table not in events.tables]:
        raise InputError(
            f"query {query.name} reads {', '.join(query.tables)}, but {', '.join(absent)} is not "
            f"among the events' tables: {', '.join(events.tables)}"
        )
