"""Rows as Kafka records: the rule of ids, and JSON that the standard library reads the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lab.kafka.records import complete_rows, encode, end_of, rows_before
from penstock.lab.queries.running import consumed_of
from penstock.workloads.nexmark import SCHEMAS, TABLES, NexmarkEvents, NexmarkStream, Table
from penstock.workloads.patterns import Constant

STREAM = NexmarkStream(
    events=NexmarkEvents(seed=1, disorder=0.5),
    pattern=Constant(rps=3000.0),
    start=1_700_000_000.25,
    seconds=10.0,
    tables=TABLES,
)
rows, partitions = st.integers(0, 10_000), st.integers(1, 40)


def plain(value: Any) -> Any:
    """A value of an Arrow row as JSON has it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value


@st.composite
def readings(draw: st.DrawFn) -> tuple[Table, int, int, list[str]]:
    table = draw(st.sampled_from(TABLES))
    first = draw(st.integers(0, STREAM.total(table)))
    count = draw(st.integers(0, min(50, STREAM.total(table) - first)))
    columns = draw(st.lists(st.sampled_from(SCHEMAS[table].columns), min_size=1, unique=True))
    return table, first, first + count, columns


@given(readings())
def test_parsed_records_are_the_rows(reading: tuple[Table, int, int, list[str]]) -> None:
    table, first, end, columns = reading
    batch = STREAM.rows(table, first, end, columns)
    found = [list(json.loads(value).items()) for value in encode(batch).to_pylist()]
    expected = [[(name, plain(row[name])) for name in columns] for row in batch.to_pylist()]
    assert found == expected


@given(st.lists(st.text(), max_size=20), st.integers(0, 5))
def test_any_text_survives(texts: list[str], skip: int) -> None:
    batch = pa.record_batch({"text": pa.array(texts, pa.string())}).slice(min(skip, len(texts)))
    found = [json.loads(value)["text"] for value in encode(batch).to_pylist()]
    assert found == texts[skip:]


@given(st.lists(st.integers(-(2**52), 2**52), min_size=1, max_size=20))
def test_any_microsecond_survives(micros: list[int]) -> None:
    times = pa.array(micros, pa.int64()).view(pa.timestamp("us", tz="UTC"))
    batch = pa.record_batch({"n": pa.array(micros), "at": times})
    for n, value in zip(micros, encode(batch).to_pylist(), strict=True):
        found = json.loads(value)
        moment = datetime.fromisoformat(found["at"])
        delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
        assert found["n"] == n
        assert (delta.days * 86_400 + delta.seconds) * 10**6 + delta.microseconds == n


@given(rows, partitions)
def test_a_row_has_one_place_and_a_place_has_one_row(row: int, count: int) -> None:
    offset, partition = divmod(row, count)
    assert rows_before(partition, offset, count) == row


@given(rows, partitions)
def test_end_offsets_count_the_rows_of_each_partition(total: int, count: int) -> None:
    by_hand = [0] * count
    for row in range(total):
        by_hand[row % count] += 1
    ends = [end_of(partition, total, count) for partition in range(count)]
    assert ends == by_hand
    assert complete_rows(ends) == total


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12))
def test_rows_are_complete_up_to_the_first_that_is_missing(ends: list[int]) -> None:
    count = len(ends)
    there = {p + count * offset for p, end in enumerate(ends) for offset in range(end)}
    first_missing = next(row for row in range(len(there) + 1) if row not in there)
    assert complete_rows(ends) == first_missing <= sum(ends)


@pytest.mark.parametrize(
    ("offset", "rows_read"),
    [
        ('{"offset": 12}', 12),
        ('{"nexmark-bid": {"0": 3, "1": 3, "2": 2}}', 8),
        ('{"nexmark-bid": {"1": 3, "2": 3, "0": 1}}', 3),  # row 3 is the first not read
        (None, 0),
    ],
)
def test_what_a_query_has_read_of_either_source(offset: str | None, rows_read: int) -> None:
    assert consumed_of({"sources": [{"endOffset": offset}]}) == (rows_read,)
