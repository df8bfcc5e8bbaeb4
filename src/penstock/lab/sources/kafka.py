"""Nexmark's events from Kafka, as Spark frames: the same rows and columns as the embedded source.

Reads what :mod:`penstock.lab.kafka.producer` writes, through Spark's own connector. A session
that was made without its jars gets them when it first reads.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.core.errors import InputError
from penstock.lab.kafka.cluster import addresses
from penstock.lab.kafka.jars import connector_jars
from penstock.lab.kafka.producer import PREFIX, topic_of
from penstock.lab.kafka.writer import SPREAD
from penstock.workloads.nexmark import SCHEMAS, Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

log = logging.getLogger("penstock")
PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_PREFIX = "kafka."  # of the options that Spark hands on to the Kafka client


def stream(
    spark: SparkSession,
    topic: str,
    table: Table,
    columns: Sequence[str] | None = None,
    *,
    bootstrap_servers: str,
    max_rows: int | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """One table as a streaming frame, from the first record on, with these columns or all.

    ``max_rows`` most rows of a micro-batch. ``options`` are the Java client's, such as
    ``security.protocol``. A micro-batch has one task per partition of the topic. Fails if records
    are gone that it has not read.
    """
    found = records(
        spark, topic, bootstrap_servers=bootstrap_servers, max_rows=max_rows, options=options
    )
    return parsed(found, table, columns)


def records(
    spark: SparkSession,
    topic: str,
    *,
    bootstrap_servers: str,
    max_rows: int | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The records of a topic as Spark reads them, from the first one on."""
    if max_rows is not None and max_rows < 1:
        raise InputError(f"max_rows {max_rows} must be ≥ 1")
    limit = {} if max_rows is None else {"maxOffsetsPerTrigger": str(max_rows)}
    wanted = _options(topic, bootstrap_servers, options) | limit
    ensure_connector(spark)
    return spark.readStream.format("kafka").options(**wanted).load()


def batch(
    spark: SparkSession,
    topic: str,
    table: Table,
    columns: Sequence[str] | None = None,
    *,
    bootstrap_servers: str,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """All rows of one table that the topic has now, as a batch frame."""
    wanted = _options(topic, bootstrap_servers, options)
    ensure_connector(spark)
    return parsed(spark.read.format("kafka").options(**wanted).load(), table, columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopics:
    """The tables of a stream of events in Kafka, as a query reads them.

    Topics are ``<prefix>-<table>``. ``options`` are the Java client's. ``spread`` seconds by
    which one partition may be ahead of another: a query's watermark has to allow for it beside
    the events' own disorder.
    """

    bootstrap_servers: str
    prefix: str = PREFIX
    options: Mapping[str, str] = field(default_factory=dict)
    spread: float = SPREAD

    def stream(
        self,
        spark: SparkSession,
        table: Table,
        columns: Sequence[str] | None = None,
        max_rows: int | None = None,
    ) -> DataFrame:
        """One table as a streaming frame."""
        return stream(
            spark,
            topic_of(table, self.prefix),
            table,
            columns,
            bootstrap_servers=self.bootstrap_servers,
            max_rows=max_rows,
            options=self.options,
        )


def _options(
    topic: str, bootstrap_servers: str, options: Mapping[str, str] | None
) -> dict[str, str]:
    addresses(bootstrap_servers)
    own = {f"{_PREFIX}{key.removeprefix(_PREFIX)}": text for key, text in (options or {}).items()}
    return own | {
        "kafka.bootstrap.servers": bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
    }


def parsed(
    records: DataFrame, table: Table, columns: Sequence[str] | None = None, *more: Column
) -> DataFrame:
    """The rows in the values of records, and ``more`` that is worked out from the records.

    A value that does not fit the table's schema is an error.
    """
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    schema = SCHEMAS[table].select(columns)
    value = F.from_json(F.col("value").cast("string"), schema.ddl, {"mode": "FAILFAST"})
    frame = records.select(value.alias("row"), *more)
    return frame.select("row.*", *frame.columns[1:])


def ensure_connector(spark: SparkSession) -> None:
    """Give a session the connector's jars, unless it was made with them."""
    jvm: Any = spark.sparkContext._jvm
    if not jvm.org.apache.spark.util.Utils.classIsLoadable(PROVIDER):
        for jar in connector_jars(log.info):
            spark.sql(f"ADD JAR '{jar}'")
