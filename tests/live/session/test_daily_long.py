"""The other cases of daily life on real Spark: queries of every shape, and what goes wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.core.findings import Finding, sentence_of
from penstock.core.model import Snapshot
from penstock.core.sanity import believable
from penstock.policies import DS2
from tests.fakes.waiting import until
from tests.live.session.daily import RATE, ROCKS_DB, STATE_STORE, Daily, batches, configured

pytestmark = [pytest.mark.spark, pytest.mark.long]

ADAPTIVE = "spark.sql.adaptive.enabled"
SHUFFLE = "spark.sql.shuffle.partitions"
SMALL = {  # partitions of a few hundred rows, so that a larger batch has more of them
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1KB",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4KB",
}


def several_jobs(rows: DataFrame, batch: int) -> None:
    rows.count()
    rows.groupBy((F.col("value") % 5).alias("key")).count().collect()


def cached(rows: DataFrame, batch: int) -> None:
    rows.persist()
    several_jobs(rows, batch)
    rows.unpersist()


def joined(rows: DataFrame) -> DataFrame:
    """With another stream of the same numbers, which began a moment later."""
    source = rows.sparkSession.readStream.format("rate").option("rowsPerSecond", RATE)
    right = source.option("numPartitions", 2).load().toDF("later", "other")
    near = "later BETWEEN timestamp - INTERVAL 5 SECONDS AND timestamp + INTERVAL 5 SECONDS"
    left = rows.withWatermark("timestamp", "2 seconds")
    return left.join(right.withWatermark("later", "2 seconds"), F.expr(f"value = other AND {near}"))


def deduplicated(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("timestamp", "2 seconds").dropDuplicates(["value", "timestamp"])


def transformed(rows: DataFrame) -> DataFrame:
    pytest.importorskip("google.protobuf")  # by which Spark's Python workers ask for state

    # Inside, so that executors get the class itself and not its address.
    class Counter(StatefulProcessor):
        """Counts the rows of each key."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            self.state = handle.getValueState("count", "count long")

        def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Any:  # noqa: N802
            from pyspark.sql import Row

            before = self.state.get()
            count = (before[0] if before else 0) + sum(1 for _ in rows)
            self.state.update((count,))
            yield Row(key=key[0], count=count)

        def close(self) -> None:
            pass

    keyed = rows.select((F.col("value") % 7).alias("key"), "value").groupBy("key")
    return keyed.transformWithState(
        Counter(), "key long, count long", outputMode="Update", timeMode="None"
    )


def in_pandas(rows: DataFrame) -> DataFrame:
    pytest.importorskip("pandas")

    def count(key: Any, frames: Any, state: Any) -> Any:
        pandas = import_module("pandas")
        seen = (state.get[0] if state.exists else 0) + sum(len(f) for f in frames)
        state.update((seen,))
        yield pandas.DataFrame({"key": [key[0]], "count": [seen]})

    keyed = rows.select((F.col("value") % 7).alias("key"), "value").groupBy("key")
    kinds = ("key long, count long", "count long", "update", "NoTimeout")
    return keyed.applyInPandasWithState(count, *kinds)


@dataclass(frozen=True)
class Shape:
    """A query, what it is to be seen as, and how often each of its rows is read."""

    operators: set[str]
    build: Callable[[DataFrame], DataFrame] = lambda rows: rows
    write: Callable[[DataFrame, int], None] | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    mode: str = "append"
    reads: int = 1


