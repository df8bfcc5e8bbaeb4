"""The tuple simulator: every record through every queue, against plain recursions."""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.core.model import Change
from penstock.queueing.simple import mg1_mean
from penstock.report.statistics import estimate
from penstock.simulator.tuples import TupleEngine, log_analysis
from penstock.simulator.tuples.application import Application
from penstock.simulator.tuples.engine import Station
from tests.fakes.scenarios import healthy

RNG = np.random.default_rng


def share(value: float) -> Change:
    return Change(before=1, slots=1, raw=1.0, cpu_share=value)


def poisson_times(count: int, mean: float, seed: int = 0) -> np.ndarray:
    return np.cumsum(RNG(seed).exponential(mean, count))


def served_one_by_one(
    times: list[float], demands: list[float], changes: list[tuple[float, float]]
) -> list[float]:
    """When each leaves, by small steps of exact work between the changes of speed."""
    edges = [0.0, *(t for t, _ in changes), float("inf")]
    speeds = [1.0, *(s for _, s in changes)]
    free, leaves = 0.0, []
    for arrival, demand in zip(times, demands, strict=True):
        now, left = max(arrival, free), demand
        while left > 1e-12:
            k = max(i for i, edge in enumerate(edges[:-1]) if edge <= now + 1e-12)
            done = min(left, (edges[k + 1] - now) * speeds[k])
            now += done / speeds[k]
            left -= done
        free = now
        leaves.append(now)
    return leaves


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(0.01, 2.0)), min_size=1, max_size=25),
    st.lists(st.sampled_from([0.4, 0.55, 1.0]), min_size=1, max_size=6),
    st.floats(0.5, 4.0),
)
def test_a_server_whose_speed_changes(
    records: list[tuple[float, float]], speeds: list[float], every: float
) -> None:
    times = np.cumsum([gap for gap, _ in records])
    demands = np.array([demand for _, demand in records])
    ids = np.arange(len(times))
    found: dict[int, float] = {}
    station, now = Station(), 0.0
    plan = [*speeds, *[speeds[-1]] * 200]
    changes = [(every * (k + 1), s) for k, s in enumerate(plan)]
    for _, speed in changes:
        came = (times >= now) & (times < now + every)
        leaves, who = station.work(now, now + every, times[came], ids[came], demands[came])
        found.update(zip(who.tolist(), leaves.tolist(), strict=True))
        now += every
        station.speed = speed
    expected = served_one_by_one(times.tolist(), demands.tolist(), changes)
    assert [found[i] for i in range(len(times))] == pytest.approx(expected, abs=1e-7)
    assert station.worked == pytest.approx(demands.sum(), abs=1e-7)
    assert station.served == len(times) and station.waiting == 0


def test_how_the_time_is_divided_does_not_matter() -> None:
    application, times = log_analysis(0.01), poisson_times(20_000, 0.01)
    runs = []
    for step in (7.0, 60.0, 1e9):
        engine = TupleEngine(application, times, seed=5)
        while engine.advance(step):
            pass
        engine.drain()
        runs.append(engine.responses("matcher"))
    for begins, stays in runs[1:]:
        assert begins == pytest.approx(runs[0][0]) and stays == pytest.approx(runs[0][1])


def test_a_single_server_is_m_g_1() -> None:
    pipeline = log_analysis(1.0).pipeline
    application = Application(
        pipeline=pipeline, demands={"parser": 0.6, "counter": 1e-6, "matcher": 1e-6}
    )
    engine = TupleEngine(application, poisson_times(400_000, 1.0), seed=1)
    engine.advance(1e9)
    engine.drain()
    _, stays = engine.responses("matcher")
    assert stays.mean() == pytest.approx(mg1_mean(1.0, 0.6, 0.5), rel=0.03)


def test_m_m_1_within_its_confidence_interval() -> None:
    """Mean response 1/(μ − λ), by the interval of twenty long batches."""
    application = Application(
        pipeline=log_analysis(1.0).pipeline,
        demands={"parser": 0.5, "counter": 1e-9, "matcher": 1e-9},
        scv=1.0,
    )
    engine = TupleEngine(application, poisson_times(400_000, 1.0, seed=8), seed=9)
    engine.advance(1e9)
    engine.drain()
    _, stays = engine.responses("matcher")
    found = estimate([batch.mean() for batch in np.array_split(stays[2_000:], 20)])
    assert found.low <= 1.0 / (1.0 / 0.5 - 1.0) <= found.high
    assert found.half_width is not None and found.half_width < 0.02


