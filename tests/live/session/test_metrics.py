"""What is measured of running queries agrees with what their sinks saw."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from penstock.batches.progress import batch_of
from penstock.batches.values import Batch
from penstock.core.codec import from_json, to_json
from penstock.core.errors import EngineError, NotReady
from penstock.core.model import Snapshot
from penstock.core.sanity import believable
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.lab.queries.nexmark import QUERIES, Settings, frames, start, stop
from penstock.spark.engine import SparkEngine
from penstock.workloads.nexmark import NexmarkStream
from penstock.workloads.patterns import Constant
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark

BATCHES = 4
MOST_ROWS = 1_000_000  # of a batch: far more than there ever are
PATIENCE = 240.0  # seconds; a wait ends as soon as it can


@pytest.fixture
def engine(spark: Any) -> Iterator[SparkEngine]:
    watching = SparkEngine(spark, window=600.0)
    watching.attach()
    look(watching)
    yield watching
    watching.detach()


def look(engine: SparkEngine) -> Snapshot | None:
    """What there is to see; a busy driver may not answer in time, and is asked again."""
    try:
        return engine.observe()
    except (NotReady, EngineError):
        return None


def test_two_queries_are_measured_as_their_sinks_saw_them(
    spark: Any, cluster: LocalCluster, engine: SparkEngine
) -> None:
    """Q1 into a sink that keeps when each bid was released; Q8, a join, beside it."""
    folder = cluster.folder / f"metrics-{time.monotonic_ns()}"
    released: dict[int, npt.NDArray[np.float64]] = {}

    def sink(rows: Any, batch: int) -> None:
        times = rows.selectExpr("cast(date_time as double) as t").toArrow()["t"]
        released[batch] = np.asarray(times)

    bids = NexmarkStream(
        pattern=Constant(rps=500.0),
        start=time.time(),
        seconds=3600,
        partitions=2,
        max_rows=MOST_ROWS,
    )
    both = NexmarkStream(
        pattern=Constant(rps=200.0),
        start=time.time(),
        seconds=3600,
        partitions=2,
        tables=("person", "auction"),
    )
    q8 = start(
        spark, QUERIES["q8"], both, Settings(minute=6.0), folder=folder / "q8", trigger=2,
        sink="noop",
    )  # fmt: skip
    _has_run(q8, 1)  # one after the other: each starts Python workers, which takes the driver long
    q1 = (
        QUERIES["q1"].build(frames(spark, QUERIES["q1"], bids), Settings())
        .writeStream.queryName("q1")
        .option("checkpointLocation", str(folder / "q1"))
        .trigger(processingTime="1 second")
        .foreachBatch(sink)
        .start()
    )  # fmt: skip
    try:
        seen = _observed(engine, q1, q8)
        progress = [batch_of(json.loads(p.json)) for p in q1.recentProgress]
        stop(q8)
        until("the second query is forgotten", lambda: engine.queries == ("q1",))
        alone = _observed(engine, q1)
    finally:
        stop(q1)
        stop(q8)
    _agrees_with_the_sink(seen, progress, released)
    _is_one_pipeline(seen)
    _is_told_what_the_queries_were(seen)
    assert set(alone.operators) == {"read"}
    assert believable(seen) == (seen, ())
    assert from_json(Snapshot, json.loads(json.dumps(to_json(seen)))) == seen


def _has_run(query: Any, batches: int) -> None:
    def done() -> bool:
        assert query.isActive, query.exception()
        progress = query.lastProgress
        return progress is not None and int(progress["batchId"]) >= batches

    until(f"{batches} batches of {query.name}", done, PATIENCE)


def _observed(engine: SparkEngine, *queries: Any) -> Snapshot:
    """What is seen once each query has finished some batches, most of them not its first."""
    found: list[Snapshot] = []

    def all_seen() -> bool:
        found[:] = [seen] if (seen := look(engine)) is not None else []
        seen_queries = [q for s in found for q in s.queries.values()]
        # Without a batch that counts before its end: the sink has not seen that yet.
        known = [q for q in seen_queries if q.latency_p50 is not None and q.running_for is None]
        return len(known) == len(queries)

    for query in queries:
        _has_run(query, BATCHES)
    until("all queries are seen", all_seen, PATIENCE)
    return found[0]


def _agrees_with_the_sink(
    seen: Snapshot, progress: list[Batch], released: dict[int, npt.NDArray[np.float64]]
) -> None:
    query = seen.queries["q1"]
    # The window may end a batch before the last, and has this many batches and rows.
    ended = [b for b in progress if b.id in released]
    runs = [ended[max(0, n - query.batches) : n] for n in range(len(ended), 0, -1)]
    counted = next(run for run in runs if sum(b.rows for b in run) == query.rows)
    # When the records of batch 0 were released, no planning before it tells.
    latencies = np.concatenate([b.end - released[b.id] for b in counted if b.id])
    for share, figure in ((50, query.latency_p50), (95, query.latency_p95)):
        true = float(np.percentile(latencies, share))
        assert figure == pytest.approx(true, abs=0.5 + 0.2 * true)  # a planning takes its time
    assert sum(len(released[b.id]) for b in counted) == query.rows
    assert query.lag is not None
    assert query.offered_rate == pytest.approx(500.0, rel=0.2)


def _is_told_what_the_queries_were(seen: Snapshot) -> None:
    q1, q8 = seen.queries["q1"], seen.queries["q8"]
    assert (q1.trigger, q1.admission_limit) == (1.0, MOST_ROWS)
    assert [s.most_rows for s in q1.sources] == [MOST_ROWS]
    assert (q8.trigger, q8.admission_limit) == (2.0, None)
    assert q1.busy_per_record is not None and q1.busy_per_record > 0.0
    facts = seen.facts["executors"]
    assert facts.cores == 1.0
    assert facts.join is not None


def _is_one_pipeline(seen: Snapshot) -> None:
    slots = seen.slots("executors")
    assert set(seen.operators) >= {"q1/read", "q8/read-1", "q8/read-2"}
    assert sum(o.parallelism for o in seen.operators.values()) == pytest.approx(slots)
    for o in seen.operators.values():
        assert (o.busy or 0.0) + (o.idle or 0.0) + (o.backpressured or 0.0) == pytest.approx(1.0)
    persons, auctions = (seen.operators[f"q8/read-{i}"].offered_rate or 0.0 for i in (1, 2))
    assert persons + auctions == pytest.approx(200.0, rel=0.2)
    assert auctions == pytest.approx(3 * persons, rel=0.1)
    q8 = seen.queries["q8"]
    assert q8.state_rows is not None
    assert q8.state_bytes is not None
    assert q8.state_rows > 0
    assert q8.skew is not None
    assert q8.skew >= 0.99
    assert q8.partitions
    assert sum(q.busy or 0.0 for q in seen.queries.values()) <= 1.0 + 1e-9