SHAPES = {
    "foreachBatch with several jobs": Shape(
        {"read-1", "read-2", "stage-3", "stage-4"}, write=several_jobs, reads=2
    ),
    "caching": Shape({"read-1", "read-2", "read-3", "stage-4", "stage-5"}, write=cached),
    "a stream-stream join": Shape({"read-1", "read-2", "join"}, joined, reads=2),
    "dropDuplicates": Shape({"read", "deduplicate"}, deduplicated),
    "transformWithState": Shape(
        {"read", "transformWithState"}, transformed, mode="update", conf={STATE_STORE: ROCKS_DB}
    ),
    "applyInPandasWithState": Shape({"read", "applyInPandasWithState"}, in_pandas, mode="update"),
    "adaptive execution": Shape(
        {"read", "stage-2"}, lambda rows: rows.repartition(6, "value"), conf={ADAPTIVE: "true"}
    ),
    "no adaptive execution": Shape(
        {"read", "stage-2"}, lambda rows: rows.repartition(6, "value"), conf={ADAPTIVE: "false"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_query_of_this_shape_is_measured(daily: Daily, name: str) -> None:
    """A thousand records a second are offered, every stage has its need, nothing is strange."""
    shape = SHAPES[name]
    with configured(daily.spark, shape.conf), daily.watched(DS2(), mode="advise", window=20.0):
        writer = shape.build(daily.rows()).writeStream.queryName("q").outputMode(shape.mode)
        writer = writer.trigger(processingTime="1 second")
        writer = writer.option("checkpointLocation", daily.checkpoint())
        writer = writer.foreachBatch(shape.write) if shape.write else writer.format("noop")
        query = writer.start()
        until("eight batches", lambda: batches(query) >= 8)
        count = len(daily.decisions)
        until("it is sized", lambda: len(daily.decisions) > count and _sized(daily), 30.0)
    decision = daily.decisions[-1]
    seen = decision.seen
    assert set(seen.operators) == shape.operators
    assert daily.query("q").offered_rate == pytest.approx(shape.reads * RATE, rel=0.25)
    assert believable(seen) == (seen, ())
    assert set(decision.proposal.needs) == shape.operators
    assert not any(d.faults for d in daily.decisions)
    assert seen.unmeasured == ()
    reading = [o.offered_rate for o in seen.operators.values() if o.offered_rate is not None]
    if shape.write is several_jobs:  # each of its two readings has what there is to read
        assert reading == pytest.approx([RATE, RATE], rel=0.25)


def _sized(daily: Daily) -> bool:
    if not daily.decisions:
        return False
    decision = daily.decisions[-1]
    return set(decision.proposal.needs) == set(decision.seen.operators)


def test_partitions_that_spark_adapts_are_no_limit(daily: Daily) -> None:
    """The load rises, so that batches differ: Spark gives the larger ones more partitions."""
    source = daily.spark.readStream.format("rate").option("rowsPerSecond", 5 * RATE)
    rows = source.option("rampUpTime", "15s").option("numPartitions", 2).load()
    conf = {ADAPTIVE: "true", SHUFFLE: "40", **SMALL}
    with configured(daily.spark, conf), daily.watched(DS2(), mode="advise", window=20.0):
        writer = rows.repartition("value").writeStream.queryName("q").format("noop")
        writer.trigger(processingTime="1 second").start()
        until("it has no limit", lambda: any(_unlimited(d.seen) for d in daily.decisions))
    seen = daily.decisions[-1].seen
    assert seen.pipeline.operators["read"].partitions == 2
    assert seen.pipeline.operators["stage-2"].partitions is None


def _unlimited(seen: Snapshot) -> bool:
    return seen.pipeline.useful_slots("executors") is None


def test_several_sinks_are_several_queries(daily: Daily) -> None:
    """One source, two queries: what is offered counts for each."""
    with daily.watched(DS2(), mode="advise", window=20.0):
        rows = daily.rows()
        queries = [
            rows.writeStream.queryName(name).format(sink).trigger(processingTime="1 second")
            .option("checkpointLocation", daily.checkpoint())
            .option("path", str(daily.folder / name)).start()
            for name, sink in (("files", "parquet"), ("nothing", "noop"))
        ]  # fmt: skip
        for query in queries:
            until("six batches", lambda q=query: batches(q) >= 6)  # type: ignore[misc]
        until(
            "both are sized", lambda: _sized(daily) and len(daily.decisions[-1].seen.queries) == 2
        )
    seen = daily.decisions[-1].seen
    assert set(seen.operators) == {"files/read", "nothing/read"}
    for name in ("files", "nothing"):
        assert daily.query(name).offered_rate == pytest.approx(RATE, rel=0.25)


def test_one_stops_while_another_starts(daily: Daily) -> None:
    """While nothing is known of the new one, no executor goes; afterwards it alone is sized."""

    @F.udf("long")
    def slowly(value: int) -> int:
        time.sleep(0.005)
        return value

    third = daily.rows(10).writeStream.queryName("third").format("noop")
    third.trigger(processingTime="1 second").start()
    first = daily.rows().writeStream.queryName("first").format("noop").start()
    with daily.watched(mode="advise"):
        until("both are seen", lambda: set(_names(daily)) == {"first", "third"})
        first.stop()
        count = len(daily.decisions)
        second = daily.rows().repartition(6).select(slowly("value")).writeStream.queryName("second")
        second.format("noop").start()
        until("the second is seen", lambda: set(_names(daily)) == {"second", "third"})
    new = [d for d in daily.decisions[count:] if "second" in d.seen.unmeasured]
    assert new, "the second was measured at the first look"
    for decision in new:
        assert "unmeasured" in [e.guard for e in decision.effects]
        assert decision.changes == {}


def _names(daily: Daily) -> tuple[str, ...]:
    return tuple(daily.decisions[-1].seen.queries) if daily.decisions else ()


def test_a_single_batch_keeps_its_executors(daily: Daily) -> None:
    """Trigger Once: one batch over all that is there."""
    files = str(daily.folder / "in")
    daily.spark.range(0, 1200, 1, 6).write.parquet(files)
    rows = daily.spark.readStream.schema("id long").parquet(files)
    nap = F.expr("java_method('java.lang.Thread', 'sleep', cast(10 as bigint))")
    with daily.watched():
        query = rows.select("id", nap).writeStream.queryName("once").trigger(once=True)
        running = query.format("noop").start()
        until("the guard holds", lambda: daily.held_by("backfill"))
        until("it has ended by itself", lambda: not running.isActive)
    assert running.exception() is None
    assert daily.query("once").trigger_kind == "once"
    assert sentence_of(Finding(kind="backfill", query="once")) in daily.said


def test_a_session_without_a_query_says_so_after_a_minute(daily: Daily) -> None:
    began = time.monotonic()
    with daily.watched():
        until("it is said", lambda: any("no streaming query" in s for s in daily.said), 120.0)
    assert time.monotonic() - began >= 60.0
    assert daily.decisions == []


def test_a_first_batch_of_more_than_a_minute_says_how_far_it_is(daily: Daily) -> None:
    """Sixty tasks of four seconds on three executors: eighty seconds."""

    @F.udf("long")
    def slowly(value: int) -> int:
        time.sleep(4.0)
        return value

    files = str(daily.folder / "in")
    daily.spark.range(0, 60, 1, 60).write.parquet(files)
    with configured(daily.spark, {"spark.sql.files.openCostInBytes": str(2**40)}):
        rows = daily.spark.readStream.schema("id long").parquet(files)
        with daily.watched(mode="advise"):
            query = rows.select(slowly("id")).writeStream.queryName("slow").format("noop").start()
            said = "slow: no finished batch yet; batch 0 runs since 6"
            until("it is said", lambda: any(s.startswith(said) for s in daily.said), 150.0)
            found = daily.found("first-batch")
            assert query.lastProgress is None
    assert found is not None
    assert found.tasks == 60
    assert found.tasks_ended is not None and 20 <= found.tasks_ended <= 57


def test_a_hot_partition_is_named(daily: Daily) -> None:
    """Most rows have one key, and each takes time: one of eight tasks has most of the work."""

    @F.udf("long")
    def slowly(value: int) -> int:
        time.sleep(0.01)
        return value

    key = F.expr("CASE WHEN value % 20 < 17 THEN 0 ELSE value END").alias("key")
    with daily.watched(mode="advise"):
        rows = daily.rows(200).select(key, "value").repartition(8, "key").select(slowly("value"))
        writer = rows.writeStream.queryName("skewed").trigger(processingTime="1 second")
        query = writer.format("noop").start()
        until("it is found", lambda: daily.found("hot-partition") is not None)
        found = daily.found("hot-partition")
        assert query.isActive
    assert found is not None
    # Spark's own hash says where a key goes.
    (hot,) = daily.spark.range(1).selectExpr("pmod(hash(0L), 8) AS at").collect()
    assert (found.partition, found.tasks, found.stage) == (hot["at"], 8, "stage-2")
    assert found.share == pytest.approx(0.87, abs=0.05)  # 85 % and an eighth of the rest
    assert sentence_of(found).split(" is hot")[0] in " ".join(daily.said)


def test_a_slow_sink_is_named(daily: Daily) -> None:
    """Every row waits in the writing task; no CPU is used."""
    nap = F.expr("java_method('java.lang.Thread', 'sleep', cast(10 as bigint))")
    with daily.watched(mode="advise"):
        writer = daily.rows(300).select("value", nap).writeStream.queryName("slow")
        writer.trigger(processingTime="1 second").format("noop").start()
        until("it is found", lambda: daily.found("slow-sink") is not None)
        found = daily.found("slow-sink")
    assert found is not None and found.share is not None
    assert found.share <= 0.1
    assert found.place == "NoopTable"


def test_a_continuous_query_is_left_alone(daily: Daily) -> None:
    """Spark tells nothing of it; beside one that is measured no executor goes."""
    other = daily.rows().writeStream.queryName("batches").format("noop")
    other.trigger(processingTime="1 second").start()
    flow = daily.spark.readStream.format("rate").option("numPartitions", 1).load()
    flow.writeStream.queryName("flow").format("noop").trigger(continuous="1 second").start()
    with daily.watched():
        until("the other is seen", lambda: "batches" in _names(daily))
        until("the guard holds", lambda: daily.held_by("unmeasured"))
        assert daily.decisions[-1].seen.unmeasured == ("flow",)
    assert sentence_of(Finding(kind="continuous", query="flow")) in daily.said
    assert not any(d.applied for d in daily.decisions)
