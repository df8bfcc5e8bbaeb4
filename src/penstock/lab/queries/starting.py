"""Starting a streaming query on a folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.core.errors import EngineError, InputError
from penstock.lab.queries.running import wait_until_ready

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

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
