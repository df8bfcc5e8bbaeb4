"""Log analysis on Spark, fused: a parser whose lines a counter and a matcher read. [russo21, §VII]

Every micro-batch is parsed once; its statuses are counted and its paths and agents matched against
the signatures of attacks. A line is done when both have told the sink.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.lab.sources.logs import stream
from penstock.workloads.logs import PATTERN, SIGNATURES, TimedLogs
from penstock.workloads.pattern import Floats

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PARTS = {"status": 7, "path": 5, "agent": 10, "method": 4, "host": 1}  # groups of PATTERN


@dataclass(slots=True)
class Sink:
    """What has come out; a batch that Spark repeats replaces what it said before."""

    counts: dict[int, Counter[str]] = field(default_factory=dict)
    matches: dict[int, int] = field(default_factory=dict)
    done: dict[int, tuple[float, Floats]] = field(default_factory=dict)  # moment, releases
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, batch: int, counts: Counter[str], matched: int, released: Floats) -> None:
        """A batch whose lines are all counted and matched now."""
        with self.lock:
            self.counts[batch], self.matches[batch] = counts, matched
            self.done[batch] = (time.time(), released)

    def responses(self) -> tuple[Floats, Floats]:
        """When every line came, and the seconds until the sink had it."""
        with self.lock:
            done = [self.done[batch] for batch in sorted(self.done)]
        if not done:
            return np.empty(0), np.empty(0)
        released = np.concatenate([lines for _, lines in done])
        left = np.concatenate([np.full(len(lines), moment) for moment, lines in done])
        return released, left - released

    def total(self) -> Counter[str]:
        """How many lines there are by status."""
        with self.lock:
            return reduce(lambda a, b: a + b, self.counts.values(), Counter())

    @property
    def matched(self) -> int:
        """How many signatures were found."""
        with self.lock:
            return sum(self.matches.values())


def start(
    spark: SparkSession, logs: TimedLogs, sink: Sink, *, folder: Path, name: str = "log-analysis"
) -> StreamingQuery:
    """Start the query, each batch right after the last; its checkpoint is in ``folder``."""

    def put(batch: DataFrame, number: int) -> None:
        parsed = parse(batch).persist()
        try:
            counted = parsed.groupBy("status").count().collect()
            found = match(parsed).toArrow()
        finally:
            parsed.unpersist()
        counts = Counter({row["status"]: row["count"] for row in counted})
        matched = int(np.sum(found.column("matches").to_numpy()))
        sink.put(number, counts, matched, found.column("released").to_numpy())

    writer = (
        stream(spark, logs)
        .writeStream.queryName(name)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(put)
    )
    return writer.start()


def parse(lines: DataFrame) -> DataFrame:
    """The parts of each line that is one."""
    from pyspark.sql import functions as f

    parts = [f.regexp_extract("line", PATTERN, group).alias(n) for n, group in PARTS.items()]
    return lines.select("id", "released", *parts).where(f.col("status") != "")


def match(parsed: DataFrame) -> DataFrame:
    """How many signatures each line has."""
    from pyspark.sql import functions as f

    def has(signature: str) -> Column:
        found: Any = f.col("path").rlike(signature) | f.col("agent").rlike(signature)
        column: Column = found.cast("int")
        return column

    columns = [has(signature) for signature in SIGNATURES]
    return parsed.select("released", reduce(lambda a, b: a + b, columns).alias("matches"))
