"""Cases of daily life on real Spark: what Penstock says, what it does, what it lets be.

Each query runs on three executors, and the policy wants one: what is kept, a guard keeps. The
cases that take long are in test_daily_long.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from penstock.core.findings import Finding, sentence_of
from tests.fakes.waiting import until
from tests.live.session.daily import ROCKS_DB, STATE_STORE, Daily, batches, configured, pausing

pytestmark = pytest.mark.spark


def test_a_backfill_keeps_its_executors(daily: Daily) -> None:
    """AvailableNow over files, one a batch; each batch takes a second, so that it can be seen."""
    files = str(daily.folder / "in")
    daily.spark.range(1200).repartition(4).write.parquet(files)
    rows = daily.spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(files)
    writer = rows.writeStream.queryName("backfill").trigger(availableNow=True)
    with daily.watched():
        query = writer.foreachBatch(pausing(1.0)).start()
        until("the guard holds", lambda: daily.held_by("backfill"))
        until("it has ended by itself", lambda: not query.isActive)
        kept = {d.seen.slots("executors") for d in daily.decisions}
    assert query.exception() is None
    assert kept == {3}
    kinds = {q.trigger_kind for d in daily.decisions for q in d.seen.queries.values()}
    assert kinds == {"available-now"}
    (said,) = [line for line in daily.said if line.startswith("backfill: ")]
    assert said == sentence_of(Finding(kind="backfill", query="backfill"))


def test_a_query_that_fails_and_is_started_again(daily: Daily) -> None:
    """Its second run begins anew, and keeps the executors until it is measured."""
    checkpoint = daily.checkpoint()

    def failing(rows: DataFrame, batch: int) -> None:
        rows.count()
        if batch == 2:
            raise RuntimeError("the sink is gone")

    def start(write: Any) -> Any:
        writer = daily.rows().writeStream.queryName("orders").foreachBatch(write)
        return writer.option("checkpointLocation", checkpoint).start()

    with daily.watched(mode="advise"):
        first = start(failing)
        until("it has failed", lambda: first.exception() is not None)
        until("that is said", lambda: any("query orders failed" in s for s in daily.said))
        second = start(pausing(0.1))
        again = sentence_of(Finding(kind="restarted", query="orders"))
        until("its restart is said", lambda: again in daily.said)
        until("it is measured", lambda: bool(daily.found("restarted")) and batches(second) >= 3)
        seen = daily.decisions[-1].seen
    assert set(seen.queries) == {"orders"}
    assert daily.said.count(again) == 1
    assert second.isActive


def test_a_driver_that_is_the_bottleneck(daily: Daily) -> None:
    """Two seconds of every batch pass in the program's own function; the trigger is one second."""
    writer = daily.rows().writeStream.queryName("slow").trigger(processingTime="1 second")
    with daily.watched(mode="advise"):
        query = writer.foreachBatch(pausing(2.0)).start()
        until("it is found", lambda: daily.found("driver") is not None)
        found = daily.found("driver")
        progress = query.lastProgress
    assert found is not None and progress is not None
    assert found.place == "foreachBatch"
    assert found.seconds is not None and found.whole is not None
    assert 2.0 <= found.seconds <= found.whole
    assert found.whole == pytest.approx(progress["batchDuration"] / 1e3, rel=0.5)
    (said,) = [line for line in daily.said if "more executors do not help" in line]
    assert said.startswith("slow: ")
    assert daily.found("slow-sink") is None and daily.found("hot-partition") is None


def low_latency(spark: Any, partitions: int) -> tuple[DataFrame, Callable[[str], None]]:
    """Spark's own source for tests of real-time mode, and what adds a record to it."""
    jvm = spark.sparkContext._jvm
    kind = jvm.org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
    stream = kind.apply(
        spark._jsparkSession, partitions, jvm.org.apache.spark.sql.Encoders.STRING()
    )
    as_seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq
    return DataFrame(stream.toDF(), spark), lambda value: stream.addData(as_seq([value]))


REAL_TIME = {
    STATE_STORE: ROCKS_DB,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # it knows no sink for tests
}


def test_a_real_time_query_keeps_a_core_for_every_task(daily: Daily) -> None:
    """Two tasks read, one aggregates: all three live as long as a batch, at the same time."""
    rows, add = low_latency(daily.spark, 2)
    for i in range(10):
        add(f"key {i % 3}")
    with configured(daily.spark, REAL_TIME), daily.watched():
        query: Any = (
            rows.groupBy("value").count().writeStream.format("noop").queryName("now")
            .outputMode("update").option("checkpointLocation", daily.checkpoint())
            .trigger(realTime="5 seconds").start()  # type: ignore[call-overload]
        )  # fmt: skip
        until("its tasks are counted", lambda: daily.query("now").held_slots == 3.0)
        count = batches(query)
        until("it goes on", lambda: batches(query) > count)
    assert daily.query("now").trigger_kind == "real-time"
    assert daily.held_by("real-time")
    whys = {e.why for d in daily.decisions for e in d.effects if e.guard == "real-time"}
    assert any("not known" in why for why in whys)  # until its first batch had ended
    assert any("fails with fewer than 3 executors" in line for line in daily.said)
    assert not any(d.applied for d in daily.decisions)
