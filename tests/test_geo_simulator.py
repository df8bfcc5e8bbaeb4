"""The geo simulator: each mechanism against a formula by hand, and what must hold for every run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import EngineError, InputError
from penstock.core.guards import Guards
from penstock.core.latency import LatencyMap
from penstock.core.loop import Loop
from penstock.core.model import Change, Snapshot
from penstock.network.maps import Fluctuating, from_inbound, random_pairs
from penstock.policies import POLICIES, create
from penstock.simulator import LIVE, RESTART, RescaleProfile
from penstock.simulator.geo import GeoEngine, GeoSpec, Job, Keys, Windows
from penstock.workloads.patterns import Constant, Cosine

EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True)
AT_ONCE = RescaleProfile(name="at once")
NAMES = ("a", "b", "c", "d", "e", "f")


def near(count: int = 6) -> LatencyMap:
    return from_inbound(dict.fromkeys(NAMES[:count], 0.0))


def quiet(job: Job, network: LatencyMap | None = None, **more: Any) -> GeoSpec:
    given: dict[str, Any] = {"capacity_noise": 0.0, "metric_noise": 0.0, "profile": AT_ONCE}
    return GeoSpec(job=job, network=network or near(), **(given | more))


def saturated(spec: GeoSpec, rps: float = 1e6, seconds: int = 60) -> Snapshot:
    engine = GeoEngine(spec, Constant(rps=rps), seconds=seconds)
    engine.advance(seconds)
    return engine.observe()


def through(spec: GeoSpec, rps: float = 1e6) -> float:
    """Records/s that come through when far more are offered."""
    rate = saturated(spec, rps).operators[spec.job.name].arrival_rate
    assert rate is not None
    return rate


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


def change(engine: GeoEngine, slots: int, **more: Any) -> None:
    before = len(engine.nodes)
    engine.apply({"op": Change(before=before, slots=slots, raw=float(slots), **more)})


OP = Job(name="op", work=1e-2)


def test_a_change_stops_the_job_and_the_backlog_is_worked_off() -> None:
    spec = quiet(OP, profile=RescaleProfile(name="stop", downtime=30.0))
    engine = GeoEngine(spec, Constant(rps=80.0), seconds=300)
    engine.advance(60)
    engine.observe()
    change(engine, 2)
    engine.advance(29)
    seen = engine.observe()
    assert seen.acting and seen.slots("op") == 1
    assert seen.operators["op"].arrival_rate is None and seen.operators["op"].cpu is None
    assert seen.operators["source"].offered_rate == pytest.approx(80.0)
    engine.advance(1)
    assert engine.nodes == ("a", "b")
    engine.advance(5)
    seen = engine.observe()
    assert not seen.acting and seen.slots("op") == 2
    assert seen.operators["source"].lag == pytest.approx(30 * 80 - 5 * 120)
    assert seen.operators["source"].backpressured == pytest.approx(1.0)
    cost = seen.rescales[-1]
    assert (cost.before, cost.after, cost.downtime, cost.steady) == (1, 2, 30.0, 31.0)
    engine.advance(100)
    assert engine.series.lag[-1] == 0.0
    assert engine.series.slots["op"][[59, 89, 90]].tolist() == [1, 1, 2]


def test_named_nodes_and_slots_are_used_and_others_chosen_in_order() -> None:
    engine = GeoEngine(quiet(OP, start=2), Constant(rps=1.0), seconds=100)
    wishes: list[tuple[int, dict[str, Any], str]] = [
        (3, {"add_on": ("e",)}, "abe"),
        (5, {}, "abecd"),  # the first that are free
        (4, {"remove": ("op-b",)}, "aecd"),
        (2, {}, "ae"),  # the last go
        (2, {"add_on": ("f",), "remove": ("op-a",)}, "ef"),  # a move
        (1, {"add_on": ("b",)}, "b"),  # a named node wins over those there
    ]
    for slots, named, expected in wishes:
        change(engine, slots, **named)
        assert "".join(engine.nodes) == expected
    assert engine.observe().free_nodes == ("a", "c", "d", "e", "f")


def test_the_source_goes_beside_the_instance_that_is_there_for_longest() -> None:
    job = Job(name="op", work=1e-2, source_cost=2e-3)
    engine = GeoEngine(quiet(job, start=2), Constant(rps=1e4), seconds=100)
    engine.advance(10)
    engine.observe()
    change(engine, 2, add_on=("f",), remove=("op-a",))
    engine.advance(10)
    seen = engine.observe()
    assert [slot.node for slot in seen.pools["source"]] == ["b"]
    loads = {slot.node: slot.load for slot in seen.pools["op"]}
    assert loads["b"] == pytest.approx(1.0) and (loads["f"] or 1.0) < 0.8


def test_moving_an_instance_stops_the_job_though_their_number_stays() -> None:
    spec = quiet(OP, profile=RescaleProfile(name="stop", downtime=10.0))
    engine = GeoEngine(spec, Constant(rps=50.0), seconds=60)
    engine.advance(20)
    change(engine, 1)  # nothing asked for
    engine.advance(1)
    assert engine.series.down.sum() == 0.0
    change(engine, 1, add_on=("c",), remove=("op-a",))
    engine.advance(20)
    assert engine.series.down.sum() == 10.0 and engine.nodes == ("c",)


def test_instances_may_join_one_after_the_other() -> None:
    engine = GeoEngine(quiet(OP, profile=replace(LIVE, jitter=0.0)), Constant(rps=1e4), seconds=30)
    change(engine, 3)
    engine.advance(30)
    assert engine.series.slots["op"].tolist() == [1.0] * 3 + [2.0] * 2 + [3.0] * 25
    assert engine.series.down.sum() == 0.0


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"op": {"slots": 7}}, "possible are 1 to 6"),
        ({"op": {"slots": 2, "add_on": ("x",)}}, "unknown node 'x'"),
        ({"op": {"slots": 2, "add_on": ("a",)}}, "node a has an instance"),
        ({"op": {"slots": 3, "add_on": ("b", "b")}}, "stands twice in b, b"),
        ({"op": {"slots": 1, "remove": ("op-c",)}}, "unknown slot of op 'op-c'"),
        ({"op": {"slots": 1, "cpu_share": 0.5}}, "whole nodes only"),
        ({"source": {"slots": 2}}, "pool source has one slot"),
        ({"other": {"slots": 2}}, "unknown pool 'other'"),
    ],
)
def test_changes_that_cannot_be(wish: dict[str, Any], words: str) -> None:
    engine = GeoEngine(quiet(OP), Constant(rps=1.0), seconds=10)
    changes = {pool: Change(before=1, raw=1.0, **more) for pool, more in wish.items()}
    with pytest.raises((InputError, EngineError), match=words):
        engine.apply(changes)
    assert engine.nodes == ("a",)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Job(name="op", work=0.0), "work = 0.0 must be a finite number above 0"),
        (lambda: Job(name="sink", work=1.0), "cannot call its operator 'sink'"),
        (lambda: Job(name="op", work=1.0, credit=0.5), "credit = 0.5"),
        (lambda: Job(name="op", work=1.0, cpu_base=0.5, cpu_ceiling=0.4), "cpu_ceiling"),
        (lambda: Keys(groups=4, hot=(4,)), "hot group 4"),
        (lambda: Keys(hot=(1, 1)), "must be different"),
        (lambda: Keys(hot_work=1.0), "name some"),
        (lambda: Windows(every=0.5, rounds=1.0, part=1.0), "every = 0.5"),
        (lambda: quiet(OP, start=7), "start 7 must be 1 to 6"),
        (lambda: quiet(OP, prices={"x": 1.0}), "name in prices"),
        (lambda: quiet(replace(OP, channel_cost=0.2)), "at most 5 nodes"),
        (lambda: quiet(OP).capacity(["a", "a"]), "one each"),
        (lambda: GeoEngine(quiet(OP), Constant(rps=1.0), seconds=0), "seconds 0"),
        (lambda: GeoEngine(quiet(OP), Constant(rps=1.0), seconds=1, seed=-1), "seed -1"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


@st.composite
def specs(draw: st.DrawFn) -> GeoSpec:
    keys = draw(st.none() | st.builds(Keys, groups=st.integers(1, 200)))
    windows = draw(
        st.none()
        | st.builds(
            Windows,
            every=st.floats(1.0, 20.0),
            rounds=st.floats(0.0, 200.0),
            part=st.floats(0.1, 1e4),
            spread=st.floats(0.0, 3.0),
            between_runs=st.floats(0.0, 1.0),
        )
    )
    job = Job(
        name="op",
        work=draw(st.floats(1e-6, 1.0)),
        source_cost=draw(st.floats(0.0, 0.1)),
        exchange_cost=draw(st.floats(0.0, 0.1)),
        beside=draw(st.booleans()),
        channel_cost=draw(st.floats(0.0, 0.1)),
        credit=draw(st.none() | st.floats(1.0, 1e4)),
        waiting_cpu=draw(st.floats(0.0, 1.0)),
        keys=keys,
        windows=windows,
    )
    network = random_pairs(NAMES, 0.0, draw(st.floats(0.0, 0.5)), seed=draw(st.integers(0, 99)))
    return GeoSpec(
        job=job,
        network=network,
        start=draw(st.integers(1, 6)),
        profile=draw(st.sampled_from([RESTART, LIVE, AT_ONCE])),
        capacity_noise=draw(st.sampled_from([0.0, 0.03, 0.3])),
        metric_noise=draw(st.sampled_from([0.0, 0.01, 0.3])),
    )


@EXAMPLES
@given(
    spec=specs(),
    high=st.floats(0.0, 1e6),
    wishes=st.lists(st.tuples(st.integers(1, 90), st.integers(1, 6)), max_size=6),
    seed=st.integers(0, 2**32),
)
def test_records_are_conserved_and_readings_stay_within_bounds(
    spec: GeoSpec, high: float, wishes: list[tuple[int, int]], seed: int
) -> None:
    engine = GeoEngine(spec, Cosine(high=high, low=0.0, period=240.0), seconds=600, seed=seed)
    for seconds, slots in [*wishes, (30, 1)]:
        engine.advance(seconds)
        seen = engine.observe()
        for o in seen.operators.values():
            shares = (o.busy, o.idle, o.backpressured)
            if o.busy is not None:
                assert sum(s or 0.0 for s in shares) == pytest.approx(1.0)
                assert all(s is not None and 0 <= s <= 1 for s in shares)
            assert o.cpu is None or 0 < o.cpu <= 1
        for slot in seen.pools["op"]:
            assert slot.load is None or 0 <= slot.load <= 1 + 1e-9
        used = {slot.node for slot in seen.pools["op"]}
        assert len(used) == seen.slots("op") and used.isdisjoint(seen.free_nodes)
        change(engine, slots)
    engine.advance(1000)
    totals, s = engine.totals(), engine.series
    assert totals.imbalance <= 1e-9
    assert totals.arrived == pytest.approx(totals.consumed + totals.queued, rel=1e-9)
    assert s.offered.sum() == pytest.approx(totals.arrived, rel=1e-9, abs=1e-9)
    assert s.consumed.sum() == pytest.approx(totals.delivered, rel=1e-9, abs=1e-9)
    for row in (s.consumed, s.lag, s.queue_latency, s.latency, s.cpu):
        assert np.isfinite(row).all() and (row >= 0).all()
    assert (s.consumed[s.down == 1] == 0).all()


@EXAMPLES
@given(spec=specs(), rps=st.floats(0.0, 1e5), seed=st.integers(0, 1000))
def test_a_seed_decides_everything(spec: GeoSpec, rps: float, seed: int) -> None:
    runs = []
    for steps in ([15] * 8, [60, 59.5, 0.5]):  # however the time is divided
        engine = GeoEngine(spec, Constant(rps=rps), seconds=120, seed=seed)
        for seconds in steps:
            engine.advance(seconds)
        runs.append((engine.series.consumed.tobytes(), engine.series.latency.tobytes()))
    assert runs[0] == runs[1]
    assert engine.advance(0.0) and not engine.advance(1.0)


@EXAMPLES
@given(spec=specs(), nodes=st.permutations(NAMES), count=st.integers(1, 6))
def test_capacity_is_what_a_saturated_run_does(spec: GeoSpec, nodes: list[str], count: int) -> None:
    used = nodes[:count]
    plain = replace(spec, job=replace(spec.job, windows=None), start=1)
    plain = replace(plain, capacity_noise=0.0, metric_noise=0.0, profile=AT_ONCE)
    engine = GeoEngine(plain, Constant(rps=1e8), seconds=3)
    here = engine.nodes[0]
    gone = () if here in used else (f"op-{here}",)
    change(engine, count, add_on=tuple(n for n in used if n != here), remove=gone)
    engine.advance(3)
    assert set(engine.nodes) == set(used)
    assert engine.series.consumed[-1] == pytest.approx(plain.capacity(engine.nodes))


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
