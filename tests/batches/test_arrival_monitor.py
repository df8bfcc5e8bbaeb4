"""The workload monitor: the newest arrivals, whatever they come in."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.arrival_monitor import ArrivalMonitor
from penstock.core.errors import InputError


@given(
    st.lists(st.floats(0.0, 5.0), min_size=2, max_size=60),
    st.lists(st.integers(1, 9), min_size=1, max_size=60),
    st.integers(2, 40),
)
def test_the_newest_are_kept_however_they_come(
    gaps: list[float], sizes: list[int], capacity: int
) -> None:
    times = np.cumsum(gaps)
    monitor, at = ArrivalMonitor(capacity), 0
    for size in [*sizes, len(times)]:
        piece = times[at : at + size]
        monitor.add(np.random.default_rng(at).permutation(piece))
        at += size
    window = monitor.window()
    assert window is not None
    assert window.intervals == pytest.approx(np.diff(times)[-capacity:], abs=1e-9)
    assert monitor.late == 0 and monitor.seen == len(times)


def test_late_ones_are_counted_and_left_out() -> None:
    monitor = ArrivalMonitor(10)
    monitor.add([1.0, 2.0, 4.0])
    monitor.add([3.0, 4.0, 5.0])
    assert monitor.late == 1
    window = monitor.window()
    assert window is not None and window.intervals.tolist() == [1.0, 2.0, 0.0, 1.0]


def test_nothing_has_come() -> None:
    monitor = ArrivalMonitor(10)
    assert monitor.window() is None
    monitor.add([])
    monitor.add([3.0])
    assert monitor.window() is None


def test_counts_of_batches_keep_the_rate_of_each() -> None:
    monitor = ArrivalMonitor(10_000, seed=1)
    counts = [100, 400, 50, 800] * 6
    for number, count in enumerate(counts):
        monitor.add_count(float(number), number + 1.0, count)
    window = monitor.window()
    assert window is not None
    times = np.cumsum(window.intervals)
    assert len(window) == sum(counts) - 1
    assert times[-1] == pytest.approx(24.0, abs=0.2)
    assert np.histogram(times, bins=np.arange(0.5, 23.0))[0].max() > 400
    monitor.add_count(24.0, 25.0, 0)
    assert monitor.late == 0


def test_memory_does_not_grow() -> None:
    monitor = ArrivalMonitor(1_000)
    rng, now = np.random.default_rng(0), 0.0
    tracemalloc.start()
    try:
        for round_ in range(300):
            times = now + np.cumsum(rng.exponential(0.01, 500))
            monitor.add(times)
            now = float(times[-1])
            if round_ == 100:
                before = tracemalloc.get_traced_memory()[0]
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
    assert monitor.memory_bytes == 8_000 and monitor.cpu_seconds > 0


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="capacity"):
        ArrivalMonitor(1)
    monitor = ArrivalMonitor(10)
    with pytest.raises(InputError, match="finite"):
        monitor.add([math.nan])
    with pytest.raises(InputError, match="end after begin"):
        monitor.add_count(2.0, 1.0, 5)
