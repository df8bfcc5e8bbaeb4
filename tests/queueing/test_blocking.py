"""Replay through finite room against a simulation of events, unlimited room, and a closed form."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.queueing.blocking import replay
from penstock.queueing.replay import departures


def by_events(
    arrivals: list[float], services: list[list[float]], rooms: list[int | None]
) -> list[list[float]]:
    """When records leave the source and each station: who can move does, then the clock goes on."""
    count, stations = len(arrivals), len(services)
    outside: deque[int] = deque()
    inside: list[deque[int]] = [deque() for _ in services]  # the first one is in service or done
    ends: list[float | None] = [None] * stations  # of the service; kept while it is blocked
    left = [[0.0] * count for _ in range(stations + 1)]
    coming, now = 0, 0.0
    while coming < count or outside or any(inside):
        moved = True
        while moved:
            moved = False
            for i in range(stations - 1, -2, -1):
                ready = bool(outside) if i < 0 else ends[i] is not None and ends[i] <= now  # type: ignore[operator]
                full = i + 1 < stations and len(inside[i + 1]) == (rooms[i + 1] or count + 1)
                if ready and not full:
                    record = outside.popleft() if i < 0 else inside[i].popleft()
                    if i >= 0:
                        ends[i] = None
                    left[i + 1][record] = now
                    if i + 1 < stations:
                        inside[i + 1].append(record)
                    moved = True
            for i in range(stations):
                if ends[i] is None and inside[i]:
                    ends[i] = now + services[i][inside[i][0]]
                    moved = True
        later = [end for end in ends if end is not None and end > now]
        if coming < count:
            later.append(arrivals[coming])
        if not later:
            break
        now = min(later)
        while coming < count and arrivals[coming] <= now:
            outside.append(coming)
            coming += 1
    return left


rooms_of = st.one_of(st.none(), st.integers(1, 4))


@given(st.data(), st.integers(1, 4), st.integers(1, 25))
def test_the_recursion_is_what_events_do(data: st.DataObject, stations: int, count: int) -> None:
    seconds = st.floats(0.01, 3.0)
    gaps = data.draw(st.lists(st.floats(0.0, 2.0), min_size=count, max_size=count))
    arrivals = np.cumsum(gaps)
    services = [
        data.draw(st.lists(seconds, min_size=count, max_size=count)) for _ in range(stations)
    ]
    rooms = data.draw(st.lists(rooms_of, min_size=stations, max_size=stations))
    flow = replay(arrivals, [np.array(s) for s in services], rooms)
    assert flow.left == pytest.approx(np.array(by_events(arrivals.tolist(), services, rooms)))
    assert (flow.held >= 0).all() and (flow.stays >= np.sum(services, axis=0) - 1e-9).all()
    more = replay(arrivals, [np.array(s) for s in services], [r and r + 1 for r in rooms])
    assert (more.left[-1] <= flow.left[-1] + 1e-9).all()


def test_unlimited_room_blocks_nobody() -> None:
    rng = np.random.default_rng(1)
    arrivals = np.cumsum(rng.exponential(1.0, 2_000))
    services = [rng.exponential(mean, 2_000) for mean in (0.8, 0.9, 0.5)]
    flow = replay(arrivals, services, [None, None, None])
    times = arrivals
    for number, service in enumerate(services, 1):
        times = departures(times, service)
        assert flow.left[number] == pytest.approx(times)
    assert not flow.held.any() and flow.blocked(0) == 0.0


def test_room_before_the_first_station_only_decides_where_records_wait() -> None:
    rng = np.random.default_rng(2)
    arrivals = np.cumsum(rng.exponential(1.0, 2_000))
    services = [rng.exponential(0.9, 2_000)]
    narrow, wide = replay(arrivals, services, [2]), replay(arrivals, services, [None])
    assert narrow.stays == pytest.approx(wide.stays)
    assert narrow.held[0].sum() > 0.0 and not wide.held[0].any()


@pytest.mark.parametrize("room", [1, 2, 5])
def test_two_equal_stations_that_never_run_dry(room: int) -> None:
    """Exponential services with the mean 1: (K + 1)/(K + 2) records per second."""
    rng = np.random.default_rng(room)
    count = 100_000
    flow = replay(np.zeros(count), list(rng.exponential(1.0, (2, count))), [None, room])
    expected = (room + 1) / (room + 2)
    assert flow.throughput == pytest.approx(expected, rel=0.01)
    assert flow.blocked(0) == pytest.approx(1 - expected, rel=0.05)
    assert flow.blocked(1) == 0.0


def test_what_is_refused() -> None:
    times, service = np.arange(3.0), np.ones(3)
    with pytest.raises(InputError, match="must be ≥ 1"):
        replay(times, [service], [0])
    with pytest.raises(InputError, match="as many rooms as stations"):
        replay(times, [service], [1, 1])
    with pytest.raises(InputError, match="an arrival"):
        replay(np.empty(0), [np.empty(0)], [1])
    with pytest.raises(InputError, match="2 services at station 1 for 3 arrivals"):
        replay(times, [service, np.ones(2)], [None, 1])
