"""Executors of several cores: what they can do, how many are useful, and what a policy is told.

Rows that sleep take the same time on any machine: a batch of 40 rows in 8 partitions keeps cores
busy for 8 × 1 s, in waves of as many tasks as there are cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.batches.values import Admission
from penstock.core.errors import EngineError, NotReady
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.core.model import Snapshot
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.policies import Static
from penstock.spark.engine import SparkEngine
from penstock.spark.read.underway import underway_of
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark

POOL = "executors"
CORES = 8  # of the cluster
PARTITIONS, ROWS, SLEEP = 8, 40, 0.2
MUCH = 1.8  # times: what tasks take besides their sleep, on a busy machine; less than two cores
PATIENCE = 120.0


@pytest.fixture(scope="module")
def cluster(class_data: None) -> Iterator[LocalCluster]:
    with LocalCluster(ClusterSpec(slots=CORES, cpu_share=None)) as started:
        yield started


def sleeping(spark: Any) -> Any:
    """A query whose batches take the same time on as many cores."""
    rows = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", ROWS)
        .option("numPartitions", PARTITIONS)
        .load()
    )
    sleep = f"java_method('java.lang.Thread', 'sleep', cast({SLEEP * 1e3:.0f} as bigint)) as slept"
    return (
        rows.selectExpr("value", sleep)
        .writeStream.format("noop")
        .queryName("sleeping")
        .trigger(processingTime="3 seconds")
        .start()
    )


def once(engine: SparkEngine, what: str, condition: Any) -> Snapshot:
    """The first observation of which something holds."""
    found: list[Snapshot] = []

    def holds() -> bool:
        try:
            found[:] = [engine.observe()]
        except (NotReady, EngineError):
            return False
        return bool(condition(found[0]))

    until(what, holds, PATIENCE)
    return found[0]


@pytest.mark.parametrize(
    "cores",
    [4, pytest.param(2, marks=pytest.mark.long), pytest.param(8, marks=pytest.mark.long)],
)
def test_capacity_waves_and_steps(cluster: LocalCluster, cores: int, tmp_path: Path) -> None:
    conf = {"spark.executor.cores": str(cores)}
    spark = cluster.session(f"cores {cores}", start_with=1, conf=conf)
    engine = SparkEngine(spark, window=7.0)
    engine.attach()
    query = sleeping(spark)
    try:
        one = once(engine, "batches that cost what they sleep", lambda s: _settled(s, 1, cores))
        _is_told_what_it_runs_on(one, cores)
        useful = -(-PARTITIONS // cores)
        decision, _ = plan(Static(slots=50), Guards(maximum=80), one, State())
        assert decision.targets[POOL].slots == useful
        assert decision.bound == "useful-parallelism"
        _limit_of_files_is_known(spark, tmp_path)
        if useful > 1:
            _grows(engine, one, decision.changes, useful, cores)
    finally:
        query.stop()
        engine.detach()
        spark.stop()


def _limit_of_files_is_known(spark: Any, folder: Path) -> None:
    (folder / "one.txt").write_text("a line\n")
    lines = spark.readStream.option("maxFilesPerTrigger", 3).text(str(folder))
    query = lines.writeStream.format("noop").queryName("files").start()

    def told() -> bool:
        found = [at for at in underway_of([query], {}).values() if at.limits]
        return [at.limits for at in found] == [(Admission(files=3),)]

    try:
        until("the limit of a batch is known", told)
    finally:
        query.stop()


def _settled(seen: Snapshot, executors: int, cores: int) -> bool:
    """Whether all executors are warm, and the batches of the window cost no more than they sleep.

    Sleep apart, a task of a few rows costs little by then.
    """
    query = seen.queries["sleeping"]
    if seen.slots(POOL) != executors or any(s.cold for s in seen.pools[POOL]):
        return False
    busy = query.busy_per_record
    return busy is not None and SLEEP / cores <= busy <= MUCH * SLEEP / cores


def _is_told_what_it_runs_on(seen: Snapshot, cores: int) -> None:
    assert seen.slots(POOL) == 1
    facts = seen.facts[POOL]
    assert facts.cores == cores
    assert facts.join is not None and facts.join.origin == "assumed"
    assert seen.queries["sleeping"].trigger == 3.0
    assert seen.pipeline.operators["read"].partitions == PARTITIONS
    assert seen.pipeline.slot_tasks == {POOL: cores}


def _grows(engine: SparkEngine, one: Snapshot, changes: Any, useful: int, cores: int) -> None:
    """All partitions at once: the work of a batch stays the same, and it takes a single wave."""
    engine.apply(changes)
    until("the action has taken effect", lambda: _looked(engine), PATIENCE)
    fresh = once(engine, "new executors", lambda s: s.slots(POOL) == useful)
    assert any(slot.cold for slot in fresh.pools[POOL])
    join = fresh.facts[POOL].join
    assert join is not None and join.origin == "measured" and join.seconds > 0.0
    wide = once(engine, "the same cost on all of them", lambda s: _settled(s, useful, cores))
    waves = PARTITIONS // cores
    before, after = (s.queries["sleeping"].batch_duration or 0.0 for s in (one, wide))
    task = SLEEP * ROWS / PARTITIONS
    assert before >= waves * task
    assert task <= after < before


def _looked(engine: SparkEngine) -> bool:
    engine.look()
    return not engine.pool.in_flight
