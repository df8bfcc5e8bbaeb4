"""The application of one hop, a process of its own.

``python -m penstock.lab.queries.split.driver ORDER`` reads its topics, writes its own (the sink:
Parquet files) and answers the controller. Started again with the same order it goes on from its
checkpoint.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.lab.clusters.standalone.sessions import Driver, settle
from penstock.lab.queries.nexmark_queries import QUERIES, Settings
from penstock.lab.queries.running import fail_if_ended, stop, wait_until_ready
from penstock.lab.queries.split import rows
from penstock.lab.queries.split.hops import SINK, Application, Hop, Topics, hops_of
from penstock.spark.split.member import Member

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


STOP = "stop"  # a file that ends the process between two batches


@dataclass(frozen=True, slots=True, kw_only=True)
class HopOrder:
    """One hop of a query.

    folder: for its checkpoint and, of the sink, its ``result``
    conf: that of its session
    listen: where it answers the controller
    trigger, window: seconds between batches, and of an observation
    span: seconds of event time that a batch covers at most
    slots: executors that it may have
    agents: whether agents decide on them
    """

    folder: str
    query: str
    hop: str
    bootstrap_servers: str
    prefix: str
    max_rows: int | None
    minute: float
    watermark: float
    span: float
    trigger: float
    window: float
    slots: int
    listen: str
    conf: Mapping[str, str]
    agents: bool = False

    @property
    def path(self) -> Path:
        """The folder of its files."""
        return Path(self.folder)

    @property
    def stop(self) -> Path:
        """The file that ends the process."""
        return self.path / STOP

    def save(self) -> Path:
        """Write it down; returns the file."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / "order.json"
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return file

    @classmethod
    def load(cls, file: Path) -> HopOrder:
        """The order in a file."""
        return cls(**json.loads(file.read_text(encoding="utf-8")))

    @property
    def application(self) -> Application:
        """What it does with Spark."""
        query = QUERIES[self.query]
        hop: Hop = next(hop for hop in hops_of(query) if hop.name == self.hop)
        return Application(
            query=query,
            hop=hop,
            topics=Topics(
                bootstrap_servers=self.bootstrap_servers,
                prefix=self.prefix,
                max_rows=self.max_rows,
            ),
            settings=Settings(minute=self.minute, watermark=self.watermark),
            span=self.span,
        )


LOOK = 0.2  # seconds between looks at the order to stop


def run(order: HopOrder) -> None:
    """Run the hop until it is told to stop."""
    driver = Driver()
    spark = driver.open(f"{order.query}-{order.hop}", order.conf, {}, order.path / "jvm.log")
    try:
        settle(spark)
        running = start(spark, order)
        with Member(
            spark,
            listen=Path(order.listen),
            max_executors=order.slots,
            window=order.window,
            most_rows=order.max_rows,
            agents=order.agents,
        ):
            while not order.stop.exists():
                time.sleep(LOOK)
                fail_if_ended(running)
            stop(running)
    finally:
        driver.close()


def start(spark: SparkSession, order: HopOrder) -> StreamingQuery:
    """Start the hop's query."""
    application = order.application
    result = application.result(spark)
    sink = application.hop.name == SINK
    frame = result if sink else rows.value_of(result)
    writer: Any = (
        frame.writeStream.queryName(order.hop)
        .outputMode("append")
        .option("checkpointLocation", str(order.path / "checkpoint"))
        .trigger(processingTime=f"{round(order.trigger * 1e3)} milliseconds")
    )
    if sink:
        writer = writer.format("parquet").option("path", str(order.path / "result"))
    else:
        writer = (
            writer.format("kafka")
            .option("kafka.bootstrap.servers", order.bootstrap_servers)
            .option("topic", application.topics.of(order.hop))
        )
    running: StreamingQuery = writer.start()
    wait_until_ready(running)
    return running


if __name__ == "__main__":
    run(HopOrder.load(Path(sys.argv[1])))
