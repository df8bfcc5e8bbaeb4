"""The status store inside the driver tells what REST tells, while a query runs and afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from penstock.batches.values import Stage
from penstock.history.event_log import is_event_log, read_event_log
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.spark.read.rest import Rest
from penstock.spark.read.status import Status
from penstock.spark.read.store import Store
from penstock.spark.read.underway import underway_of
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark

# What goes on while we look at one and then at the other.
MOVING = {"totalGCTime", "peakMemoryMetrics", "memoryMetrics", "memoryUsed", "totalDuration"}


def both(spark: Any) -> tuple[Status, Status]:
    context = spark.sparkContext
    return Store(context), Rest(context.uiWebUrl, context.applicationId)


def test_the_store_and_rest_tell_the_same(spark: Any) -> None:
    store, rest = both(spark)
    for status in (store, rest):
        status.new_stages()
    counted = spark.range(0, 40_000, 1, 4).groupBy((F.col("id") % 7).alias("key")).count()
    assert counted.count() == 7
    seen = {}
    for name, status in (("store", store), ("rest", rest)):
        found: list[Any] = []
        until("its stages have ended", lambda s=status, f=found: _ended(s, f))  # type: ignore[misc]
        seen[name] = {s.id: s for s in found}
    assert seen["store"] == seen["rest"]
    assert any(s.write_records for s in seen["store"].values())
    for stage in seen["store"].values():
        tasks = store.tasks(stage)
        assert tasks == rest.tasks(stage)
        assert len(tasks) == stage.tasks
    assert store.newest_stage() == rest.newest_stage()
    assert store.stage(10**6) is None and rest.stage(10**6) is None
    assert store.driver_cores() == rest.driver_cores()
    here, there = (
        [{k: v for k, v in e.items() if k not in MOVING} for e in status.executor_documents()]
        for status in (store, rest)
    )
    assert here == there


def test_a_batch_is_seen_while_it_runs(spark: Any) -> None:
    """Forty tasks a batch, of which a few run at a time."""
    store, _ = both(spark)
    store.new_stages()

    @F.udf("long")
    def slowly(value: int) -> int:
        import time

        time.sleep(0.02)
        return value

    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    query = (
        rows.repartition(40).select(slowly("value")).writeStream.format("noop")
        .queryName("slow").start()
    )  # fmt: skip
    try:
        until("a stage with tasks done and to come", lambda: _in_the_middle(store))
        (at,) = underway_of([query], {}).values()
        assert (at.query, at.run_id, at.trigger) == ("slow", str(query.runId), 0.0)
        last = query.lastProgress
        if at.batch is not None and last is not None:
            assert at.batch.id >= last["batchId"]
        assert underway_of([query], {at.run_id: 10**9})[at.run_id].batch is None
    finally:
        query.stop()


def test_the_event_log_tells_the_same(spark: Any, cluster: LocalCluster) -> None:
    store, _ = both(spark)
    rows = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    query = (
        rows.groupBy((F.col("value") % 5).alias("key")).count()
        .writeStream.format("noop").outputMode("complete").queryName("counted").start()
    )  # fmt: skip
    try:
        until("three batches with data", lambda: _with_data(query) >= 3)
    finally:
        query.stop()
    progress = {p["batchId"]: p["numInputRows"] for p in map(_document, query.recentProgress)}
    (log,) = (cluster.folder / "events").iterdir()
    assert is_event_log(log)
    found = read_event_log(log).query("counted")
    assert found.run_id == str(query.runId)
    assert {b.id: b.rows for b in found.batches if not b.idle} == progress
    stages = [s for some in found.stages.values() for s in some]
    assert sum(s.input_records for s in stages) == sum(progress.values())
    for stage in stages:
        told = store.stage(stage.id)
        assert told is not None and _rounded(stage) == _rounded(told)
        if stage.id in found.tasks:
            by_partition = sorted(found.tasks[stage.id], key=lambda t: t.partition)
            assert by_partition == sorted(store.tasks(stage), key=lambda t: t.partition)


def _rounded(stage: Stage) -> Stage:
    """Sums of nanoseconds in another order."""
    return replace(stage, run_time=round(stage.run_time, 6), cpu_time=round(stage.cpu_time, 6))


def _with_data(query: Any) -> int:
    return sum(_document(p)["numInputRows"] > 0 for p in query.recentProgress)


def _document(progress: Any) -> dict[str, Any]:
    found = json.loads(progress.json)
    assert isinstance(found, dict)
    return found


def _ended(status: Status, found: list[Any]) -> bool:
    found += status.new_stages()
    return bool(found) and not status.running


def _in_the_middle(status: Status) -> bool:
    status.new_stages()
    return any(0 < s.completed < s.tasks and s.run_id for s in status.running)
