"""Nexmark over Kafka: a real broker, the same rows as the embedded source, all six queries."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StructType

from penstock.core.errors import EngineError, InputError
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.lab.kafka.broker import LocalBroker
from penstock.lab.kafka.cluster import KafkaCluster
from penstock.lab.kafka.producer import NexmarkProducer, Progress, topic_of
from penstock.lab.kafka.records import end_of
from penstock.lab.queries.nexmark import (
    QUERIES,
    Settings,
    compare,
    start,
    stop,
    wait_until_final,
)
from penstock.lab.sources import kafka
from penstock.spark.read.kafka import KafkaEnds
from penstock.spark.read.underway import underway_of
from penstock.workloads.nexmark import SCHEMAS, TABLES, NexmarkEvents, NexmarkStream, Table
from penstock.workloads.patterns import Constant, Cosine
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark

SETTINGS = Settings(minute=3.0, watermark=1.0)  # Q5 15 s by 3 s, Q8 and Q11 0.5 s
PATIENCE = 240.0  # seconds
PAST = NexmarkStream(
    events=NexmarkEvents(seed=3, hot_auctions=2, disorder=0.5),
    pattern=Cosine(low=300.0, high=600.0, period=10.0),
    start=1_700_000_000.0,
    seconds=20.0,
    tables=TABLES,
    partitions=3,
    max_rows=5000,  # two micro-batches
)


@dataclass(frozen=True)
class Kafka:
    broker: LocalBroker
    servers: str
    cluster: KafkaCluster


@pytest.fixture(scope="module")
def running() -> Iterator[Kafka]:
    with LocalBroker() as broker:
        servers = broker.bootstrap_servers
        yield Kafka(broker, servers, KafkaCluster(servers))


@pytest.fixture(scope="module")
def written(running: Kafka) -> NexmarkStream:
    """20 s of events that are past: they are written as fast as Kafka takes them."""
    with NexmarkProducer(PAST, bootstrap_servers=running.servers, processes=2) as producer:
        assert producer.wait(within=PATIENCE).done
    return PAST


def ends(running: Kafka, topic: str) -> list[int]:
    return [end for _, end in sorted(running.cluster.end_offsets(topic).items())]


@pytest.mark.parametrize("table", TABLES)
def test_every_record_is_the_row_that_its_place_names(
    spark: Any, running: Kafka, written: NexmarkStream, table: Table
) -> None:
    frame = kafka.batch(spark, topic_of(table), table, bootstrap_servers=running.servers)
    assert frame.schema == StructType.fromDDL(SCHEMAS[table].ddl)  # as the embedded source has it
    assert frame.rdd.getNumPartitions() == written.partitions
    raw = spark.read.format("kafka").option("kafka.bootstrap.servers", running.servers)
    place = [F.expr("offset * 3 + partition"), F.expr("unix_millis(timestamp)")]
    records = raw.option("subscribe", topic_of(table)).load()
    rows = kafka.parsed(records, table, None, place[0].alias("n"), place[1].alias("ms"))
    found = rows.toArrow().sort_by("n").combine_chunks()
    count = written.total(table)
    assert found["n"].to_pylist() == list(range(count))
    assert found["ms"].to_pylist() == (written.release_times(table, 0, count) // 1000).tolist()
    expected = written.rows(table, 0, count)
    for name in SCHEMAS[table].columns:
        kind = expected.schema.field(name).type
        assert found[name].cast(kind).to_pylist() == expected[name].to_pylist(), name


@pytest.mark.long
def test_every_query_gives_the_rows_of_a_batch_over_the_embedded_source(
    spark: Any, cluster: LocalCluster, running: Kafka, written: NexmarkStream
) -> None:
    topics = kafka.KafkaTopics(bootstrap_servers=running.servers)
    until = written.start + 16
    folder = cluster.folder / "kafka"
    with ExitStack() as stack:
        started = {}
        for name, query in QUERIES.items():
            started[name] = start(
                spark, query, written, SETTINGS, folder=folder / name, trigger=0, topics=topics
            )
            stack.callback(started[name].stop)
        for name, each in started.items():
            wait_until_final(each, QUERIES[name], written, until, within=PATIENCE)
            stop(each, within=1)
    for name, query in QUERIES.items():
        result = compare(spark, query, written, SETTINGS, folder=folder / name, until=until)
        assert result.exact, f"{name}: {result}"
        assert result.rows > 0
        assert result.events > 100


def test_a_watermark_below_the_spread_of_partitions_is_refused(
    spark: Any, tmp_path: Path, running: Kafka
) -> None:
    topics = kafka.KafkaTopics(bootstrap_servers=running.servers)
    short = Settings(watermark=0.9)
    with pytest.raises(InputError, match=r"0.5 s between partitions.*Set it to 1 or more"):
        start(spark, QUERIES["q5"], PAST, short, folder=tmp_path, trigger=0, topics=topics)


@pytest.mark.long
def test_nothing_is_lost_or_repeated_when_the_broker_is_killed(running: Kafka) -> None:
    events = NexmarkStream(
        pattern=Constant(rps=2000.0), start=time.time(), seconds=8.0, partitions=4
    )
    killed: list[Progress] = []

    def kill_once(progress: Progress) -> None:
        if not killed and progress.written > 2000:
            running.broker.kill()
            assert not running.broker.alive
            killed.append(progress)
            running.broker.restart()

    settings: Any = {"bootstrap_servers": running.servers, "prefix": "killed", "processes": 2}
    with NexmarkProducer(events, **settings) as producer:
        done = producer.wait(within=PATIENCE, watch=kill_once)
    assert killed and not killed[0].done
    assert done.written == done.total == events.total("bid")
    assert ends(running, "killed-bid") == [end_of(p, done.total, 4) for p in range(4)]
    assert values(running, "killed-bid") == expected(events)


@pytest.mark.long
def test_a_producer_that_starts_again_goes_on_where_it_was(running: Kafka) -> None:
    events = NexmarkStream(
        pattern=Constant(rps=1000.0), start=time.time(), seconds=6.0, partitions=3
    )
    settings: Any = {"bootstrap_servers": running.servers, "prefix": "again"}
    late = pytest.raises(EngineError, match=r"of 6,000 events are written after 2 s")
    with NexmarkProducer(events, **settings, processes=2) as first, late:
        first.wait(within=2.0)
    before = sum(ends(running, "again-bid"))
    assert before < 6000
    with NexmarkProducer(events, **settings, processes=3) as second:
        assert second.progress().written >= before
        done = second.wait(within=PATIENCE)
    assert done.done
    assert values(running, "again-bid") == expected(events)
    other = NexmarkStream(pattern=Constant(rps=1000.0), start=1.0, seconds=6.0, partitions=3)
    with pytest.raises(InputError, match="topic again-bid holds other events"):
        NexmarkProducer(other, **settings).start()


def test_what_comes_while_a_batch_runs_is_asked_beside_the_query(
    spark: Any, running: Kafka
) -> None:
    """The query reads nothing more meanwhile, and goes on as if nobody had asked."""
    running.cluster.create_topic("asked", 2)
    write(running, "asked", 30)

    @F.udf("long")
    def slowly(value: bytes) -> int:
        time.sleep(0.5)
        return len(value)

    kafka.ensure_connector(spark)
    frame = spark.readStream.format("kafka").option("kafka.bootstrap.servers", running.servers)
    frame = frame.option("subscribe", "asked").option("startingOffsets", "earliest").load()
    query = frame.select(slowly("value")).writeStream.format("noop").queryName("asked").start()
    kafka_ends = KafkaEnds()
    try:

        def newest() -> int | None:
            at = underway_of([query], {}, kafka_ends).get(str(query.runId))
            return None if at is None or not at.newest else at.newest[0]

        until("Kafka has told", lambda: newest() == 30)
        write(running, "asked", 12)
        assert query.lastProgress is None  # the first batch has not ended
        until("it tells of what came since", lambda: newest() == 42)
        until("the query has read all", lambda: read(query) == 42)
    finally:
        kafka_ends.close()
        query.stop()
    assert query.exception() is None


def read(query: Any) -> int:
    return sum(int(p["numInputRows"]) for p in query.recentProgress)


def write(running: Kafka, topic: str, count: int) -> None:
    from confluent_kafka import Producer

    out = Producer({"bootstrap.servers": running.servers, "log_level": 0})
    for n in range(count):
        out.produce(topic, b"x", partition=n % 2)
    assert out.flush(PATIENCE) == 0


def test_a_broker_that_cannot_start_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = LocalBroker(port=other.getsockname()[1])
        with pytest.raises(EngineError, match=r"(?s)Kafka ended with exit code 1.*in use"):
            taken.start()
    assert not taken.alive


def test_topics_are_made_refused_and_deleted(running: Kafka) -> None:
    running.cluster.create_topic("made", 2)
    running.cluster.create_topic("made", 2)
    assert running.cluster.topics()["made"] == 2
    assert running.cluster.end_offsets("made") == {0: 0, 1: 0}
    with pytest.raises(InputError, match="topic made has 2 partitions, not 3: ask for 2"):
        running.cluster.create_topic("made", 3)
    with pytest.raises(EngineError, match="could not make topic no good:"):
        running.cluster.create_topic("no good", 1)
    running.cluster.delete_topic("made")
    with pytest.raises(InputError, match="there is no topic made"):
        running.cluster.delete_topic("made")


def values(running: Kafka, topic: str) -> list[list[bytes]]:
    """Every record of a topic by partition, read by a client of its own."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    wanted = ends(running, topic)
    found: list[list[bytes]] = [[] for _ in wanted]
    consumer = Consumer({"bootstrap.servers": running.servers, "group.id": "t", "log_level": 0})
    try:
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(len(wanted))])
        deadline = time.monotonic() + PATIENCE
        while [len(part) for part in found] != wanted:
            assert time.monotonic() < deadline
            for message in consumer.consume(5000, timeout=1.0):
                assert message.error() is None
                partition, value = message.partition(), message.value()
                assert partition is not None and message.offset() == len(found[partition])
                found[partition].append(value)  # type: ignore[arg-type]
    finally:
        consumer.close()
    return found


def expected(events: NexmarkStream) -> list[list[bytes]]:
    """Row n in partition n mod P at n div P, as JSON of the standard library writes it."""
    found: list[list[bytes]] = [[] for _ in range(events.partitions)]
    for n, row in enumerate(events.rows("bid", 0, events.total("bid")).to_pylist()):
        row["date_time"] = row["date_time"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        found[n % events.partitions].append(json.dumps(row, separators=(",", ":")).encode())
    return found
