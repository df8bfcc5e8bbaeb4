"""Rows between two applications: JSON in a topic, each with an id, repeats dropped by the reader.

Spark's Kafka sink writes *at least* once: a batch that is tried again writes some rows again. So a
row carries an id that depends on nothing but the row, and the next hop drops what it has seen.

It remembers ids for as long as the watermark waits. That is enough: an application finishes one
batch before it begins the next, so what it repeats, or writes late, is never older than the span
of event time of one batch. The rule for the watermark is in docs/split.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from penstock.lab.sources.kafka import records

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ID = "penstock_id"
LATE = 0.001  # seconds; Spark's join drops a row that comes exactly at the watermark


def read(
    spark: SparkSession,
    topic: str,
    schema: StructType,
    *,
    bootstrap_servers: str,
    max_rows: int | None = None,
) -> DataFrame:
    """The rows of a topic that :func:`value_of` wrote, with their ids; from its beginning."""
    whole = StructType([*map(_as_text, schema), StructField(ID, StringType())])
    parsed = records(spark, topic, bootstrap_servers=bootstrap_servers, max_rows=max_rows).select(
        F.from_json(F.col("value").cast("string"), whole, {"mode": "FAILFAST"}).alias("row")
    )
    columns = [_restored(field).alias(field.name) for field in schema]
    return parsed.select(*columns, F.col(f"row.{ID}").alias(ID))


def place() -> Column:
    """The id of a record that something else wrote once: where it lies in its topic."""
    return F.concat_ws("-", "partition", "offset")


def contents(frame: DataFrame) -> Column:
    """The id of a row that no other row of a result is equal to: a hash of all its columns."""
    return F.sha2(F.to_json(F.struct(*[_plain(field) for field in frame.schema])), 256)


def value_of(frame: DataFrame) -> DataFrame:
    """Key and value of the records of a frame that has ids; rows of one id go to one partition."""
    columns = [_plain(field).alias(field.name) for field in frame.schema]
    return frame.select(F.col(ID).alias("key"), F.to_json(F.struct(*columns)).alias("value"))


def without_repeats(frame: DataFrame, time: str, watermark: float) -> DataFrame:
    """Each id once, with a watermark of so many seconds on a column."""
    delay = f"{round((watermark + LATE) * 1e3)} milliseconds"
    return frame.withWatermark(time, delay).dropDuplicatesWithinWatermark([ID])


def _as_text(field: StructField) -> StructField:
    """A field as it stands in the JSON: times in whole microseconds, decimals as texts; exact."""
    kind: Any = field.dataType
    if isinstance(kind, TimestampType):
        return StructField(field.name, _long())
    return StructField(field.name, StringType() if _is_decimal(kind) else kind)


def _plain(field: StructField) -> Column:
    column = F.col(field.name)
    if isinstance(field.dataType, TimestampType):
        return F.unix_micros(column).alias(field.name)
    return column.cast("string").alias(field.name) if _is_decimal(field.dataType) else column


def _restored(field: StructField) -> Column:
    column = F.col(f"row.{field.name}")
    if isinstance(field.dataType, TimestampType):
        return F.timestamp_micros(column)
    return column.cast(field.dataType) if _is_decimal(field.dataType) else column


def _is_decimal(kind: Any) -> bool:
    return str(kind.typeName()) == "decimal"


def _long() -> Any:
    from pyspark.sql.types import LongType

    return LongType()
