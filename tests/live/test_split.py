"""A split pipeline on real Spark and Kafka: sized by operator, exact through the kill of a hop."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.core.errors import EngineError, NotReady
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.model import Need, Proposal, Snapshot
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.kafka.broker import LocalBroker
from penstock.lab.kafka.producer import NexmarkProducer
from penstock.lab.queries import nexmark
from penstock.lab.queries.split.run import SplitRun
from penstock.workloads.nexmark import PRESETS, NexmarkStream
from penstock.workloads.patterns import Constant
from tests.fakes.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.long]

QUERY = nexmark.QUERIES["q5"]
SETTINGS = nexmark.Settings(minute=2.0, watermark=1.0)
START_SECONDS = 90.0  # for the broker, the cluster and three applications
SECONDS = 100.0


class TwoForTheWindow:
    """A policy that sizes one operator whatever the load is."""

    def start(self, seed: int) -> None:
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        return Proposal(reason="two for the window", needs={"window": Need(slots=2.0)}), None


def test_one_operator_grows_and_each_hop_may_be_killed(tmp_path: Path) -> None:
    with (
        LocalBroker() as broker,
        LocalCluster(ClusterSpec(slots=6, cpu_share=None)) as cluster,
    ):
        events = NexmarkStream(
            events=PRESETS["thesis"],
            pattern=Constant(rps=800.0),
            start=time.time() + START_SECONDS,
            seconds=SECONDS,
            partitions=2,
            max_rows=4000,
        )
        servers = broker.bootstrap_servers
        columns = dict(QUERY.tables)
        run = SplitRun(
            query=QUERY, events=events, settings=SETTINGS, cluster=cluster, servers=servers,
            folder=tmp_path, trigger=1.0, slots=2, partitions=2,
        )  # fmt: skip
        with NexmarkProducer(events, bootstrap_servers=servers, columns=columns) as producer, run:
            guards = Guards(maximum=2, max_age=3600.0)
            loop = Loop(run.engine, TwoForTheWindow(), guards, mode="act")

            def grown() -> bool:
                try:
                    sizes = {p: len(s) for p, s in loop.tick().seen.pools.items()}
                except (NotReady, EngineError):  # a busy machine answers late
                    return False
                return sizes == {"source": 1, "window": 2, "sink": 1}

            until("the window has two executors, the others one", grown, seconds=240.0)
            for hop in run.hops:
                run.kill(hop.name)
                run.start(hop.name)
            producer.wait(within=300.0)
            final = events.end - 15.0
            run.wait_until_final(final, within=300.0)
        spark = cluster.session("compare", start_with=2)
        result = nexmark.compare(spark, QUERY, events, SETTINGS, folder=run.result, until=final)
        assert result.exact and result.rows > 20, result
