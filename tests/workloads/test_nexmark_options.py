"""The options of the Nexmark source: texts that describe a reading, and what they refuse."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.workloads.nexmark import NexmarkEvents, NexmarkStream, Reading, Table
from penstock.workloads.patterns import Constant, Pattern
from tests.workloads.test_nexmark_events import PATTERNS, events, stream, tables


@settings(max_examples=40)
@given(
    events=events,
    pattern=st.sampled_from(PATTERNS),
    tables=tables,
    max_rows=st.none() | st.integers(100, 10**9),
    until=st.none() | st.floats(0, 4e9),
    row_by_row=st.booleans(),
)
def test_options_describe_a_reading(
    events: NexmarkEvents,
    pattern: Pattern,
    tables: tuple[Table, ...],
    max_rows: int | None,
    until: float | None,
    row_by_row: bool,
) -> None:
    made = stream(events, pattern, tables=tables, max_rows=max_rows)
    for columns in (None, ("date_time",)):
        reading = Reading(
            stream=made, table=tables[-1], columns=columns, until=until, row_by_row=row_by_row
        )
        assert Reading.from_options(reading.options()) == reading


def test_options_have_defaults_and_presets() -> None:
    plain = Reading.from_options({"start": "5"})
    expected = NexmarkStream(pattern=Constant(), start=5.0, seconds=3600.0)
    assert plain == Reading(stream=expected, table="bid")
    preset = Reading.from_options(
        {"start": "5", "preset": "thesis", "seed": "3", "table": "person"}
    )
    assert preset.stream.events == NexmarkEvents(bids=10, seed=3)
    assert preset.stream.tables == ("person",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "option start is missing"),
        ({"start": "soon"}, "start = 'soon' is not a number"),
        ({"start": "1", "max_row": "5"}, "did you mean 'max_rows'"),
        ({"start": "1", "seed": "1.5"}, "seed = '1.5' is not a whole number"),
        ({"start": "1", "pattern": "fast"}, "unknown workload 'fast'"),
        ({"start": "1", "pattern": "{}"}, "must be the name of a workload or JSON"),
        ({"start": "1", "table": "bids"}, "did you mean 'bid'"),
        ({"start": "1", "table": "bid", "tables": "person"}, "unknown table of this stream"),
        ({"start": "1", "columns": "prices"}, "did you mean 'price'"),
        ({"start": "1", "columns": "price,price"}, "each of them once"),
        ({"start": "1", "preset": "thesys"}, "did you mean 'thesis'"),
        ({"start": "1", "row_by_row": "yes"}, "must be true or false"),
        ({"start": "1", "until": "inf"}, "must be a finite epoch second"),
        ({"start": "1", "bids": "0"}, "bids 0 must be ≥ 1"),
        ({"start": "1", "disorder": "-1"}, "disorder -1.0 must be"),
        ({"start": "1", "seconds": "0"}, "seconds 0.0 must be at least"),
        ({"start": "nan"}, "start nan must be"),
        ({"start": "1", "partitions": "0"}, "partitions 0 must be ≥ 1"),
        ({"start": "1", "tables": "bid,bid"}, "must be at least one of"),
        ({"start": "1", "tables": "person,bid", "max_rows": "46"}, "must be at least 47"),
    ],
)
def test_bad_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Reading.from_options(options)
