"""Streaming queries with a known answer: the same transformation as a stream and as a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

WINDOW = 10  # seconds
WATERMARK = 2  # seconds; events come in order, so nothing is ever late


def fingerprint(rounds: int) -> Column:
    """A chain of SHA-256 over an event's offset: honest CPU work in the executor."""
    column = F.col("offset").cast("string")
    for _ in range(rounds):
        column = F.sha2(column, 256)
    return column


def windowed(events: DataFrame, rounds: int = 1) -> DataFrame:
    """Count, sum of offsets and sum of fingerprints of each key's events in 10-second windows.

    The sum of the offsets tells whether the very same events were counted. The fingerprint
    stands for the parsing that real records need: some µs of CPU each. Its first seven hex
    digits are added as a whole number, so the order of addition does not matter.
    """
    seven = F.conv(F.substring(fingerprint(rounds), 1, 7), 16, 10).cast("long")
    return (
        events.withWatermark("time", f"{WATERMARK} seconds")
        .groupBy(F.window("time", f"{WINDOW} seconds").alias("window"), "key")
        .agg(
            F.count("*").alias("events"),
            F.sum("offset").alias("offsets"),
            F.sum(seven).alias("fingerprints"),
        )
        .select(
            F.col("window.start").cast("long").alias("start"),
            "key",
            "events",
            "offsets",
            "fingerprints",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A streaming result beside the batch result over the same events, in events and rows."""

    events: int
    rows: int
    lost: int
    duplicated: int
    different_rows: int

    @property
    def exact(self) -> bool:
        """Whether every row is the same."""
        return not (self.lost or self.duplicated or self.different_rows)

    def __str__(self) -> str:
        return (
            f"{self.events:,} events in {self.rows:,} rows: "
            f"{self.lost:,} lost, {self.duplicated:,} duplicated"
            + (f", {self.different_rows:,} rows differ" if self.different_rows else "")
        )


def compare(
    spark: SparkSession, streamed: DataFrame, expected: DataFrame, until: int
) -> Comparison:
    """Row by row over all windows that end at or before ``until`` (seconds since the epoch).

    Events that a streamed row lacks are lost, events that it has more of (or in a second row of
    the same key) are duplicated.
    """
    on = ["start", "key"]
    whole = F.col("start") + WINDOW <= until
    ours = (
        streamed.where(whole)
        .groupBy(*on)
        .agg(
            F.sum("events").alias("our_events"),
            F.sum("offsets").alias("our_offsets"),
            F.sum("fingerprints").alias("our_fingerprints"),
            F.count("*").alias("copies"),
        )
    )
    both = expected.where(whole).join(ours, on, "full_outer").fillna(0)
    difference = F.col("our_events") - F.col("events")
    same = (
        (F.col("copies") == 1)
        & (F.col("our_events") == F.col("events"))
        & (F.col("our_offsets") == F.col("offsets"))
        & (F.col("our_fingerprints") == F.col("fingerprints"))
    )
    row: Any = both.agg(
        F.sum("events").alias("events"),
        F.count("*").alias("rows"),
        F.sum(F.greatest(-difference, F.lit(0))).alias("lost"),
        F.sum(F.greatest(difference, F.lit(0))).alias("duplicated"),
        F.sum((~same).cast("long")).alias("different_rows"),
    ).first()
    return Comparison(**{name: int(row[name] or 0) for name in Comparison.__dataclass_fields__})
