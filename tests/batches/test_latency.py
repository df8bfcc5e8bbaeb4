"""Latency at the sink and lag in seconds, against a count record by record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.batches.latency import intakes_of, latency_of
from penstock.batches.snapshot import query_window
from penstock.batches.values import Batch, Source
from penstock.core.model import QuerySeen


def batch(i: int, start: float, duration: float, *sources: Source, rows: int = 0) -> Batch:
    one = sources[0] if len(sources) == 1 else None
    return Batch(
        query="q",
        run_id="r",
        id=i,
        start=start,
        duration=duration,
        rows=rows or sum(s.rows for s in sources),
        available=one.available if one else None,
        taken=one.taken if one else None,
        sources=sources if len(sources) > 1 else (),
    )


@st.composite
def histories(draw: st.DrawFn, sources: int = 1) -> list[Batch]:
    """Batches that take what they like of what sources release at a changing pace."""
    start, batches = 1000.0, []
    available, taken = [draw(st.integers(0, 50)) for _ in range(sources)], [0] * sources
    for i in range(draw(st.integers(3, 12))):
        seen = []
        for k in range(sources):
            available[k] += draw(st.integers(0, 60)) if i else 0
            rows = draw(st.integers(0, available[k] - taken[k]))
            taken[k] += rows
            seen.append(Source(rows=rows, available=available[k], taken=taken[k]))
        duration = draw(st.integers(1, 30)) / 10
        batches.append(batch(i, start, duration, *seen))
        start += duration + draw(st.integers(0, 20)) / 10
    return batches


def brute_force(batches: Sequence[Batch], first: int) -> tuple[list[float], int]:
    """Latencies record by record, and how many records have no known release."""
    found, unknown = [], 0
    for k in range(len(batches[0].inputs)):
        knots = [(b.start, b.inputs[k].available or 0) for b in batches]
        before = 0
        for i, b in enumerate(batches):
            taken = b.inputs[k].taken or 0
            for record in range(before, taken) if i >= first else ():
                moment = released_at(record + 0.5, knots)
                if moment is None:
                    unknown += 1
                else:
                    found.append(b.end - moment)
            before = taken
    return sorted(found), unknown


def released_at(record: float, knots: Sequence[tuple[float, int]]) -> float | None:
    for (t0, a0), (t1, a1) in pairwise(knots):
        if a0 < record <= a1:
            return t0 + (record - a0) / (a1 - a0) * (t1 - t0)
    return None


@settings(max_examples=200)
@given(st.integers(1, 2).flatmap(lambda n: histories(n)), st.data())
def test_percentiles_agree_with_a_count_record_by_record(
    batches: list[Batch], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(batches) - 1))
    expected, unknown = brute_force(batches, first)
    found = latency_of([intake.waits(first) for intake in intakes_of(batches)])
    if len(expected) < max(1, unknown):  # fewer than half are known
        assert found is None
        return
    assert found is not None
    assert found.mean == pytest.approx(sum(expected) / len(expected), abs=1e-5)
    for share, value in ((0.5, found.p50), (0.95, found.p95), (0.99, found.p99)):
        below = sum(e < value - 1e-4 for e in expected) / len(expected)
        up_to = sum(e <= value + 1e-4 for e in expected) / len(expected)
        # A record stands for itself and half of its neighbours, in every batch and source.
        slack = 2.0 * len(batches) / len(expected)
        assert below - slack <= share <= up_to + slack


def test_percentiles_of_many_records_are_tight() -> None:
    """10 batches of 1,000 records that came evenly: latency is uniform from 0.5 to 1.5 s."""
    batches = [
        batch(i, 1000.0 + i, 0.5, Source(rows=1000, available=1000 * (i + 1), taken=1000 * (i + 1)))
        for i in range(11)
    ]
    expected, _ = brute_force(batches, 1)
    found = latency_of([intake.waits(1) for intake in intakes_of(batches)])
    assert found is not None
    assert found.mean == pytest.approx(1.0)
    assert (found.p50, found.p95, found.p99) == pytest.approx((1.0, 1.45, 1.49))
    assert expected[9500] == pytest.approx(found.p95, abs=2e-3)


def test_a_source_that_does_not_tell_releases_evenly_between_plannings() -> None:
    told = [
        batch(i, 1000.0 + 2 * i, 1.0, Source(rows=r, available=t, taken=t))
        for i, (r, t) in enumerate([(10, 10), (30, 40), (50, 90)])
    ]
    silent = [replace(b, available=None, taken=None) for b in told]
    one, other = (latency_of([intake.waits(1) for intake in intakes_of(b)]) for b in (told, silent))
    assert one == other
    assert one is not None
    assert one.mean == pytest.approx(2.0)


@given(histories(1))
def test_lag_in_seconds_is_the_wait_of_the_oldest_record_left(batches: list[Batch]) -> None:
    (intake,) = intakes_of(batches)
    last = batches[-1]
    assert intake.lag() == last.lag
    found = intake.lag_seconds(offered=100.0)
    taken, first = last.taken or 0, batches[0].available or 0
    if not last.lag:
        assert found == 0
    elif taken < first:
        assert found == pytest.approx(last.lag / 100.0)
    else:
        knots = [(b.start, b.available or 0) for b in batches]
        moment = released_at(taken + 1e-6, knots)
        assert moment is not None
        assert found == pytest.approx(last.start - moment, abs=1e-3)


def window(batches: list[Batch], seconds: float = 100.0) -> QuerySeen:
    found = query_window(batches, {}, now=batches[-1].end, window=seconds, cores=1)
    assert found is not None
    return found.seen


def test_a_query_is_as_far_behind_as_its_worst_source() -> None:
    """One source keeps up, the other leaves 100 of its 200 records a second behind."""
    batches = [
        batch(
            i,
            1000.0 + i,
            0.5,
            Source(rows=50, available=50 * (i + 1), taken=50 * (i + 1)),
            Source(rows=100, available=200 * (i + 1), taken=100 * (i + 1)),
        )
        for i in range(11)
    ]
    seen = window(batches)
    assert seen.offered_rate == pytest.approx(250.0)
    assert seen.lag == 1100
    assert seen.lag_seconds == pytest.approx(5.5)
    assert seen.latency_p99 is not None
    assert seen.latency_p50 is not None
    assert seen.latency_p99 > 5.0 > seen.latency_p50


def test_a_source_that_tells_nothing_leaves_the_lag_of_the_query_open() -> None:
    batches = [
        batch(
            i,
            1000.0 + i,
            0.5,
            Source(rows=50, available=50 * (i + 1), taken=50 * (i + 1)),
            Source(rows=100),
        )
        for i in range(5)
    ]
    seen = window(batches)
    assert (seen.lag, seen.lag_seconds) == (None, None)
    assert seen.offered_rate == pytest.approx(150.0)
    assert seen.latency_p50 is not None


def test_records_of_unknown_release_leave_latency_open_until_most_are_known() -> None:
    """A query with a backlog of 1,000 records from before we came."""
    batches = [
        batch(i, 1000.0 + i, 0.5, Source(rows=100, available=1000 + 100 * i, taken=100 * (i + 1)))
        for i in range(25)
    ]
    early, late = window(batches[:5], 3.0), window(batches, 3.0)
    assert early.latency_p50 is None
    assert early.lag_seconds == pytest.approx(9.0)
    assert late.latency_p50 == pytest.approx(9.0 + 0.5 + 0.5, abs=0.1)
    assert late.lag_seconds == pytest.approx(9.0)
