"""A Nexmark query in a script of your own: generated events, Penstock attached, result checked.

The source ``penstock-nexmark`` needs no broker: it makes its events where they are read. The
load rises to the given rate and falls again; at the end the streamed result is compared with a
batch run over the same events::

    python examples/nexmark_job.py /tmp/q5 --query q5 --seconds 120
    spark-submit --master spark://host:7077 examples/nexmark_job.py /shared/q11 --query q11 --act

OUTPUT is a new folder, on a cluster one that all its machines share.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from penstock import Autoscaler
from penstock.lab.queries.nexmark import (
    QUERIES,
    Settings,
    compare,
    start,
    stop,
    wait_until_final,
)
from penstock.workloads.nexmark import PRESETS, NexmarkStream
from penstock.workloads.patterns import Cosine

TRIGGER = 2.0  # seconds between batches
CLOSING = 10.0  # seconds of events after the last compared one: they move the watermark on


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="A Nexmark query under a load that rises.")
    parser.add_argument("output", type=Path, help="new folder for the result and the checkpoint")
    parser.add_argument("--query", choices=QUERIES, default="q5", help="Nexmark query (q5)")
    parser.add_argument("--rate", type=float, default=5000.0, help="most events/s (5000)")
    parser.add_argument("--seconds", type=float, default=120.0, help="of events (120)")
    parser.add_argument("--act", action="store_true", help="add and remove executors")
    options = parser.parse_args()
    if options.seconds < 2 * CLOSING:
        parser.error(f"--seconds {options.seconds:g} must be at least {2 * CLOSING:g}")
    if options.output.exists():
        parser.error(f"{options.output} exists already; name a new folder")
    return options


def main() -> None:
    """Run a query to the end of its events and say whether its result is exact."""
    options = arguments()
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("penstock").setLevel(logging.INFO)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the source runs in Python workers
    spark = (
        SparkSession.builder.appName("nexmark")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.locality.wait", "0s")
        .config("spark.decommission.enabled", "true")
        .config("spark.storage.decommission.enabled", "true")
        .getOrCreate()
    )
    query = QUERIES[options.query]
    settings = Settings(minute=5.0)  # the query's windows, twelve times shorter
    events = NexmarkStream(
        events=PRESETS["nexmark"],
        pattern=Cosine(low=options.rate / 5, high=options.rate, period=options.seconds),
        start=time.time(),
        seconds=options.seconds,
        tables=tuple(query.tables),
    )
    running = start(spark, query, events, settings, folder=options.output, trigger=TRIGGER)
    until = events.end - CLOSING
    with Autoscaler(spark, mode="act" if options.act else None):
        wait_until_final(running, query, events, until, within=3 * options.seconds)
    stop(running)
    found = compare(spark, query, events, settings, folder=options.output, until=until)
    spark.stop()
    sys.stdout.write(f"{query.name}: {found}\n")
    sys.exit(0 if found.exact else 1)


if __name__ == "__main__":
    main()
