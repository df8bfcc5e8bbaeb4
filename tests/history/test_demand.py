"""What came to a source, rebuilt from batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.values import Batch, Source
from penstock.core.errors import InputError
from penstock.history.demand import Demand, Plannings, demand_of, joined, names_of_sources


def batch(id: int, start: float, rows: int, *, has: int | None = None, taken: int | None = None,
          idle: bool = False) -> Batch:  # fmt: skip
    source = Source(rows=rows, available=has, taken=taken, name="KafkaV2[Subscribe[bids]]")
    return Batch(query="q", run_id="r", id=id, start=start, duration=1.0, rows=rows,
                 available=has, taken=taken, sources=(source,), idle=idle)  # fmt: skip


def only(batches: Sequence[Batch], most: int | None = None) -> Demand:
    (found,) = demand_of([batches], [most]).values()
    return found


def test_records_came_between_two_plannings() -> None:
    found = only([batch(0, 100.0, 7), batch(1, 110.0, 50), batch(2, 115.0, 100)])
    assert found.start == 100.0
    assert found.edges.tolist() == [0.0, 10.0, 15.0] and found.rates.tolist() == [5.0, 20.0]
    assert (found.mean, found.peak, found.records, found.lower_bound) == (10.0, 20.0, 150.0, 0.0)


def test_what_the_source_has_counts_more_than_what_batches_took() -> None:
    batches = [
        batch(0, 0.0, 10, has=10, taken=10),
        batch(1, 10.0, 10, has=110, taken=20),
        batch(2, 20.0, 10, has=110, taken=30),
    ]
    assert only(batches, 10).rates.tolist() == [10.0, 0.0]
    assert only(batches, 10).lower_bound == 0.0


def test_full_batches_without_a_backlog_told_are_a_lower_bound() -> None:
    batches = [batch(0, 0.0, 10), batch(1, 10.0, 10), batch(2, 40.0, 3)]
    assert only(batches, 10).lower_bound == 0.25


def test_idle_moments_and_offsets_that_count_no_records() -> None:
    idle = batch(1, 0.0, 60).idle_at(30.0)
    found = only([batch(0, 0.0, 5), batch(1, 10.0, 60), idle, batch(2, 40.0, 20)])
    assert found.rates.tolist() == [6.0, 0.0, 2.0]
    files = [batch(0, 0.0, 500, has=0, taken=0), batch(1, 10.0, 500, has=1, taken=1)]
    assert only(files).rates.tolist() == [50.0]


def test_a_source_that_began_anew() -> None:
    batches = [
        batch(0, 0.0, 10, has=100, taken=100),
        batch(1, 10.0, 50, has=150, taken=150),
        batch(2, 20.0, 30, has=30, taken=160),
        batch(3, 30.0, 40, has=70, taken=200),
    ]
    assert only(batches).rates.tolist() == [5.0, 3.0, 4.0]


def test_too_few_and_two_at_once() -> None:
    assert demand_of([[batch(0, 0.0, 5)]]) == {}
    assert demand_of([[batch(0, 0.0, 5), batch(1, 0.0, 5)]]) == {}


def test_several_runs_with_nothing_known_between_them() -> None:
    first = only([batch(0, 0.0, 5), batch(1, 10.0, 50)])
    second = only([batch(0, 100.0, 5), batch(1, 110.0, 20)])
    whole = joined({"bids": [second, first]})["bids"]
    assert whole.edges.tolist() == [0.0, 10.0, 100.0, 110.0]
    assert whole.rates.tolist() == [5.0, 0.0, 2.0]


def test_names_that_can_be_read() -> None:
    told = ("RateStreamV2[rowsPerSecond=5]", "TextSocketV2[host: a, port: 1]",
            "FileStreamSource[file:/data/in]", "KafkaV2[Subscribe[a]]", "KafkaV2[Subscribe[a]]",
            "", "odd thing")  # fmt: skip
    names = names_of_sources([Source(rows=0, name=name) for name in told])
    assert names == ("rate", "socket", "in", "a", "a (5)", "source 6", "odd thing")


@pytest.mark.parametrize(
    ("edges", "rates"), [([0.0], [1.0]), ([0.0, 0.0], [1.0]), ([0.0, 1.0], [-1.0])]
)
def test_what_makes_no_demand(edges: list[float], rates: list[float]) -> None:
    with pytest.raises(InputError, match="make no demand"):
        Demand(start=0.0, edges=np.array(edges), rates=np.array(rates))


@given(
    st.lists(st.tuples(st.floats(0.01, 1e4), st.integers(0, 10**7)), min_size=2, max_size=50),
    st.floats(0.1, 1e3),
)
def test_no_record_is_lost_or_made(steps: list[tuple[float, int]], cell: float) -> None:
    log, moment = Plannings(), 0.0
    for id, (gap, rows) in enumerate(steps):
        log.add(batch(id, moment, rows))
        moment += gap
    (found,) = log.demand().values()
    came = sum(rows for _, rows in steps[1:])
    assert found.records == pytest.approx(came, abs=1e-3)
    if found.seconds / cell < 1e6:
        assert float(found.even(cell).sum()) * cell == pytest.approx(came, rel=1e-6, abs=1e-3)
