"""Policies that look at lag and back pressure, against figures computed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.model import Snapshot
from penstock.policies import Dhalion, HpaVarga
from penstock.policies.signals.backlog import lag_rate, remember_lag
from penstock.policies.signals.bottleneck import bottlenecks
from penstock.policies.signals.windows import slope
from tests.fakes.scenarios import healthy, with_all
from tests.policies.test_policies import CHAIN, JOIN, SPLIT, but, last, needs, pool_needs, snapshot

# --- lag and bottleneck ---


@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.floats(0, 1e6)), min_size=2, unique_by=lambda x: x[0]
    )
)
def test_slope_is_that_of_numpys_regression(points: list[tuple[int, float]]) -> None:
    found = slope([(float(t), v) for t, v in points])
    expected = np.polyfit([t for t, _ in points], [v for _, v in points], 1)[0]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-3)


def lagging(times: list[float], lags: list[float], **fields: Any) -> list[Snapshot]:
    return [snapshot(CHAIN, time=t, lag=v, **fields) for t, v in zip(times, lags, strict=True)]


@pytest.mark.parametrize(
    ("times", "lags", "expected"),
    [
        ([0, 15, 30, 45, 60], [0, 30e3, 60e3, 90e3, 120e3], 2000.0),
        ([0, 15, 30], [0, 30e3, 60e3], 2000.0),  # half of the 60 s is enough
        ([0, 15], [0, 30e3], 500.0),  # it is not: offered − consumed
        ([0], [30e3], 500.0),
        ([0], [6000], 400.0),  # in 15 s no more can have come than waits now
        ([0], [0], 0.0),
        ([0, 15, 330], [0, 30e3, 10e6], 500.0),  # one stale and one new sample say nothing
        ([0, 15, 30, 45, 60, 75, 90], [9e6, 9e6, 0, 15e3, 30e3, 45e3, 60e3], 1000.0),
    ],
)
def test_lag_growth(times: list[float], lags: list[float], expected: float) -> None:
    memory: Any = []
    for seen in lagging(times, lags, offered_rate=10_500.0):
        memory = remember_lag(seen, memory)
    assert lag_rate(seen, memory) == pytest.approx(expected)


def test_lag_growth_of_one_source_and_of_all() -> None:
    memory: Any = []
    for i in range(5):
        seen = but(snapshot(JOIN, time=15.0 * i), "left", lag=1500.0 * i)
        seen = but(seen, "right", lag=100_000.0 - 150.0 * i)
        memory = remember_lag(seen, memory)
    assert lag_rate(seen, memory, source="left") == pytest.approx(100.0)
    assert lag_rate(seen, memory, source="right") == pytest.approx(-10.0)
    assert lag_rate(seen, memory) == pytest.approx(90.0)
    gone = but(replace(seen, time=75.0), "left", lag=None)  # measured until now: window instead
    assert lag_rate(gone, remember_lag(gone, memory)) == 0.0
    blind = but(but(seen, "right", lag=None), "left", offered_rate=None)
    assert lag_rate(blind, remember_lag(blind, [])) is None


@pytest.mark.parametrize(
    ("edges", "held", "expected"),
    [
        (CHAIN, {}, ("source",)),
        (CHAIN, {"source": 0.1}, ("source",)),  # at the limit is not above it
        (CHAIN, {"source": 0.11}, ("map",)),
        (CHAIN, {"source": 0.9, "map": 0.5}, ("sink",)),
        (CHAIN, {"map": 0.5}, ("sink",)),  # starts in the middle: the source has room left
        (CHAIN, {"source": 0.9, "map": 0.5, "sink": 0.3}, ("sink",)),  # held up from outside
        (CHAIN, {"source": 0.9, "map": None}, None),
        (JOIN, {}, ("left", "right")),
        (JOIN, {"left": 0.3}, ("join",)),
        (JOIN, {"left": 0.3, "right": 0.6}, ("join",)),
        (JOIN, {"left": 0.3, "right": 0.6, "join": 0.2}, ("sink",)),
        (SPLIT, {"source": 0.3}, ("a", "b")),
        (SPLIT, {"source": 0.3, "b": 0.3}, ("a", "sink")),
    ],
)
def test_bottleneck_by_following_back_pressure_downstream(
    edges: list[tuple[str, str]],
    held: dict[str, float | None],
    expected: tuple[str, ...] | None,
) -> None:
    assert bottlenecks(snapshot(edges, held)) == expected


# --- hpa-varga ---


def growing(rate: float, *, held: Mapping[str, float | None] | None = None, **fields: Any) -> Any:
    """Five snapshots in 60 s while the lag grows by ``rate`` records/s."""
    return [
        snapshot(CHAIN, held, time=1000.0 + 15.0 * i, **{"lag": 1e6 + rate * 15.0 * i, **fields})
        for i in range(5)
    ]


def test_varga_follows_utilisation_per_operator_with_back_pressure_as_use() -> None:
    proposal = last(HpaVarga(), snapshot(CHAIN, {"source": 0.3}, slots=7))
    assert needs(proposal) == pytest.approx({"source": 9.0, "map": 6.0, "sink": 6.0})


@pytest.mark.parametrize(
    ("policy", "rate", "expected"),
    [
        (HpaVarga(), 999.0, 4 * 0.6 / 0.7),
        (HpaVarga(), 1001.0, 4 * 1.1001),
        (HpaVarga(), 5000.0, 4 * 1.5),
        (HpaVarga(lag_target=2.0), 15_000.0, 4 * 2.5 / 2.0),
        (HpaVarga(lag_rate=6000.0), 5000.0, 4 * 0.6 / 0.7),
        (HpaVarga(strict=True), 9999.0, 4 * 0.6 / 0.7),
        (HpaVarga(strict=True), 10_001.0, 4 * 2.0001),
    ],
)
def test_varga_scales_the_bottleneck_by_the_growth_of_the_lag(
    policy: HpaVarga, rate: float, expected: float
) -> None:
    """10,000 records/s are consumed, so 5,000 /s of growth call for half as much again."""
    snapshots = growing(rate, held={"source": 0.4})
    proposal = last(policy, *snapshots)
    assert needs(proposal)["map"] == pytest.approx(expected)
    assert needs(proposal)["sink"] == pytest.approx(4 * 0.6 / 0.7)  # never the innocent
    assert needs(last(policy, snapshots[-1]))["map"] == pytest.approx(4 * 0.6 / 0.7)


def test_varga_takes_the_larger_of_its_two_metrics() -> None:
    """Used to 90 %: 4 · 0.9 / 0.7 is more than 4 · 1.2 for a lag that grows by a fifth."""
    proposal = last(HpaVarga(window=0.0), *growing(2000.0, busy=0.9, idle=0.1))
    assert needs(proposal)["source"] == pytest.approx(4 * 0.9 / 0.7)


def test_varga_blames_the_sources_without_back_pressure() -> None:
    proposal = last(HpaVarga(), *growing(5000.0))
    assert needs(proposal) == pytest.approx(
        {"source": 6.0, "map": 4 * 0.6 / 0.7, "sink": 4 * 0.6 / 0.7}
    )
    assert "lag grows by 50% of input, held up by source" in proposal.reason


def test_varga_keeps_the_maximum_of_its_window() -> None:
    """300 s after its start a need is forgotten."""
    start = growing(5000.0)
    calm = [snapshot(CHAIN, time=1060.0 + 15.0 * i, lag=1e6 + 3e5) for i in range(1, 22)]
    assert needs(last(HpaVarga(), *start, *calm[:-2]))["source"] == pytest.approx(6.0)
    assert needs(last(HpaVarga(), *start, *calm))["source"] < 6.0


@pytest.mark.parametrize(
    "unknown",
    [
        {"lag": None, "offered_rate": None},  # whether the lag grows
        {"arrival_rate": None},  # how much that is
        {"backpressured": None},  # whose fault it is
    ],
)
def test_varga_scales_nothing_down_while_lag_may_grow_unseen(unknown: dict[str, None]) -> None:
    quiet = needs(last(HpaVarga(), *growing(5000.0, busy=0.3, idle=0.7, **unknown)))
    assert quiet == {"source": 4.0, "map": 4.0, "sink": 4.0}
    busy = needs(last(HpaVarga(), *growing(5000.0, busy=0.9, idle=0.1, **unknown)))
    assert busy["map"] == pytest.approx(4 * 0.9 / 0.7)


def test_varga_does_not_believe_shares_that_do_not_add_up() -> None:
    seen = but(snapshot(CHAIN), "map", busy=0.0, idle=0.0)
    assert set(last(HpaVarga(), seen).needs) == {"source", "sink"}
    lone = but(snapshot(CHAIN), "map", busy=None, idle=0.0)
    assert set(last(HpaVarga(), lone).needs) == {"source", "sink"}
    saturated = but(snapshot(CHAIN), "map", busy=1.0, idle=0.0)
    assert needs(last(HpaVarga(), saturated))["map"] == pytest.approx(4 / 0.7)


# --- dhalion ---


@pytest.mark.parametrize(
    ("edges", "held", "expected"),
    [
        (CHAIN, {"source": 0.2}, {"map": 10.0}),  # the example below equation 4.1
        (CHAIN, {"source": 0.2, "map": 0.5}, {"sink": 16.0}),
        (CHAIN, {"source": 0.95}, {"map": 80.0}),  # at most 0.9 is believed
        (JOIN, {"left": 0.2, "right": 0.5}, {"join": 16.0}),  # the largest upstream share
    ],
)
def test_dhalion_scales_the_bottleneck_by_the_share_held_back(
    edges: list[tuple[str, str]], held: dict[str, float | None], expected: dict[str, float]
) -> None:
    proposal = last(Dhalion(), snapshot(edges, held, slots=8))
    assert needs(proposal) == pytest.approx(expected)
    assert proposal.pool_needs == {}


def test_dhalion_scales_one_operator_the_one_with_the_largest_factor() -> None:
    two = [("s", "a"), ("a", "sink"), ("t", "b"), ("b", "sink")]
    assert needs(last(Dhalion(), snapshot(two, {"s": 0.2, "t": 0.5}))) == {"b": 8.0}
    assert needs(last(Dhalion(), snapshot(two, {"s": 0.5, "t": 0.2}))) == {"a": 8.0}


def test_dhalion_below_a_split_takes_the_branch_that_is_full() -> None:
    seen = but(snapshot(SPLIT, {"source": 0.5}), "a", buffer=0.1)
    assert needs(last(Dhalion(), seen)) == {"b": 8.0}
    assert needs(last(Dhalion(), but(seen, "b", buffer=0.05))) == {"a": 8.0}


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(1001.0, 4 * 1.1001), (5000.0, 6.0), (1e6, 40.0)],  # at most × 10
)
def test_dhalion_scales_the_sources_when_only_the_lag_grows(rate: float, expected: float) -> None:
    assert needs(last(Dhalion(), *growing(rate))) == pytest.approx({"source": expected})


def test_dhalion_scales_the_source_that_falls_behind_most() -> None:
    snapshots = []
    for i in range(5):
        seen = but(snapshot(JOIN, time=15.0 * i), "left", lag=75_000.0 * i, arrival_rate=20_000.0)
        snapshots.append(but(seen, "right", lag=60_000.0 * i, arrival_rate=5000.0))
    assert needs(last(Dhalion(), *snapshots)) == pytest.approx({"right": 4 * 1.8})


def test_dhalion_in_a_loop_that_sleeps_uses_the_window_of_the_snapshot() -> None:
    """315 s after the last look the old lag says nothing; offered − consumed does."""
    before = snapshot(CHAIN, time=1000.0, lag=0.0)
    steady = snapshot(CHAIN, time=1315.0, lag=900_000.0, buffer=0.1)
    assert needs(last(Dhalion(), before, steady)) == {"map": 3.0, "sink": 3.0}
    behind = with_all(steady, offered_rate=15_000.0)
    assert needs(last(Dhalion(), before, behind)) == pytest.approx({"source": 6.0})


@pytest.mark.parametrize(
    ("slots", "factor", "expected"),
    [(1, 1.2, 1), (2, 1.2, 1), (4, 1.2, 3), (5, 1.2, 4), (6, 1.2, 4), (30, 1.1, 27), (20, 1.2, 16)],
)
def test_dhalion_shrinks_what_is_empty_rounded_down(
    slots: int, factor: float, expected: int
) -> None:
    seen = snapshot(CHAIN, slots=slots, buffer=0.1, lag=100.0)
    proposal = last(Dhalion(scale_down_factor=factor), seen)
    assert needs(proposal) == {"source": expected, "map": expected, "sink": expected}


def test_dhalion_shrinks_only_what_is_below_its_limits() -> None:
    seen = snapshot(CHAIN, lag=10_000.0)
    seen = but(but(seen, "map", buffer=0.2), "sink", buffer=0.199)
    assert needs(last(Dhalion(), seen)) == {"sink": 3.0}
    assert needs(last(Dhalion(), but(seen, "source", lag=9999.0))) == {"source": 3.0, "sink": 3.0}
    touched = but(seen, "source", backpressured=0.1, idle=0.3)
    assert needs(last(Dhalion(), touched)) == {"sink": 3.0}  # at the limit is not above it
    full = but(seen, "sink", buffer=0.9)
    assert last(Dhalion(), full).needs == {}


def test_dhalion_strict_takes_a_rate_for_a_count() -> None:
    """A backlog of a million records: the source is shrunk because it grows slowly."""
    seen = growing(0.0)
    assert needs(last(Dhalion(), *seen)) == {}
    assert needs(last(Dhalion(strict=True), *seen)) == {"source": 3.0}
    fast = growing(11_000.0)
    loose = Dhalion(strict=True, lag_rate=1e9)
    assert needs(last(loose, *fast)) == {}


def test_dhalion_rounds_a_shared_pool_down_once() -> None:
    """10 slots of which three operators have 3⅓ each: 8 are left, not 3 · floor(2⅔) = 6."""
    seen = healthy(shared=True, slots=10)
    assert pool_needs(last(Dhalion(), seen)) == {"all": 8.0}
    one = but(but(seen, "map", buffer=0.9), "sink", buffer=0.9)
    assert pool_needs(last(Dhalion(), one)) == {"all": 9.0}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"backpressured": None}, "back pressure not measured"),
        ({"busy": 0.0, "idle": 0.0}, "back pressure not measured"),
        ({"lag": None, "offered_rate": None}, "lag growth not measured"),
        ({"lag": None, "arrival_rate": None}, "lag growth not measured"),
        ({"buffer": None, "lag": None}, "nothing to scale down"),
    ],
)
def test_dhalion_does_nothing_without_its_metrics(fields: dict[str, Any], says: str) -> None:
    proposal = last(Dhalion(), snapshot(CHAIN, **{"buffer": 0.0, "lag": 0.0, **fields}))
    assert proposal.needs == proposal.pool_needs == {}
    assert says in proposal.reason


def test_dhalion_needs_no_lag_to_see_back_pressure() -> None:
    seen = snapshot(CHAIN, {"source": 0.5}, lag=None, offered_rate=None)
    assert needs(last(Dhalion(), seen)) == {"map": 8.0}
