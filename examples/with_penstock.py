"""``plain_job.py`` with Penstock attached: it advises, and with ``--act`` it resizes.

Everything else about Penstock comes from a file, ``PENSTOCK_*`` or
``spark.penstock.*``::

    python examples/with_penstock.py /tmp/clicks --seconds 60
    spark-submit --master spark://host:7077 examples/with_penstock.py hdfs:///clicks --act
"""

from __future__ import annotations

import argparse
import logging
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.streaming import StreamingQuery

from penstock import Autoscaler

PATIENCE = 60.0  # seconds that a batch may still take when the job stops


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Clicks per page in windows of 5 seconds.")
    parser.add_argument("output", help="folder for the result and the checkpoint")
    parser.add_argument("--rate", type=int, default=1000, help="clicks per second (1000)")
    parser.add_argument("--seconds", type=float, help="stop after this long (never)")
    parser.add_argument("--act", action="store_true", help="add and remove executors")
    return parser.parse_args()


def session() -> SparkSession:
    """A session with the settings that a stream which grows and shrinks needs."""
    return (
        SparkSession.builder.appName("clicks")
        # At most this many tasks share the stateful stage, whatever the number of executors.
        .config("spark.sql.shuffle.partitions", "8")
        # A new executor gets tasks at once instead of after 3 seconds without a local one.
        .config("spark.locality.wait", "0s")
        .config("spark.dynamicAllocation.enabled", "false")
        # An executor that leaves finishes its tasks and hands its shuffle files on.
        .config("spark.decommission.enabled", "true")
        .config("spark.storage.decommission.enabled", "true")
        .config("spark.storage.decommission.replicationReattemptInterval", "1s")
        .getOrCreate()
    )


def clicks_per_page(clicks: DataFrame) -> DataFrame:
    """Count the clicks of each of 100 pages in windows of 5 seconds."""
    return (
        clicks.withColumn("page", F.col("value") % 100)
        .withWatermark("timestamp", "2 seconds")
        .groupBy(F.window("timestamp", "5 seconds"), "page")
        .agg(F.count("*").alias("clicks"))
    )


def stop(query: StreamingQuery) -> None:
    """Stop between two batches where possible: one that is cut off prints a stack trace."""
    deadline = time.monotonic() + PATIENCE
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        query.awaitTermination(0.05)
    query.stop()


def main() -> None:
    """Stream until told to stop."""
    options = arguments()
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("penstock").setLevel(logging.INFO)
    spark = session()
    clicks = spark.readStream.format("rate").option("rowsPerSecond", options.rate).load()
    query = (
        clicks_per_page(clicks)
        .writeStream.format("parquet")
        .queryName("clicks")
        .option("path", f"{options.output}/result")
        .option("checkpointLocation", f"{options.output}/checkpoint")
        .trigger(processingTime="2 seconds")
        .start()
    )
    with Autoscaler(spark, mode="act" if options.act else None):
        query.awaitTermination(options.seconds)
    stop(query)
    spark.stop()


if __name__ == "__main__":
    main()
