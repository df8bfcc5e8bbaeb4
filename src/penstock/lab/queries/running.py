"""How far a running query has come, waiting for it, and stopping it between two batches."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from penstock.batches.progress import watermark_of
from penstock.core.errors import EngineError, InputError
from penstock.lab.kafka.records import complete_rows
from penstock.lab.queries.nexmark_queries import NexmarkQuery
from penstock.workloads.nexmark import NexmarkStream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


MARGIN = 0.001  # seconds; event times are cut to whole microseconds
LOOK = 0.1  # seconds between two looks
STOP_SECONDS = 10.0


def consumed_of(progress: Mapping[str, Any] | None) -> tuple[int, ...]:
    """Rows of each source that batches up to this one have read, in the order of the sources.

    Of Kafka, the first so many rows that are all read; some partitions may be further.
    """
    ends = [source["endOffset"] for source in (progress or {}).get("sources", ())]
    return tuple(0 if not end else _rows(_parsed(end)) for end in ends)


def complete_at(events: NexmarkStream, until: float) -> float:
    """When every event with an event time up to ``until`` has been released (epoch seconds)."""
    return until + events.events.disorder + MARGIN


def caught_up(
    running: StreamingQuery, query: NexmarkQuery, events: NexmarkStream, until: float
) -> bool:
    """Whether the rows that are final at ``until`` (epoch seconds) are all in the result."""
    progress: Any = running.lastProgress
    if query.emits == "at the watermark":
        return (watermark_of(progress) or 0.0) >= until
    wanted = [events.released(table, complete_at(events, until)) for table in query.tables]
    return has_read(running, wanted)


def has_read(running: StreamingQuery, wanted: Sequence[int]) -> bool:
    """Whether a query has read so many rows of each of its sources."""
    consumed = consumed_of(running.lastProgress)
    return len(consumed) == len(wanted) and all(
        have >= want for have, want in zip(consumed, wanted, strict=True)
    )


def wait_until_final(
    running: StreamingQuery,
    query: NexmarkQuery,
    events: NexmarkStream,
    until: float,
    *,
    within: float,
) -> None:
    """Wait until the query has caught up; give up after ``within`` seconds.

    A window closes only when later events move the watermark past its end, so events have to
    go on for a while after ``until``: for the watermark and two triggers.
    """
    await_final(running, lambda: caught_up(running, query, events, until), until, within=within)


def await_final(
    running: StreamingQuery, final: Callable[[], bool], until: float, *, within: float
) -> None:
    """Wait until a query's result is ``final`` at a moment (epoch seconds), but not for ever."""
    deadline = time.monotonic() + within
    while not final():
        fail_if_ended(running)
        if time.monotonic() > deadline:
            raise EngineError(
                f"query {running.name} is not final after {within:.0f} s: "
                f"{_behind(running, until)}. Try a lower rate, or more executors"
            )
        time.sleep(LOOK)


def wait_until_ready(running: StreamingQuery) -> None:
    """Wait until a query that was started has opened its sources; each starts a Python process."""
    while running.isActive and running.status["message"].startswith("Initializing"):
        time.sleep(LOOK)
    fail_if_ended(running)


def fail_if_ended(running: StreamingQuery) -> None:
    """Raise with the reason if a query that should go on has ended."""
    if not running.isActive:
        problem = str(running.exception() or "it was stopped").strip().splitlines()[0]
        raise EngineError(f"query {running.name} ended before it was done: {problem}")


def stop(running: StreamingQuery, *, within: float = STOP_SECONDS) -> None:
    """Stop between two batches where that is possible: an aborted one prints a stack trace.

    Waits ``within`` seconds for such a moment; a query that is behind has hardly any. The result
    is exact either way.
    """
    deadline = time.monotonic() + within
    while running.isActive and time.monotonic() < deadline:
        if not running.status["isTriggerActive"]:
            break
        time.sleep(LOOK)
    running.stop()


def _parsed(offset: Any) -> Any:
    return json.loads(offset) if isinstance(offset, str) else offset


def _rows(offset: Mapping[str, Any]) -> int:
    """Rows of an offset: ``{"offset": n}`` of ours, ``{topic: {partition: n}}`` of Kafka."""
    if "offset" in offset:
        return int(offset["offset"])
    (partitions,) = offset.values()
    return complete_rows({int(partition): int(end) for partition, end in partitions.items()})


def _behind(running: StreamingQuery, until: float) -> str:
    progress: Any = running.lastProgress
    if progress is None:
        return "it has finished no batch"
    watermark = watermark_of(progress)
    if watermark is not None and watermark < until:
        return f"its watermark is {until - watermark:.1f} s short"
    return f"it has read {', '.join(f'{n:,}' for n in consumed_of(progress))} events"


Sink = Literal["parquet", "noop"]
TRIES = 5
SLOW = "Python worker failed to connect back"  # Spark's words


def check_trigger(trigger: float) -> None:
    """Refuse what is no time between batches."""
    if not trigger >= 0:
        raise InputError(f"trigger = {trigger} must be ≥ 0 seconds; 0 starts a batch at once")


def start_query(
    result: DataFrame, *, name: str, folder: Path, trigger: float, sink: Sink
) -> StreamingQuery:
    """Start a query with a batch every ``trigger`` seconds; 0 starts each after the last.

    Its checkpoint is in ``folder/checkpoint``. Its result goes to Parquet files in
    ``folder/result``, each row exactly once, also when executors come and go or the query is
    started again on the same folder; ``sink="noop"`` throws it away, to measure the query.
    Returns when the query has opened its sources; raises if it cannot.
    """
    writer = (
        result.writeStream.queryName(name)
        .outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime=f"{round(trigger * 1e3)} milliseconds")
    )
    if sink == "parquet":
        writer = writer.option("path", str(folder / "result"))
    return _started(writer.format(sink))


def result_of(folder: Path) -> Path:
    """Where the rows of a query are that was started on a folder."""
    result = folder / "result"
    if not result.is_dir():
        raise InputError(
            f'no result in {result}: was the query started on this folder, with sink="parquet"?'
        )
    return result


def _started(writer: DataStreamWriter) -> StreamingQuery:
    """Try again on a busy machine: Spark gives a source's Python process 10 s to come up."""
    for left in reversed(range(TRIES)):
        running = writer.start()
        try:
            wait_until_ready(running)
            break
        except EngineError as error:
            if not left or SLOW not in str(error):
                raise
    return running
