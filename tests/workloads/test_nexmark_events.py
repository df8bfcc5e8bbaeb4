"""Nexmark's events without Spark: every row is a pure function of seed, table and number."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.workloads.nexmark import (
    PRESETS,
    SCHEMAS,
    TABLES,
    NexmarkEvents,
    NexmarkStream,
    Table,
)
from penstock.workloads.patterns import Constant, Cosine, Pattern, Random, Step, Trace

START = 1_700_000_000.0
PATTERNS: list[Pattern] = [
    Constant(rps=700.0),
    Cosine(low=0, high=1400, period=10),
    Step(low=800, high=0, at=5, hold=10),
    Random(start=500, change=300, maximum=1200, minute=3.0, seed=4),
    Trace(file="taxi", scale=100.0, speed=600.0),
]
events = st.builds(
    NexmarkEvents,
    seed=st.integers(0, 2**64),
    persons=st.integers(1, 4),
    auctions=st.integers(1, 5),
    bids=st.integers(1, 50),
    hot_sellers=st.integers(1, 5),
    hot_auctions=st.integers(1, 5),
    hot_bidders=st.integers(1, 5),
    disorder=st.sampled_from([0.0, 1e-6, 0.3, 5.0]),
    active_persons=st.integers(1, 50),
    auctions_in_flight=st.integers(1, 50),
)
tables = st.sets(st.sampled_from(TABLES), min_size=1).map(lambda s: tuple(sorted(s)))


def stream(events: NexmarkEvents, pattern: Pattern = PATTERNS[0], **kw: Any) -> NexmarkStream:
    fields: dict[str, Any] = {"start": START, "seconds": 20.0, "tables": TABLES} | kw
    return NexmarkStream(events=events, pattern=pattern, **fields)


def micros(batch: pa.RecordBatch, column: str = "date_time") -> list[int]:
    values: list[int] = batch.column(column).cast(pa.int64()).to_pylist()
    return values


@settings(max_examples=40)
@given(
    events=events, pattern=st.sampled_from(PATTERNS), tables=tables, cuts=st.sets(st.floats(0, 1))
)
def test_rows_do_not_depend_on_how_a_range_is_cut(
    events: NexmarkEvents, pattern: Pattern, tables: tuple[Table, ...], cuts: set[float]
) -> None:
    made = stream(events, pattern, tables=tables)
    for table in tables:
        total = made.total(table)
        edges = sorted({0, total, *(int(c * total) for c in cuts)})
        whole = pa.Table.from_batches([made.rows(table, 0, total)])
        pieces = [made.rows(table, a, b) for a, b in pairwise(edges)]
        if pieces:
            assert pa.Table.from_batches(pieces).combine_chunks().equals(whole)


@settings(max_examples=40)
@given(events=events, table=st.sampled_from(TABLES), data=st.data())
def test_a_column_is_the_same_whichever_others_are_read(
    events: NexmarkEvents, table: Table, data: st.DataObject
) -> None:
    every = list(SCHEMAS[table].columns)
    columns = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    made = stream(events)
    some = made.rows(table, 5, 40 if table == "bid" else 9, columns)
    assert some.schema == SCHEMAS[table].select(columns).arrow
    assert some.equals(made.rows(table, 5, 5 + some.num_rows).select(columns))


@settings(max_examples=60)
@given(events=events, pattern=st.sampled_from(PATTERNS), tables=tables, data=st.data())
def test_released_counts_exactly_the_rows_whose_release_has_come(
    events: NexmarkEvents, pattern: Pattern, tables: tuple[Table, ...], data: st.DataObject
) -> None:
    made = stream(events, pattern, tables=tables)
    moments = sorted(data.draw(st.lists(st.floats(-1, 25), min_size=2, max_size=5)))
    for table in tables:
        times = made.release_times(table, 0, made.total(table))
        assert (np.diff(times) >= 0).all()
        # The moments right around a release are where a rounding error would show.
        near = [
            (int(t) + by) / 1e6
            for t in data.draw(st.lists(st.sampled_from(times.tolist() or [0]), max_size=3))
            for by in (-1, 0, 1)
        ]
        asked = sorted([*(START + m for m in moments), *near])
        counts = [made.released(table, now) for now in asked]
        assert counts == [int((times <= round(now * 1e6)).sum()) for now in asked]
        assert made.released(table, START - 1.0) == 0
        assert made.released(table, made.end) == made.total(table)


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_the_pattern_says_how_many_are_released(pattern: Pattern) -> None:
    made = stream(NexmarkEvents(), pattern)
    for elapsed in (0.0, 3.0, 5.0, 12.5, 20.0):  # points of the grid: exact there
        released = sum(made.released(table, START + elapsed) for table in TABLES)
        assert released == pytest.approx(int(pattern.offered(elapsed)), abs=1)


@settings(max_examples=40)
@given(events=events, tables=tables, epochs=st.integers(1, 20))
def test_every_epoch_has_its_proportions_in_order(
    events: NexmarkEvents, tables: tuple[Table, ...], epochs: int
) -> None:
    width = sum(events.per_epoch(table) for table in tables)
    made = stream(events, Constant(rps=float(width)), tables=tables, seconds=float(epochs))
    assert {t: made.total(t) for t in tables} == {t: epochs * events.per_epoch(t) for t in tables}
    released = [
        (time, TABLES.index(table))
        for table in tables
        for time in made.release_times(table, 0, made.total(table)).tolist()
    ]
    kinds = [kind for _, kind in sorted(released)]
    epoch = [TABLES.index(t) for t in TABLES if t in tables for _ in range(events.per_epoch(t))]
    assert kinds == epoch * epochs


@settings(max_examples=40)
@given(events=events)
def test_who_is_named_exists_by_then(events: NexmarkEvents) -> None:
    """A naive walk through the sequence, one event after another, is the oracle."""
    made = stream(events, Constant(rps=250.0))
    columns = {"person": ["id"], "auction": ["id", "seller"], "bid": ["auction", "bidder"]}
    rows = {t: made.rows(t, 0, made.total(t), columns[t]).to_pylist() for t in TABLES}
    kinds = [t for t in TABLES for _ in range(events.per_epoch(t))]
    named = {t: (tuple(row.values()) for row in rows[t]) for t in TABLES}
    persons = auctions = 1000  # the next of each: those that exist are below
    for place in range(sum(map(len, rows.values()))):
        kind = kinds[place % len(kinds)]
        row = next(named[kind])
        if kind == "person":
            assert row == (persons,)
            persons += 1
        elif kind == "auction":
            assert row[0] == auctions and 1000 <= row[1] < persons
            auctions += 1
        else:
            assert 1000 <= row[0] < auctions and 1000 <= row[1] < persons


def test_only_the_active_and_the_in_flight_are_named() -> None:
    made = stream(NexmarkEvents(), Constant(rps=300_000.0), tables=TABLES)
    first, end = 100_000, 150_000
    epochs = np.arange(first, end) // 46
    rows = made.rows("bid", first, end)
    behind = 1000 + 3 * epochs + 2 - np.array(rows.column("auction"))
    assert (behind.min(), behind.max()) == (0, 100)
    behind = 1000 + epochs - np.array(rows.column("bidder"))
    assert (behind.min(), behind.max()) == (0, 999)


@pytest.mark.parametrize("ratio", [2, 4])
def test_hot_keys_have_the_share_of_their_ratio(ratio: int) -> None:
    """Of one hundred auctions or persons, one gets 1 − 1/ratio and a little of the rest."""
    hot = NexmarkEvents(hot_sellers=ratio, hot_auctions=ratio, hot_bidders=ratio)
    made = stream(hot, Constant(rps=100_000.0))
    bids, auctions = made.rows("bid", 0, 400_000), made.rows("auction", 0, 30_000)
    last_auction = 3 * (np.arange(400_000) // 46) + 2
    shares = {
        "auction": np.array(bids.column("auction")) - 1000 == last_auction // 100 * 100,
        "bidder": np.array(bids.column("bidder")) - 1000 == np.arange(400_000) // 4600 * 100 + 1,
        "seller": np.array(auctions.column("seller")) - 1000 == np.arange(30_000) // 300 * 100,
    }
    for name, is_hot in shares.items():
        assert is_hot.mean() == pytest.approx(1 - 1 / ratio, abs=0.015), name
    even = stream(NexmarkEvents(), Constant(rps=100_000.0)).rows("bid", 0, 400_000)
    assert (np.array(even.column("auction")) - 1000 == last_auction // 100 * 100).mean() < 0.02


@settings(max_examples=40)
@given(events=events, pattern=st.sampled_from(PATTERNS), table=st.sampled_from(TABLES))
def test_an_event_happened_before_its_release_by_at_most_the_disorder(
    events: NexmarkEvents, pattern: Pattern, table: Table
) -> None:
    made = stream(events, pattern)
    rows = made.rows(table, 0, made.total(table))
    late = made.release_times(table, 0, rows.num_rows) - np.array(micros(rows), dtype=np.int64)
    if rows.num_rows:
        assert late.min() >= 0 and late.max() <= round(events.disorder * 1e6)
    calm = stream(replace(events, disorder=0.0), pattern)
    assert (
        micros(calm.rows(table, 0, rows.num_rows))
        == calm.release_times(table, 0, rows.num_rows).tolist()
    )


def test_disorder_is_spread_over_its_whole_range() -> None:
    made = stream(NexmarkEvents(disorder=2.0), Constant(rps=1000.0), tables=("bid",))
    late = made.release_times("bid", 0, 20_000) - np.array(micros(made.rows("bid", 0, 20_000)))
    assert late.mean() == pytest.approx(1e6, rel=0.02)
    assert late.max() > 1.99e6 and late.min() < 0.01e6


def test_values_look_as_in_nexmark() -> None:
    made = stream(NexmarkEvents(), Constant(rps=60_000.0))
    auctions = made.rows("auction", 0, 20_000).to_pylist()
    assert set(Counter(row["category"] for row in auctions)) == {10, 11, 12, 13, 14}
    assert all(row["initial_bid"] < row["reserve"] for row in auctions)
    assert all(row["date_time"] < row["expires"] for row in auctions)
    persons = made.rows("person", 0, 20_000).to_pylist()
    assert {row["state"] for row in persons} == {"az", "ca", "id", "or", "wa", "wy"}
    assert {"phoenix", "los angeles", "cheyenne"} < {row["city"] for row in persons}
    assert all(re.fullmatch(r"\d{4}( \d{4}){3}", row["credit_card"]) for row in persons)
    assert all(re.fullmatch(r"[a-z ]*@[a-z ]*\.com", row["email_address"]) for row in persons)
    bids = made.rows("bid", 0, 20_000).to_pylist()
    hot = sum(not row["channel"].startswith("channel-") for row in bids)
    assert hot / len(bids) == pytest.approx(0.5, abs=0.02)
    assert len({row["url"] for row in bids}) == len({row["channel"] for row in bids})
    sizes = [len(row["extra"]) for row in bids]
    assert sum(sizes) / len(sizes) == pytest.approx(68, abs=1)


def test_prices_are_log_uniform_from_100_to_100_million() -> None:
    made = stream(NexmarkEvents(), Constant(rps=20_000.0), tables=("bid",))
    prices = np.sort(np.array(made.rows("bid", 0, 400_000, ["price"]).column("price")))
    assert prices[0] >= 100 and prices[-1] <= 100_000_000
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        quantile = prices[int(share * len(prices))]
        assert np.log10(quantile) == pytest.approx(2 + 6 * share, abs=0.03)


@settings(max_examples=20)
@given(a=st.integers(0, 2**70), b=st.integers(0, 2**70), table=st.sampled_from(TABLES))
def test_a_seed_decides_the_rows(a: int, b: int, table: Table) -> None:
    def rows(seed: int) -> pa.RecordBatch:
        made = stream(NexmarkEvents(seed=seed, disorder=1.0))
        return made.rows(table, 0, made.total(table))

    assert rows(a).equals(rows(a))
    if a != b:
        for name in SCHEMAS[table].columns:
            assert name == "id" or rows(a).column(name) != rows(b).column(name)


def test_what_a_row_says_does_not_depend_on_pattern_or_tables() -> None:
    events = PRESETS["hot"]
    together = stream(events, Constant(rps=50_000.0)).rows("bid", 0, 1000)
    alone = stream(events, Cosine(low=100, high=900), tables=("bid",)).rows("bid", 0, 1000)
    same = [name for name in SCHEMAS["bid"].columns if name != "date_time"]
    assert together.select(same).equals(alone.select(same))


# Rows must never change between versions: results of queries over them are kept and compared.
# Three of each table, texts cut short, and a digest of all that 20 seconds have.
GOLDEN: dict[Table, tuple[list[tuple[Any, ...]], str]] = {
    "person": (
        [
            (1100, "sarah wh", "ugog@vfh", "5400 693", "redmond", "or", 4612423, "pxvkwvmd"),
            (1101, "sarah sm", "wip@fih.", "3051 352", "los ange", "or", 4591898, "lnymrjsl"),
            (1102, "vicky sh", "htwh@rlx", "1987 553", "seattle", "az", 4887679, "yheljmbj"),
        ],
        "335909600633514f",
    ),
    "auction": (
        [
            (1100, "iug wjkh", "lkw ir n", 2989, 3352, 1367764, 4577154, 1000, 14, "wglzuofg"),
            (1101, "twh", "wp asdtw", 1884717, 3826334, 1384953, 2778088, 1000, 13, "dllichpg"),
            (1102, "pzc", "mjlbehyw", 211874, 348642, 1554594, 2952086, 1000, 13, "durtwlql"),
        ],
        "c6e771467fb17fb9",
    ),
    "bid": (
        [
            (1002, 1001, 48355, "channel-", "https://", -90676, "ewtfvrvi"),
            (1006, 1001, 2384759, "channel-", "https://", -185820, "itbahwzc"),
            (1000, 1001, 930300, "Apple", "https://", -85841, "oblealld"),
        ],
        "68aae77a76422bc9",
    ),
}


@pytest.mark.parametrize("table", TABLES)
def test_golden_rows(table: Table) -> None:
    events = NexmarkEvents(seed=7, hot_sellers=4, hot_auctions=2, hot_bidders=4, disorder=0.5)
    made = stream(events, Constant(rps=1000.0))
    every = [_plain(column) for column in made.rows(table, 0, made.total(table)).columns]
    three = zip(*(values[100:103] for values in every), strict=True)
    short = [tuple(v[:8] if isinstance(v, str) else v for v in row) for row in three]
    digest = hashlib.sha256(repr(every).encode()).hexdigest()[:16]
    assert (short, digest) == GOLDEN[table]


def _plain(column: pa.Array) -> list[Any]:
    """Times as microseconds after the start."""
    if pa.types.is_timestamp(column.type):
        return [t - int(START * 1e6) for t in column.cast(pa.int64()).to_pylist()]
    return list(column.to_pylist())


def test_rows_that_will_never_be_are_refused() -> None:
    made = stream(NexmarkEvents(), Constant(rps=50.0), seconds=1.0)
    assert made.rows("bid", 46, 46).num_rows == 0
    for first, end in ((0, 47), (-1, 5), (9, 8)):
        with pytest.raises(InputError, match="must lie within 0 and 46"):
            made.rows("bid", first, end)


@pytest.mark.parametrize(
    "pattern", [Constant(rps=500.0), Cosine(low=20.0, high=900.0, period=30.0)], ids=str
)
@pytest.mark.parametrize("max_rows", [50, 700])
def test_no_micro_batch_covers_more_event_time_than_the_longest(
    pattern: Pattern, max_rows: int
) -> None:
    made = NexmarkEvents(disorder=0.3)
    events = stream(made, pattern, seconds=60.0, tables=("bid",), max_rows=max_rows)
    assert events.longest_batch is not None
    times = np.array(micros(events.rows("bid", 0, events.total("bid"))))
    covered = max(
        np.ptp(times[first : first + max_rows]) / 1e6 for first in range(len(times) - max_rows)
    )
    assert covered <= events.longest_batch <= 1.5 * covered + 1.0
    assert stream(made, pattern).longest_batch is None


@given(max_rows=st.integers(50, 10_000))
def test_a_micro_batch_takes_whole_epochs_of_every_table(max_rows: int) -> None:
    made = stream(NexmarkEvents(), max_rows=max_rows)
    limits = {table: made.limit(table) or 0 for table in TABLES}
    assert max_rows - 50 < sum(limits.values()) <= max_rows
    assert limits["bid"] == 46 * limits["person"] and limits["auction"] == 3 * limits["person"]
    assert stream(NexmarkEvents(), tables=("bid",), max_rows=max_rows).limit("bid") == max_rows
