"""The event source without Spark: rows are a pure function of seed and offset."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.workloads.patterns import Constant, Cosine, Pattern, Step

pytest.importorskip("pyspark")
from penstock.spark.sources.events import EventStream

PATTERNS: list[Pattern] = [
    Constant(rps=500.0),
    Cosine(low=100, high=900, period=20),
    Step(low=300, high=0, at=5, hold=10),
]


def events(pattern: Pattern, **kw: int) -> EventStream:
    return EventStream(pattern=pattern, start=1000.0, seconds=30.0, **kw)


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
@given(cuts=st.lists(st.integers(0, 6000), min_size=1, max_size=5))
def test_rows_do_not_depend_on_how_a_range_is_cut(pattern: Pattern, cuts: list[int]) -> None:
    stream = events(pattern)
    edges = sorted({0, 6000, *cuts})
    pieces = [stream.rows(a, b) for a, b in pairwise(edges)]
    whole = pa.Table.from_batches([stream.rows(0, 6000)])
    assert pa.Table.from_batches(pieces).combine_chunks().equals(whole)


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_event_time_is_when_the_event_was_released(pattern: Pattern) -> None:
    stream = events(pattern)
    times = [t.timestamp() for t in stream.rows(0, stream.total).column("time").to_pylist()]
    assert times == sorted(times)
    for offset in range(0, stream.total, 97):
        released = stream.released(times[offset] + 0.1)
        assert released >= offset
        assert stream.released(times[offset] - 0.1) <= offset + 1


def test_another_seed_gives_other_rows_and_keys_stay_in_range() -> None:
    a, b = events(PATTERNS[0], seed=1, keys=7), events(PATTERNS[0], seed=2, keys=7)
    assert a.rows(0, 100).column("value") != b.rows(0, 100).column("value")
    assert set(a.rows(0, 1000).column("key").to_pylist()) == set(range(7))


def test_release_starts_and_ends_with_the_pattern() -> None:
    stream = events(PATTERNS[0])
    assert [stream.released(t) for t in (0.0, 1000.0, 1001.0, 9999.0)] == [0, 0, 500, 15_000]
    assert stream.total == 15_000


def test_options_describe_the_stream_and_unknown_ones_are_refused() -> None:
    stream = events(PATTERNS[1], seed=5, max_rows=1000)
    assert EventStream.from_options(stream.options()) == stream
    with pytest.raises(InputError, match="did you mean 'max_rows'"):
        EventStream.from_options({"max_row": "5"})
    with pytest.raises(InputError, match="must be JSON"):
        EventStream.from_options({"pattern": "fast"})


@pytest.mark.parametrize(("name", "value"), [("keys", 0), ("partitions", -1), ("max_rows", 0)])
def test_bad_sizes_are_refused(name: str, value: int) -> None:
    with pytest.raises(InputError, match=f"{name} {value} must be ≥ 1"):
        events(PATTERNS[0], **{name: value})
