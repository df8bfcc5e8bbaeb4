"""The rows of a stream beside the rows of a batch over the same events, as multisets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How a streamed result differs from the batch result over the same events.

    ``events`` input events covered · ``rows`` of the batch · ``missing`` rows of the batch that
    the stream lacks · ``surplus`` rows, or further copies of a row, that only the stream has.
    A row with a wrong value counts once in each.
    """

    events: int
    rows: int
    missing: int
    surplus: int

    @property
    def exact(self) -> bool:
        """Whether the stream has the same rows, each as often."""
        return not (self.missing or self.surplus)

    def __str__(self) -> str:
        return (
            f"{self.events:,} events, {self.rows:,} rows: "
            f"{self.missing:,} missing, {self.surplus:,} surplus"
        )


def compare_rows(streamed: DataFrame, expected: DataFrame, events: int) -> Comparison:
    """Count the differences in one Spark job; no row leaves the executors."""
    columns = expected.columns
    both = expected.withColumn("copies", F.lit(1)).unionByName(
        streamed.select(*columns).withColumn("copies", F.lit(-1))
    )
    copies = F.col("copies")
    each = both.groupBy(*columns).agg(
        F.count_if(copies > 0).alias("rows"), F.sum("copies").alias("lacking")
    )
    lacking = F.col("lacking")
    row: Any = each.agg(
        F.sum("rows").alias("rows"),
        F.sum(F.greatest(lacking, F.lit(0))).alias("missing"),
        F.sum(F.greatest(-lacking, F.lit(0))).alias("surplus"),
    ).first()
    counted = {name: int(row[name] or 0) for name in ("rows", "missing", "surplus")}
    return Comparison(events=events, **counted)
