"""The Autoscaler on real executors: acts, advises, survives, and its journal replays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import EngineError
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.model import Proposal, Snapshot
from penstock.history.journal import read, replay
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.lab.queries.nexmark import QUERIES, Settings, start
from penstock.policies import DS2, Static
from penstock.simulator import FluidEngine, FluidSpec
from penstock.spark.autoscaler import Autoscaler
from penstock.spark.read.store import Store
from penstock.workloads.nexmark import NexmarkEvents, NexmarkStream
from penstock.workloads.patterns import Constant, Step
from tests.fakes.scenarios import pipeline
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark

GUARDS = Guards(minimum=1, maximum=3, tolerance=0.1)
QUERY = QUERIES["q11"]  # bids per bidder and session
SETTINGS = Settings(minute=3.0, watermark=1.0)  # a session ends after 0.5 s without a bid


@dataclass(frozen=True)
class Running:
    """A running query, its events and where its result goes."""

    query: Any
    events: NexmarkStream
    folder: Path

    @property
    def batch(self) -> int:
        progress = self.query.lastProgress
        return int(progress["batchId"]) if progress else -1


@pytest.fixture
def running(spark: Any, cluster: LocalCluster) -> Iterator[Running]:
    """Nexmark Q11 at 2,000 bids/s."""
    events = NexmarkStream(
        events=NexmarkEvents(),
        pattern=Constant(rps=2000.0),
        start=float(int(time.time())),
        seconds=3600.0,
        partitions=3,
        max_rows=10_000,
    )
    folder = cluster.folder / f"query-{time.monotonic_ns()}"
    query = start(spark, QUERY, events, SETTINGS, folder=folder, trigger=1, name="q")
    yield Running(query, events, folder)
    query.stop()


def executors(spark: Any) -> int:
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1


def decisions(path: Path) -> list[Any]:
    return read(path)[1] if path.exists() and path.stat().st_size else []


def test_it_grows_and_shrinks_a_running_query(
    spark: Any, cluster: LocalCluster, running: Running, tmp_path: Path
) -> None:
    journal = tmp_path / "grow.jsonl"
    options: Any = {"mode": "act", "period": 1.0, "window": 5.0, "guards": GUARDS}
    with Autoscaler(spark, Static(slots=3), cluster=cluster, journal=journal, **options) as scaler:
        until("three executors", lambda: executors(spark) == 3)
        until("its cost measured", lambda: any(r.first_task for r in _past(scaler)))
    with Autoscaler(spark, "static", parameters={"slots": 1}, cluster=cluster, **options):
        until("back to one executor", lambda: executors(spark) == 1)
    before = running.batch
    until("the query goes on", lambda: running.batch > before)
    assert running.query.exception() is None
    (grown,) = [e for e in decisions(journal) if e.decision.applied]
    assert {c.slots for c in grown.decision.changes.values()} == {3}


def test_advice_changes_nothing_and_a_journal_from_spark_replays(
    spark: Any, cluster: LocalCluster, running: Running, tmp_path: Path
) -> None:
    """The same policy object and guards on Spark, replayed, and in the simulator."""
    policy, path = DS2(), tmp_path / "advice.jsonl"
    before = executors(spark)
    with Autoscaler(
        spark, policy, period=1.0, window=5.0, guards=GUARDS, cluster=cluster, journal=path
    ):
        until("five decisions with a need", lambda: len(_sized(path)) >= 5)
    assert executors(spark) == before
    header, entries = read(path)
    assert header.mode == "advise"
    assert not any(e.decision.applied for e in entries)
    again = replay(entries, policy, header.guards, header.seed)
    assert [d.proposal for d in again] == [e.decision.proposal for e in entries]
    assert [d.targets for d in again] == [e.decision.targets for e in entries]

    seen: Snapshot = _sized(path)[-1].decision.seen
    assert set(seen.operators) == {"read", "session"}
    assert seen.pipeline.operators["session"].stateful
    assert seen.pipeline.useful_slots("executors") == 3
    assert 1000 < (seen.operators["read"].offered_rate or 0) < 9000
    assert all(slot.cpu is not None for slot in seen.pools["executors"])
    assert sum(o.parallelism for o in seen.operators.values()) == pytest.approx(before)

    spec = FluidSpec(
        pipeline=pipeline(shared=True),
        service_rates=dict.fromkeys(("source", "map", "sink"), 3000.0),
        start={"all": 1},
    )
    simulated = FluidEngine(spec, Step(low=500, high=1500, at=60), seconds=600)
    loop = Loop(simulated, policy, GUARDS, mode="act")
    loop.run(period=15.0, ticks=40)
    assert simulated.observe().slots("all") == 2  # 3 · 1500 / 3000 · 1.2 = 1.8


class Broken:
    def start(self, seed: int) -> None:
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        raise RuntimeError("out of ideas")


def test_a_broken_policy_and_a_dead_gateway_never_harm_the_query(
    spark: Any,
    cluster: LocalCluster,
    running: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "broken.jsonl"
    with Autoscaler(
        spark, Broken(), mode="act", period=0.5, window=5.0, guards=GUARDS, journal=path
    ):
        until("a decision", lambda: bool(decisions(path)))
        assert "RuntimeError: out of ideas" in decisions(path)[-1].decision.explain()

        def refuse(*_: Any) -> Any:
            refused.append(1)
            raise EngineError("the gateway is gone")

        refused: list[int] = []
        monkeypatch.setattr(Store, "_ask", refuse)
        until("three refused observations", lambda: len(refused) >= 3)
        monkeypatch.undo()
        count = len(decisions(path))
        until("decisions again", lambda: len(decisions(path)) > count)
    before = running.batch
    until("the query goes on", lambda: running.batch > before)
    assert running.query.isActive


def test_a_query_that_stops_leaves_the_autoscaler_waiting(
    spark: Any, cluster: LocalCluster, running: Running, tmp_path: Path
) -> None:
    path = tmp_path / "stopped.jsonl"
    scaler = Autoscaler(spark, period=0.5, window=5.0, guards=GUARDS, journal=path)
    with scaler:
        until("a decision", lambda: bool(decisions(path)))
        running.query.stop()
        until("the query is forgotten", lambda: not scaler.queries)
    scaler.stop()  # a second time does nothing


def _past(scaler: Autoscaler) -> Any:
    return scaler.last.seen.rescales if scaler.last is not None else ()


def _sized(path: Path) -> list[Any]:
    return [e for e in decisions(path) if e.decision.proposal.needs]
