"""The Nexmark source on Spark: each row once, batches as large as allowed, tuples like Arrow."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.lab.sources.nexmark import batch, read, register, stream
from penstock.workloads.nexmark import SCHEMAS, TABLES, NexmarkEvents, NexmarkStream, Reading, Table
from penstock.workloads.patterns import Constant

pytestmark = pytest.mark.spark

START = 1_700_000_000.0
EVENTS = NexmarkEvents(seed=3, hot_auctions=2, disorder=0.5)


def past(**kw: Any) -> NexmarkStream:
    """5,000 events that have all been released long ago."""
    pattern = Constant(rps=1000.0)
    return NexmarkStream(
        events=EVENTS, pattern=pattern, start=START, seconds=5.0, tables=TABLES, partitions=3, **kw
    )


def collected(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize("table", TABLES)
def test_batches_and_tuples_are_the_rows_of_the_stream(spark: Any, table: Table) -> None:
    made, until = past(), START + 2.345
    count = made.released(table, until)
    assert 0 < count < made.total(table)
    frame = batch(spark, made, table, until)
    assert frame.columns == list(SCHEMAS[table].columns)
    # Spark's Python timestamps are local and without a zone; microseconds compare.
    micros = {"date_time", "expires"} & set(frame.columns)
    columns = [f"unix_micros({c})" if c in micros else c for c in frame.columns]
    arrow = collected(frame.selectExpr(*columns))
    tuples = read(spark, Reading(stream=made, table=table, until=until, row_by_row=True))
    assert collected(tuples.selectExpr(*columns)) == arrow
    expected = made.rows(table, 0, count)
    values = [
        (expected.column(c).cast("int64") if c in micros else expected.column(c)).to_pylist()
        for c in frame.columns
    ]
    assert arrow == sorted(zip(*values, strict=True))


def test_a_stream_reads_every_row_once_in_batches_of_the_limit(spark: Any, tmp_path: Path) -> None:
    made = past(max_rows=1010)  # 20 epochs: 20 persons, 60 auctions, 920 bids
    frame = stream(spark, made, "bid", ["price", "auction", "bidder"])
    query = (
        frame.writeStream.format("memory")
        .queryName("bids")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
        progress = [p for p in query.recentProgress if p["numInputRows"]]
    finally:
        query.stop()
    total = made.total("bid")
    assert [p["numInputRows"] for p in progress] == [920] * 5
    ends = [json.loads(p["sources"][0]["endOffset"]) for p in progress]
    assert ends == [{"offset": 920 * (i + 1)} for i in range(5)]
    latest = json.loads(progress[0]["sources"][0]["latestOffset"])
    assert latest == {"offset": total}  # so the lag is latest − end
    rows = made.rows("bid", 0, total, ["price", "auction", "bidder"])
    assert collected(spark.table("bids")) == sorted(tuple(r.values()) for r in rows.to_pylist())


def test_options_as_a_user_writes_them(spark: Any) -> None:
    register(spark)
    options = {"table": "person", "columns": "id,state", "start": int(time.time()), "seconds": 60}
    frame = spark.read.format("penstock-nexmark").options(**options, preset="thesis").load()
    assert frame.columns == ["id", "state"]
    assert frame.count() == 60_000
    with pytest.raises(Exception, match="did you mean 'table'"):
        spark.read.format("penstock-nexmark").option("tabel", "bid").load()
