"""The geo simulator: each mechanism against a formula by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.core.guards import Guards
from penstock.core.latency import LatencyMap
from penstock.core.loop import Loop
from penstock.network.maps import Fluctuating, from_inbound
from penstock.policies import POLICIES, create
from penstock.simulator import kernel
from penstock.simulator.geo import GeoEngine, GeoSpec, Job, Keys, Windows
from penstock.simulator.geo import kernel as geo_kernel
from penstock.workloads.patterns import Constant, Cosine
from tests.fakes.geo_runs import NAMES, quiet, saturated, through


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_source_takes_cpu_from_the_first_instance(n: int) -> None:
    job = Job(name="op", work=1e-2, source_cost=1e-3, exchange_cost=5e-4)
    spec = quiet(job, start=n)
    expected = 1.0 / (1e-3 + 5e-4 * (1 - 1 / n) + 1e-2 / n)
    assert through(spec) == pytest.approx(expected)
    assert spec.capacity(NAMES[:n]) == pytest.approx(expected)
    loads = [slot.load for slot in saturated(spec).pools["op"]]
    assert loads[0] == pytest.approx(1.0)
    assert loads[1:] == pytest.approx([expected * 1e-2 / n] * (n - 1))


def test_a_source_apart_has_a_limit_of_its_own() -> None:
    job = Job(name="op", work=1e-2, source_cost=1e-3, exchange_cost=1e-3, beside=False)
    assert through(quiet(job, start=1)) == pytest.approx(100.0)
    slow = replace(job, source_cost=0.02)
    assert through(quiet(slow, start=6)) == pytest.approx(1 / 0.021)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_channels_to_other_nodes_cost_every_instance_cpu(n: int) -> None:
    job = Job(name="op", work=1e-2, channel_cost=0.04)
    assert through(quiet(job, start=n)) == pytest.approx(100.0 * n * (1 - 0.04 * (n - 1)))


def test_the_farthest_node_holds_up_all_by_its_credit() -> None:
    job = Job(name="op", work=1e-2, credit=20.0)
    network = from_inbound({"a": 0.0, "b": 0.01, "c": 0.04})
    spec = quiet(job, network, start=3)
    expected = 3.0 / (1e-2 + 0.05 / 20.0)  # b and c are 50 ms apart
    assert through(spec) == pytest.approx(expected)
    assert spec.capacity("abc") == pytest.approx(expected)
    assert spec.capacity("a") == pytest.approx(100.0)
    seen = saturated(spec)
    # While it waits it is idle, not busy; the source is held back all the same.
    busy = expected * 1e-2 / 3
    assert [s.load for s in seen.pools["op"]] == pytest.approx([busy] * 3)
    assert seen.operators["op"].idle == pytest.approx(1 - busy)
    assert seen.operators["source"].backpressured == pytest.approx(1.0)


@pytest.mark.parametrize("waiting_cpu", [0.0, 0.5, 1.0])
def test_cpu_has_a_base_load_and_a_share_of_the_waiting(waiting_cpu: float) -> None:
    job = Job(
        name="op", work=1e-2, credit=10.0, waiting_cpu=waiting_cpu, cpu_base=0.2, cpu_ceiling=0.9
    )
    seen = saturated(quiet(job, from_inbound({"a": 0.0, "b": 0.1}), start=2))
    used = 0.2 + 0.7 * (0.5 + 0.5 * waiting_cpu)  # 10 ms of work, 10 ms of waiting
    assert [s.cpu for s in seen.pools["op"]] == pytest.approx([used, used])
    assert seen.operators["op"].cpu == pytest.approx(used)


@pytest.mark.parametrize("n", [1, 3, 5, 6])
def test_key_groups_are_dealt_out_whole(n: int) -> None:
    job = Job(name="op", work=1e-2, keys=Keys(groups=32))
    assert through(quiet(job, start=n)) == pytest.approx(100.0 * 32 / math.ceil(32 / n))


def test_hot_groups_keep_some_instances_busier_and_which_depends_on_their_number() -> None:
    keys = Keys(groups=12, hot=(5,), hot_work=1e-2)
    job = Job(name="op", work=1e-2, keys=keys)
    for n, owner in ((2, 0), (3, 1), (4, 1), (6, 2)):
        seen = saturated(quiet(job, start=n))
        loads = [slot.load or 0.0 for slot in seen.pools["op"]]
        assert loads.index(max(loads)) == owner
        assert seen.operators["op"].arrival_rate == pytest.approx(1 / (1e-2 / n + 1e-2))
        assert min(loads) == pytest.approx((1e-2 / n) / (1e-2 / n + 1e-2))


def windowed(**more: Any) -> GeoSpec:
    windows = Windows(every=4.0, rounds=40.0, part=100.0, spread=0.0)
    job = Job(name="op", work=1e-3, source_cost=1e-4, windows=windows)
    network = from_inbound({"a": 0.0, "b": 0.0, "c": 0.1, "d": 0.1})
    return quiet(job, network, **more)


def test_a_window_is_let_in_at_the_pace_at_which_its_state_is_stored() -> None:
    # 1000/s offered: 4000 records a window, of which each of four instances stores 1000.
    spec = windowed(start=4)
    trips = 40.0 + 1000 / 100
    slowest = trips * (0.1 + 0.1 + 0.2) / 4  # from c: a and b 0.1 s, d 0.2 s, itself 0
    seen = saturated(spec, rps=1000.0)
    assert seen.operators["op"].arrival_rate == pytest.approx(4000 / slowest)
    # Waiting for that is no back pressure: buffers are empty.
    busy = 4000 / slowest * (1e-4 + 1e-3 / 4)  # of the first instance, with the source beside it
    held = seen.operators["source"].backpressured
    assert held == pytest.approx(busy**10 * (1 - 4000 / slowest * 1e-4)) and busy**10 < 1e-4
    assert (seen.operators["source"].lag or 0.0) > 0.0
    assert max(s.load or 0.0 for s in seen.pools["op"]) < 1.0


def test_windows_on_near_nodes_cost_nothing() -> None:
    seen = saturated(windowed(start=2), rps=1e4)
    assert seen.operators["op"].arrival_rate == pytest.approx(1 / (1e-4 + 5e-4))
    assert seen.operators["source"].backpressured == pytest.approx(1 - 1e-4 / 6e-4)


def test_more_delayed_nodes_make_the_slowest_of_them_slower() -> None:
    windows = Windows(every=4.0, rounds=40.0, part=1e9, spread=1.0)
    job = Job(name="op", work=1e-6, windows=windows)
    rates = []
    for n in (2, 4, 8):
        names = [f"n{i}" for i in range(n)]
        rtt = np.full((n, n), 0.1 * n / (n - 1)) * (1 - np.eye(n))  # the same mean for all n
        spec = quiet(job, LatencyMap(names, rtt), start=n)
        rates.append(saturated(spec, rps=1e4, seconds=4000).operators["op"].arrival_rate)
    harmonic = [1.5, 25 / 12, 761 / 280]  # mean of the largest of n exponentials
    expected = [4e4 / (40 * 0.1 * (1 + h)) for h in harmonic]
    assert rates == pytest.approx(expected, rel=0.06)


def test_round_trips_may_fluctuate_with_time() -> None:
    base = from_inbound({"a": 0.0, "b": 0.1})
    swinging = Fluctuating(base=base, swing={"b": 0.05}, period=10.0, seed=2)
    job = Job(name="op", work=1e-2, credit=10.0)
    spec = quiet(job, base, start=2)
    engine = GeoEngine(replace(spec, network=swinging), Constant(rps=1e4), seconds=40)
    engine.advance(40)
    trips = [swinging.at(float(t)).between("a", "b") for t in range(40)]
    expected = [2 / (1e-2 + trip / 10.0) for trip in trips]
    assert engine.series.consumed == pytest.approx(expected)
    assert engine.observe().rtt == swinging.at(40.0)


def test_any_policy_runs_on_it() -> None:
    spec = replace(windowed(start=1, prices={"b": 2.0}), capacity_noise=0.03, metric_noise=0.01)
    for name in POLICIES:
        engine = GeoEngine(spec, Cosine(high=1500.0, low=100.0, period=600.0), seconds=1200)
        loop = Loop(engine, create(name), Guards(maximum=4), mode="act", seed=3)
        while engine.advance(60):
            decision = loop.tick()
            assert "raised" not in decision.explain(), name
            assert all("whole nodes" in note for note in decision.notes), decision.explain()
        assert decision.seen.prices == {"b": 2.0} and decision.seen.rtt == spec.map


def test_gesscale_takes_the_node_worth_its_price_and_refuses_one_that_is_not() -> None:
    """[arkian21, IV-D]: the model tells what a node gains; is it worth its price?"""
    prices = {"b": 10.0, "c": 1.0, "d": 10.0, "e": 10.0, "f": 10.0}
    spec = quiet(Job(name="op", work=1e-2, beside=False), prices=prices)
    engine = GeoEngine(spec, Constant(rps=1000.0), seconds=600)
    policy = create("gesscale", {"gain_per_price": 20.0})
    loop = Loop(engine, policy, Guards(maximum=6), mode="act")
    said = []
    while engine.advance(60):
        said.append(loop.tick().explain())
    assert engine.nodes == ("a", "c")  # 100/s more at a price of 1; then at a price of 10
    assert "at least 20 is asked for" in said[-1]


def test_both_kernels_begin_their_series_with_the_same_rows() -> None:
    names = ["OFFERED", "CONSUMED", "DELIVERED", "LAG", "QUEUE_LATENCY", "LATENCY", "DOWN", "CPU"]
    assert [getattr(kernel, n) for n in names] == [getattr(geo_kernel, n) for n in names]
