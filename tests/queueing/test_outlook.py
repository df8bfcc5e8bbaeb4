"""The outlook on the next window, and the table that compares it with mead and replay."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.model import Arrivals
from penstock.papers.mead import next_window
from penstock.papers.mead.next_window import Case
from penstock.queueing import PhaseType
from penstock.queueing.map2 import hyperexponential
from penstock.queueing.outlook import PER_OCTAVE, Levels, expected, learnt, newest
from penstock.queueing.paths import Station
from penstock.queueing.replay import replayed

SIZE = 400
BURSTY = hyperexponential(r2=3.0, low=0.3, gamma=math.exp(-1 / 50))
NODES = range(-8, 3)  # from a quarter to one and a half of the mean time between arrivals


def window(seed: int, mean: float = 1.0) -> Arrivals:
    """Bursts of its own, the same rate in both halves."""
    halves = BURSTY.sample(SIZE, np.random.default_rng(seed)).reshape(2, -1)
    return Arrivals(mean * halves / halves.mean(axis=1, keepdims=True))


def path(mean: float, *others: float) -> tuple[Station, ...]:
    return tuple(
        Station(name=f"s{n}", service=PhaseType.of(mean=m, scv=0.5))
        for n, m in enumerate((mean, *others))
    )


def after(seeds: list[int], new: float = SIZE / 2, mean: float = 1.0) -> Levels:
    levels: Levels = {}
    for seed in seeds:
        levels = learnt(levels, window(seed, mean), new, 0.5)
    return levels


seeds = st.lists(st.integers(0, 30), min_size=1, max_size=5)


@pytest.mark.parametrize("stations", [path(0.7), path(0.3, 0.8), path(3.0), path(0.01)])
@pytest.mark.parametrize("percentile", [0.0, 0.95])
def test_it_is_the_replay_while_nothing_else_is_known(
    stations: tuple[Station, ...], percentile: float
) -> None:
    now = window(1)
    replay = replayed(newest(now), stations, percentile)
    assert expected({}, now, stations, percentile) == replay
    assert expected(after([1]), now, stations, percentile) == pytest.approx(replay)
    assert expected(after([1, 1, 1]), now, stations, percentile) == pytest.approx(replay)


@given(seeds, st.sampled_from(NODES))
@settings(max_examples=25, deadline=None)
def test_it_stays_between_the_replays_that_were(seen: list[int], node: int) -> None:
    stations = path(2.0 ** (node / PER_OCTAVE))
    replays = [replayed(newest(window(seed)), stations, 0.0) for seed in seen]
    said = expected(after(seen), window(seen[-1]), stations)
    assert min(replays) * (1 - 1e-9) <= said <= max(replays) * (1 + 1e-9)


@given(seeds, st.integers(-40, 40), st.floats(0.3, 1.2))
@settings(max_examples=25, deadline=None)
def test_the_unit_of_time_does_not_matter(seen: list[int], octaves: int, load: float) -> None:
    unit = 2.0 ** (octaves / PER_OCTAVE)
    said = expected(after(seen), window(seen[-1]), path(load))
    scaled = expected(after(seen, mean=unit), window(seen[-1], unit), path(unit * load))
    assert scaled == pytest.approx(unit * said, rel=1e-6)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_a_faster_server_is_not_slower(seen: list[int]) -> None:
    services = [2.0 ** (node / PER_OCTAVE) for node in NODES]
    said = [expected(after(seen), window(seen[-1]), path(service)) for service in services]
    assert all(fast <= slow for fast, slow in pairwise(said))


def test_half_is_forgotten_after_a_window() -> None:
    stations = path(2.0 ** (-2 / PER_OCTAVE))
    old, new = (replayed(newest(window(seed)), stations, 0.0) for seed in (3, 4))
    said = expected(after([3, 4], new=SIZE), window(4), stations)
    assert said == pytest.approx(old ** (1 / 3) * new ** (2 / 3))  # ½·½ to ½


def test_steps_of_any_size_forget_as_fast() -> None:
    first = after([3])
    once = learnt(first, window(4), SIZE, 0.5)
    often = learnt(learnt(first, window(4), SIZE / 2, 0.5), window(4), SIZE / 2, 0.5)
    for node, (level, weight) in once.items():
        assert often[node] == pytest.approx([level, weight])


def test_levels_of_other_rates_fade_away() -> None:
    levels = after([1], mean=1000.0)
    slow = set(levels)
    for seed in range(8):
        levels = learnt(levels, window(seed), SIZE, 0.5)
    assert not slow & set(levels)


@pytest.mark.parametrize(
    ("intervals", "new"),
    [
        ([], 10.0),
        ([0.0] * 20, 10.0),
        ([1.0] * 10 + [math.nan] * 10, 10.0),
        ([1.0] * 10 + [math.inf] * 10, 10.0),
        ([1.0, 2.0] * 10, 0.0),
        ([1.0, 2.0] * 10, math.nan),
        ([1.0, 2.0] * 10, -1.0),
    ],
)
def test_what_is_not_a_number_changes_nothing(intervals: list[float], new: float) -> None:
    levels = after([1, 2])
    before = json.dumps(levels)
    assert learnt(levels, Arrivals(intervals), new, 0.5) == levels
    assert json.dumps(levels) == before


def test_levels_are_plain_values_that_are_never_changed_in_place() -> None:
    levels = after([1, 2])
    before = json.dumps(levels)
    again = json.loads(before)
    assert learnt(levels, window(3), 100.0, 0.5) == learnt(again, window(3), 100.0, 0.5)
    assert json.dumps(levels) == before


def trace(count: int = 2400) -> np.ndarray:
    return BURSTY.sample(count, np.random.default_rng(7))


def served(intervals: np.ndarray, services: np.ndarray) -> float:
    """Lindley's recursion, one by one."""
    waits, wait = [], 0.0
    for number, service in enumerate(services):
        if number:
            wait = max(0.0, wait + services[number - 1] - intervals[number])
        waits.append(wait + service)
    return float(np.mean(waits))


