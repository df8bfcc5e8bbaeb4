"""The Nexmark queries over known rows, over an oracle's, and their comparison with a stream."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from penstock.core.errors import InputError
from penstock.lab.queries.nexmark import (
    QUERIES,
    NexmarkQuery,
    Settings,
    batch_frames,
    compare,
    start,
    watermark_of,
)
from penstock.lab.queries.running import consumed_of
from penstock.workloads.nexmark import SCHEMAS, TABLES, NexmarkEvents, NexmarkStream
from penstock.workloads.patterns import Constant
from tests.places import REFERENCE

pytestmark = pytest.mark.spark

REFERENCE = REFERENCE / "nexmark"
SETTINGS = Settings(minute=12.0, watermark=1.0)  # Q5 60 s by 12 s, Q8 2 s, Q11 2 s
SECOND = 1_000_000  # microseconds
EVENTS = NexmarkStream(
    events=NexmarkEvents(bids=10, disorder=1.0, active_persons=8, auctions_in_flight=6),
    pattern=Constant(rps=15.0),
    start=1_700_000_000.0,
    seconds=60.0,
    tables=TABLES,
    partitions=2,
)


@pytest.mark.parametrize(("name", "columns"), [("q1", 4), ("q2", 2), ("q3", 4)])
def test_the_reference_rows_give_the_reference_result(spark: Any, name: str, columns: int) -> None:
    """RisingWave's rows; a further column of ours, ``date_time``, is left out."""
    frames: Any = {
        table: spark.read.schema(SCHEMAS[table].ddl)
        .option("header", True)
        .csv(str(REFERENCE / f"{table}.csv"))
        for table in TABLES
    }
    settings = Settings(q2_auctions=(1007, 1020, 2001, 2019, 2087))
    result = QUERIES[name].build(frames, settings)
    texts = result.select(*(F.col(c).cast("string") for c in result.columns[:columns])).collect()
    lines = (REFERENCE / f"expected_{name}.txt").read_text().splitlines()
    separator = "\t" if "\t" in lines[0] else None
    assert Counter(map(tuple, texts)) == Counter(tuple(line.split(separator)) for line in lines)


def test_without_a_list_query_2_takes_the_auctions_that_123_divides(spark: Any) -> None:
    bids: Any = spark.createDataFrame(
        [(122, 1), (123, 2), (246, 3), (247, 4)], "auction bigint, price bigint"
    ).withColumn("date_time", F.current_timestamp())
    query = QUERIES["q2"]
    assert _ids(query.build({"bid": bids}, Settings())) == [123, 246]
    assert _ids(query.build({"bid": bids}, Settings(q2_modulo=122))) == [122]


def test_query_3_meets_sellers_within_five_minutes_either_way(spark: Any) -> None:
    """Times in seconds; a minute lasts 6 s here, so the bound is 30 s."""
    person = (1, "ann", "boise", "id", 100.0)
    auctions = [(n, 1, 10, 100.0 + after) for n, after in enumerate((-30.1, -30, 0, 30, 30.1))]
    elsewhere = [(7, 1, 11, 100.0), (8, 2, 10, 100.0)]
    frames: Any = {
        "person": _at(spark, [person], "id bigint, name string, city string, state string"),
        "auction": _at(spark, auctions + elsewhere, "id bigint, seller bigint, category bigint"),
    }
    assert _ids(QUERIES["q3"].build(frames, Settings(minute=6.0)), "auction") == [1, 2, 3]


@pytest.mark.parametrize("name", ["q5", "q8", "q11"])
def test_windows_agree_with_a_plain_python_oracle(spark: Any, name: str) -> None:
    query = QUERIES[name]
    frames = batch_frames(spark, query, EVENTS, EVENTS.end)
    expected = {"q5": hot_items, "q8": new_users, "q11": user_sessions}[name]()
    assert Counter(map(tuple, _in_micros(query.build(frames, SETTINGS)).collect())) == expected
    assert len(expected) > 5
    # A filter on the result selects whole rows: Spark pushes it below the aggregation.
    half = EVENTS.start + 30
    final = Counter(row for row in expected if _end(query, row) <= half * SECOND)
    got = _in_micros(query.build(frames, SETTINGS).where(query.final(half))).collect()
    assert Counter(map(tuple, got)) == final
    assert 0 < len(final) < len(expected)


def hot_items() -> Counter[tuple[Any, ...]]:
    counts: Counter[tuple[int, int]] = Counter()
    for bid in _rows("bid"):
        last = bid["date_time"] // (12 * SECOND) * 12 * SECOND
        counts.update((last - n * 12 * SECOND, bid["auction"]) for n in range(5))
    most: dict[int, int] = defaultdict(int)
    for (window, _), bids in counts.items():
        most[window] = max(most[window], bids)
    hot = Counter(
        (window, window + 60 * SECOND, auction, bids)
        for (window, auction), bids in counts.items()
        if bids == most[window]
    )
    assert len(hot) > len(most), "a tie is needed for this to be a test of ties"
    return hot


