"""Arrivals as Spark tells of them: so many from one planning to the next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.arrival_monitor import SECONDS, TOO_SHORT, ArrivalMonitor, BatchArrivals
from penstock.batches.values import Batch


def batch(number: int, start: float, rows: int, available: int | None = None) -> Batch:
    return Batch(
        query="q", run_id="r", id=number, start=start, duration=0.5, rows=rows, available=available
    )


def told(counts: list[int], every: float = 1.0) -> list[Batch]:
    """Batches that leave nothing behind: what came since the last planning is read."""
    return [batch(i, every * i, rows, sum(counts[: i + 1])) for i, rows in enumerate(counts)]


@given(st.lists(st.integers(0, 30), min_size=2, max_size=20))
def test_as_many_arrivals_as_records_at_their_times(counts: list[int]) -> None:
    arrivals = BatchArrivals()
    arrivals.add(told(counts))
    window = arrivals.window()
    came = sum(counts[1:])  # those before the first planning came at an unknown time
    assert (0 if window is None else len(window)) == max(0, came - 1)
    if window is not None:
        assert window.each == 1.0
        assert float(window.intervals.sum()) <= len(counts)


def test_what_a_batch_leaves_behind_has_come_all_the_same() -> None:
    arrivals = BatchArrivals()
    arrivals.add([batch(0, 0.0, 0, 0), batch(1, 1.0, 10, 100), batch(2, 2.0, 90, 100)])
    window = arrivals.window()
    assert window is not None and len(window) == 99


def test_the_same_batch_counts_once_and_another_run_begins_anew() -> None:
    arrivals, batches = BatchArrivals(), told([5, 5, 5])
    arrivals.add(batches)
    arrivals.add(batches)
    window = arrivals.window()
    assert window is not None and len(window) == 9
    again = Batch(query="q", run_id="s", id=0, start=99.0, duration=1.0, rows=7, available=7)
    arrivals.add([again])
    assert arrivals.window() == window


@pytest.mark.parametrize("rate", [50, 5_000, 500_000])
def test_a_window_holds_minutes_whatever_the_rate(rate: int) -> None:
    capacity = 6_000
    arrivals = BatchArrivals(capacity)
    arrivals.add(told([rate] * 700))
    window = arrivals.window()
    assert window is not None
    seconds = float(window.intervals.sum())
    assert seconds >= min(SECONDS / TOO_SHORT / 2, len(window) / rate)
    assert window.each * len(window) / seconds == pytest.approx(rate, rel=0.02)
    assert arrivals.monitor.memory_bytes == 8 * capacity


def test_coarser_means_every_second_arrival() -> None:
    monitor = ArrivalMonitor(8)
    monitor.add(np.arange(12.0) ** 2)
    before = monitor.window()
    assert before is not None
    monitor.coarsen()
    after = monitor.window()
    assert after is not None
    assert after.intervals.tolist() == before.intervals.reshape(-1, 2).sum(axis=1).tolist()
    monitor.coarsen()
    monitor.add([12.0**2])
    last = monitor.window()
    assert last is not None and len(last) == 3