def by_events(
    times: list[float],
    demands: dict[str, list[float]],
    passed: list[bool],
    plan: list[tuple[float, dict[str, float]]],
) -> dict[str, dict[int, float]]:
    """Response times at the sinks by a simulation of single events, written on its own."""
    heap = [(t, 0, "parser", i) for i, t in enumerate(times)]
    heap += [(t, 2, "change", k) for k, (t, _) in enumerate(plan)]
    heapq.heapify(heap)
    speed = dict.fromkeys(demands, 1.0)
    queues: dict[str, deque[int]] = {name: deque() for name in demands}
    left, since = dict.fromkeys(demands, 0.0), dict.fromkeys(demands, 0.0)
    turn = dict.fromkeys(demands, 0)
    stays: dict[str, dict[int, float]] = {"counter": {}, "matcher": {}}

    def begin(name: str, now: float) -> None:
        since[name], turn[name] = now, turn[name] + 1
        heapq.heappush(heap, (now + left[name] / speed[name], 1, name, turn[name]))

    while heap:
        now, kind, name, number = heapq.heappop(heap)
        if kind == 2:
            for station, value in plan[number][1].items():
                if queues[station]:
                    left[station] -= (now - since[station]) * speed[station]
                speed[station] = value
                if queues[station]:
                    begin(station, now)
        elif kind == 0:
            queues[name].append(number)
            if len(queues[name]) == 1:
                left[name] = demands[name][number]
                begin(name, now)
        elif number == turn[name]:  # else the speed has changed meanwhile
            record = queues[name].popleft()
            if name == "parser" and passed[record]:
                for sink in stays:
                    heapq.heappush(heap, (now, 0, sink, record))
            elif name != "parser":
                stays[name][record] = now - times[record]
            if queues[name]:
                left[name] = demands[name][queues[name][0]]
                begin(name, now)
    return stays


def test_the_same_as_a_simulation_of_single_events() -> None:
    times, application = poisson_times(4_000, 0.01, seed=4), log_analysis(0.01)
    engine = TupleEngine(application, times, seed=6)
    rng, plan = RNG(7), []
    while engine.advance(2.5):
        shares = {name: float(rng.choice([0.4, 0.55, 1.0])) for name in application.demands}
        if engine._now < engine.seconds:
            plan.append((engine._now, shares))
            engine.apply({name: share(value) for name, value in shares.items()})
    engine.drain()
    expected = by_events(
        times.tolist(),
        {name: values.tolist() for name, values in engine._demands.items()},
        engine._passed["parser"].tolist(),
        plan,
    )
    for sink, stays in expected.items():
        _, found = engine.responses(sink)
        assert found == pytest.approx([stays[i] for i in sorted(stays)], abs=1e-7)


def test_every_record_leaves_once_or_is_malformed() -> None:
    times = poisson_times(30_000, 0.01)
    engine = TupleEngine(log_analysis(0.01), times, seed=2)
    while engine.advance(60.0):
        engine.observe()
    engine.drain()
    for sink in ("counter", "matcher"):
        begins, stays = engine.responses(sink)
        assert len(np.unique(begins)) == len(begins) == pytest.approx(0.99 * 30_000, rel=0.01)
        assert (stays > 0).all()
    assert engine.responses("counter")[0] == pytest.approx(engine.responses("matcher")[0])


def test_less_cpu_is_slower_and_shows_as_such() -> None:
    times = poisson_times(60_000, 0.01)
    means, shares, loads = [], [], []
    for level in (1.0, 0.7, 0.55):
        engine = TupleEngine(log_analysis(0.01), times, seed=2)
        engine.apply({"matcher": share(level)})
        engine.advance(300.0)
        seen = engine.observe()
        loads.append(seen.operators["matcher"].cpu)
        assert seen.operators["matcher"].service_rate == pytest.approx(200.0, rel=0.03)
        assert seen.pools["matcher"][0].cpu_share == level
        engine.advance(1e9)
        engine.drain()
        means.append(engine.responses("matcher")[1].mean())
        shares.append(engine.mean_share())
    assert means == sorted(means)
    assert loads == pytest.approx([0.495, 0.495 / 0.7, 0.495 / 0.55], rel=0.05)
    assert shares == pytest.approx([1.0, 0.9, 0.85], abs=1e-6)


def test_what_is_seen_of_arrivals() -> None:
    times = poisson_times(5_000, 0.01)
    engine = TupleEngine(log_analysis(0.01), times, window=1_000)
    engine.advance(20.0)
    seen = engine.observe().operators["source"]
    here = times[times < 20.0]
    assert seen.offered_rate == pytest.approx(len(here) / 20.0)
    assert seen.arrivals is not None and len(seen.arrivals) == 1_000
    assert seen.arrivals.intervals == pytest.approx(np.diff(here)[-1_000:])


def test_two_policies_see_the_same_records() -> None:
    times = poisson_times(2_000, 0.01)
    one, other = (TupleEngine(log_analysis(0.01), times, seed=3) for _ in range(2))
    other.apply({"matcher": share(0.4)})
    for engine in (one, other):
        engine.advance(1e9)
        engine.drain()
    assert one._stations["matcher"].worked == pytest.approx(other._stations["matcher"].worked)


def test_what_cannot_be_simulated_is_refused() -> None:
    application = log_analysis(1.0)
    for times in ([1.0], [2.0, 1.0], [-1.0, 1.0]):
        with pytest.raises(InputError, match="in order"):
            TupleEngine(application, np.array(times))
    with pytest.raises(InputError, match="demand"):
        Application(pipeline=application.pipeline, demands={"parser": 0.0})
    with pytest.raises(InputError, match="no demand for counter, matcher"):
        Application(pipeline=application.pipeline, demands={"parser": 1.0})
    with pytest.raises(InputError, match="no demand"):
        Application(pipeline=healthy().pipeline, demands={})
    engine = TupleEngine(application, np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="unknown pool"):
        engine.apply({"mather": share(0.5)})
    with pytest.raises(InputError, match="above 0"):
        engine.apply({"matcher": share(0.0)})
    with pytest.raises(InputError, match="nothing has happened"):
        engine.observe()