def new_users() -> Counter[tuple[Any, ...]]:
    size = 2 * SECOND
    opened = {(row["seller"], row["date_time"] // size) for row in _rows("auction")}
    return Counter(
        (row["id"], row["name"], window * size, (window + 1) * size)
        for row in _rows("person")
        if (row["id"], window := row["date_time"] // size) in opened
    )


def user_sessions() -> Counter[tuple[Any, ...]]:
    gap = 2 * SECOND
    times: dict[int, list[int]] = defaultdict(list)
    for row in _rows("bid"):
        times[row["bidder"]].append(row["date_time"])
    sessions: Counter[tuple[Any, ...]] = Counter()
    for bidder, unsorted in times.items():
        moments = sorted(unsorted)
        new = [i for i, (a, b) in enumerate(pairwise(moments), 1) if b - a > gap]
        for first, end in pairwise([0, *new, len(moments)]):
            sessions[bidder, end - first, moments[first], moments[end - 1] + gap] += 1
    return sessions


@pytest.mark.parametrize(
    ("change", "missing", "surplus"),
    [
        (lambda rows: rows, 0, 0),
        (lambda rows: rows[1:], 1, 0),
        (lambda rows: [*rows, rows[0]], 0, 1),
        (lambda rows: [(*rows[0][:2], rows[0][2] + 1, rows[0][3]), *rows[1:]], 1, 1),
        (lambda rows: [], 50, 0),
    ],
    ids=["the same", "one dropped", "one twice", "one changed", "nothing"],
)
def test_a_fault_in_the_result_is_seen(
    spark: Any, tmp_path: Path, change: Any, missing: int, surplus: int
) -> None:
    query, until = QUERIES["q1"], EVENTS.start + 6.5
    result = query.build(batch_frames(spark, query, EVENTS, EVENTS.end), SETTINGS)
    final = sorted(result.where(query.final(until)).collect())
    later = result.where(~query.final(until)).take(3)
    changed = [*change(final), *later]
    spark.createDataFrame(changed, result.schema).coalesce(1).write.parquet(
        str(tmp_path / "result")
    )
    found = compare(spark, query, EVENTS, SETTINGS, folder=tmp_path, until=until)
    missing = len(final) if missing == 50 else missing
    assert (found.rows, found.missing, found.surplus) == (len(final), missing, surplus)
    assert found.exact == (missing == surplus == 0)
    assert f"{missing:,} missing, {surplus:,} surplus" in str(found)


def test_what_cannot_be_exact_is_refused_before_anything_starts(tmp_path: Path) -> None:
    nowhere: Any = None
    late = NexmarkStream(
        events=NexmarkEvents(disorder=3.0), pattern=Constant(), start=time.time(), seconds=10.0
    )
    for name, settings, message in (
        ("q5", Settings(watermark=2.0), "watermark = 2 s is below the events' disorder of 3 s"),
        ("q8", Settings(watermark=3.0), "q8 reads person, auction, but person, auction is not"),
    ):
        with pytest.raises(InputError, match=message):
            start(nowhere, QUERIES[name], late, settings, folder=tmp_path, trigger=1)
        with pytest.raises(InputError, match=message):
            compare(nowhere, QUERIES[name], late, settings, folder=tmp_path, until=1.0)
    fine = Settings(watermark=3.0)
    with pytest.raises(InputError, match="trigger = -1 must be ≥ 0"):
        start(nowhere, QUERIES["q1"], late, fine, folder=tmp_path, trigger=-1)
    with pytest.raises(InputError, match="no result in"):
        compare(nowhere, QUERIES["q1"], late, fine, folder=tmp_path, until=1.0)
    wrong: Any = {"minute": 0.0, "watermark": -1.0, "q2_modulo": 0, "q2_auctions": ()}
    for key, value in wrong.items():
        with pytest.raises(InputError, match=key):
            Settings(**{key: value})


def test_how_far_a_query_has_come_is_read_from_its_progress() -> None:
    assert watermark_of(None) is None
    assert watermark_of({"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}) is None
    assert watermark_of({"eventTime": {"watermark": "1970-01-01T00:00:01.500Z"}}) == 1.5
    assert consumed_of(None) == ()
    sources = [{"endOffset": '{"offset": 12}'}, {"endOffset": None}]
    assert consumed_of({"sources": sources}) == (12, 0)


def _rows(table: Any) -> list[dict[str, Any]]:
    rows = EVENTS.rows(table, 0, EVENTS.total(table)).to_pylist()
    return [{**row, "date_time": round(row["date_time"].timestamp() * SECOND)} for row in rows]


def _ids(frame: Any, column: str = "auction") -> list[int]:
    return sorted(row[column] for row in frame.collect())


def _at(spark: Any, rows: Any, ddl: str) -> Any:
    frame = spark.createDataFrame(rows, f"{ddl}, at double")
    return frame.withColumn("date_time", F.timestamp_micros((F.col("at") * SECOND).cast("long")))


def _in_micros(frame: Any) -> Any:
    times = [field.name for field in frame.schema if field.dataType.typeName() == "timestamp"]
    return frame.withColumns({name: F.unix_micros(name) for name in times})


def _end(query: NexmarkQuery, row: tuple[Any, ...]) -> int:
    return int(row[query.columns.index(query.time)])