def test_the_cases_are_what_they_say() -> None:
    intervals = trace()
    found = [case for some in next_window.cases(intervals, window=400, step=400) for case in some]
    draws = np.random.default_rng(next_window.SEED).gamma(2.0, 0.5, len(intervals))
    assert [case.end for case in found if case.load == 0.7] == [
        end for end in range(400, 2001, 400) for _ in next_window.READINGS
    ]
    for case in found:
        now, coming = slice(case.end - 400, case.end), slice(case.end, case.end + 400)
        gap = intervals.mean() if case.reading == "trace" else intervals[now].mean()
        service = case.load * gap
        assert case.true == pytest.approx(served(intervals[coming], draws[coming] * service))
        replay = replayed(Arrivals(intervals[now]), path(service), 0.0)
        assert case.said[1] == pytest.approx(replay)
        assert all(said > 0.0 for said in case.said)
    first = [case for case in found if case.end == 400]
    for case in first:
        gap = intervals.mean() if case.reading == "trace" else intervals[:400].mean()
        half = Arrivals(intervals[200:400])
        assert case.said[2] == pytest.approx(replayed(half, path(case.load * gap), 0.0))


def test_nothing_is_said_by_arrivals_to_come() -> None:
    one = trace()
    other = one.copy()
    other[800:] = other[800:][::-1] * 3.0
    said = [
        [case.said for case in some if case.reading == "window"]
        for intervals in (one, other)
        for some in next_window.cases(intervals, window=400, step=400)
    ]
    assert said[:2] == said[5:7]
    assert said[2] != said[7]


def case(mead: float, replay: float, plus: float, end: int = 400) -> Case:
    return Case(end=end, reading="trace", load=0.5, said=(mead, replay, plus), true=1.0)


@pytest.mark.parametrize(
    ("said", "failures"),
    [
        ((4.0, 1.6, 1.5), 0),
        ((0.4, 1.6, 1.5), 1),  # more than 2/3 of mead's
        ((4.0, 1.4, 1.5), 1),  # above replay's
        ((0.9, 0.8, 1.5), 2),
        ((math.inf, 2.0, 0.5), 0),
    ],
)
def test_what_is_not_held_is_said(said: tuple[float, float, float], failures: int) -> None:
    chosen = [case(*said, end=400 + 400 * n) for n in range(5)]
    assert len(next_window.failures(chosen)) == failures
    (note,) = next_window.table(chosen, "trace", 400, window=400).notes[1:]
    assert note.startswith("at 0.5: " + ("not held: " if failures else "held"))


def test_the_table() -> None:
    chosen = [case(3.0, 0.5, 1.25, end=400 + 200 * n) for n in range(6)]
    chosen += [case(1.0, 1.0, 1.0, end=500)]  # not of this table: it begins in between
    grid = next_window.table(chosen, "trace", 200, window=400)
    assert "6 windows" in grid.title
    assert grid.rows == (
        ("0.5", "mead", "2.00 [2.00, 2.00]", "1.10 [1.10, 1.10]", "+1.10", "1.00"),
        ("0.5", "replay", "0.50 [0.50, 0.50]", "0.69 [0.69, 0.69]", "-0.69", "0.25"),
        ("0.5", "mead+", "0.25 [0.25, 0.25]", "0.22 [0.22, 0.22]", "+0.22", "0.12"),
    )


@given(st.lists(st.floats(0.0, 10.0), min_size=3, max_size=40), st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_the_interval_holds_values_that_were(values: list[float], together: int) -> None:
    found = next_window.median(np.array(values), together)
    assert found.value == np.median(values)
    assert min(values) <= found.low <= found.high <= max(values)
