"""Benches over Kafka without Spark: what a spec may say, and which broker a run gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from penstock.bench.cell import settings_of
from penstock.bench.specs.spec import load
from penstock.core.errors import InputError, MissingError
from penstock.lab.kafka import broker as brokers
from penstock.lab.kafka import cluster as clusters
from penstock.lab.kafka import producer as producers
from penstock.lab.kafka.broker import free_port
from penstock.lab.kafka.writer import SPREAD
from penstock.lab.queries.nexmark_queries import QUERIES
from penstock.lab.rig.capacity import WATERMARK, events_of, query_settings
from penstock.lab.rig.rig import Feed
from penstock.lab.rig.settings import SparkSettings
from penstock.workloads.patterns import Constant
from tests.fakes.shell import Shell
from tests.places import ROOT

EXAMPLES = ROOT / "examples" / "bench"
KAFKA = SparkSettings(source="kafka", partitions=2)
SPEC = (EXAMPLES / "kafka.toml").read_text()


# ---- what a spec may say ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kafka.toml", "kafka-q11.toml"])
def test_the_examples_read_from_kafka_and_have_the_six_policies(name: str) -> None:
    spec = load(EXAMPLES / name)
    settings = settings_of(spec.cells)
    assert settings is not None and settings.source == "kafka"
    policies = {"static", "spark-dra", "hpa-cpu", "hpa-varga", "ds2", "dhalion"}
    assert {cell.policy for cell in spec.cells} == policies


@pytest.mark.parametrize(
    ("source", "words"),
    [('"kafak"', "unknown source 'kafak'; did you mean 'kafka'"), ("3", "must be a text")],
)
def test_another_source_is_refused(source: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.replace('source = "kafka"', f"source = {source}"))
    with pytest.raises(InputError, match=words):
        load(path)


def test_windows_wait_for_the_partition_that_is_behind() -> None:
    embedded = SparkSettings(minute=2.0)
    assert query_settings(embedded).watermark == embedded.clock(WATERMARK) < SPREAD
    assert query_settings(SparkSettings(minute=2.0, source="kafka")).watermark == SPREAD


@pytest.fixture
def bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    (tmp_path / "kafka.toml").write_text(SPEC)
    (tmp_path / "plain.toml").write_text((EXAMPLES / "spark-quick.toml").read_text())
    return Shell.at(tmp_path, monkeypatch, capsys, "bench")


def test_a_missing_broker_ends_it_before_anything_is_written(bench: Shell) -> None:
    server = f"127.0.0.1:{free_port()}"
    done = bench("kafka.toml", "--bootstrap-servers", server)
    assert (done.code, done.out) == (3, "")
    assert f"Tried {server}: Connection refused" in done.err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("spec", "server", "said"),
    [
        ("plain.toml", "127.0.0.1:9", 'Set source = "kafka" in its table [spark]'),
        ("kafka.toml", "here", "must look like HOST:PORT"),
    ],
)
def test_servers_that_mean_nothing_are_refused(
    bench: Shell, spec: str, server: str, said: str
) -> None:
    done = bench(spec, "--bootstrap-servers", server)
    assert (done.code, done.out) == (2, "")
    assert said in " ".join(done.err.split())
    assert not Path("runs").exists()


# ---- which broker a run gets ------------------------------------------------------------------


@dataclass
class Kafka:
    """What was asked of a Kafka that is none."""

    started: int = 0
    stopped: int = 0
    alive: bool = True
    topics: set[str] = field(default_factory=set)
    written: list[str] = field(default_factory=list)  # the topics of each backlog


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kafka]:
    seen = Kafka()

    class Broker:
        def __init__(self, **_: Any) -> None:
            self.bootstrap_servers = f"127.0.0.1:{seen.started}"

        @property
        def alive(self) -> bool:
            return seen.alive

        def start(self) -> Self:
            seen.started, seen.alive = seen.started + 1, True
            return self

        def stop(self) -> None:
            seen.stopped += 1

    class Producer:
        def __init__(self, events: Any, *, prefix: str, **_: Any) -> None:
            self.prefix = prefix
            self.topics = {table: f"{prefix}-{table}" for table in events.tables}

        def __enter__(self) -> Self:
            seen.topics |= set(self.topics.values())
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def catch_up(self, within: float) -> None:
            seen.written += self.topics.values()

    class Cluster:
        def __init__(self, servers: str) -> None:
            if not seen.alive:
                raise MissingError("gone")

        def delete_topic(self, topic: str) -> None:
            seen.topics.remove(topic)

    monkeypatch.setattr(brokers, "LocalBroker", Broker)
    monkeypatch.setattr(producers, "NexmarkProducer", Producer)
    monkeypatch.setattr(clusters, "KafkaCluster", Cluster)
    yield seen


def some_events() -> Any:
    return events_of(
        "q3", KAFKA, seed=0, rows=10, pattern=Constant(rps=1.0), start=0.0, seconds=1.0
    )


def test_runs_share_a_broker_and_each_has_topics_of_its_own(kafka: Kafka) -> None:
    feed = Feed(KAFKA, say=lambda line: None)
    assert kafka.started == 0  # not before it is needed
    prefixes = set()
    for backlog in (False, True):
        with feed.topics(QUERIES["q3"], some_events(), backlog=backlog) as topics:
            assert topics is not None and len(kafka.topics) == 2
            assert bool(kafka.written) is backlog
            prefixes.add(topics.prefix)
        assert kafka.topics == set()
    assert (kafka.started, len(prefixes)) == (1, 2)
    feed.close()
    feed.close()
    assert kafka.stopped == 1


def test_a_broker_that_died_is_replaced_and_its_run_ends_without_another_error(
    kafka: Kafka,
) -> None:
    feed = Feed(KAFKA, say=lambda line: None)
    with feed.topics(QUERIES["q3"], some_events()):
        kafka.alive = False
    with feed.topics(QUERIES["q3"], some_events()):
        assert kafka.started == 2


def test_a_cluster_that_was_given_is_used_and_left_running(kafka: Kafka) -> None:
    feed = Feed(KAFKA, servers="there:9092", say=lambda line: None)
    with feed.topics(QUERIES["q3"], some_events()) as topics:
        assert topics is not None and topics.bootstrap_servers == "there:9092"
    feed.close()
    assert (kafka.started, kafka.stopped) == (0, 0)


def test_the_embedded_source_needs_no_kafka(kafka: Kafka) -> None:
    feed = Feed(SparkSettings(), say=lambda line: None)
    assert feed.conf() == {}
    with feed.topics(QUERIES["q3"], some_events()) as topics:
        assert topics is None
    assert kafka.started == 0
