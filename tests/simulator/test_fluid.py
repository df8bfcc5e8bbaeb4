"""Named scenarios of the fluid simulator; closed forms hold with the noise switched off."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock.simulator
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.model import Change, OperatorSeen
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies.ds2 import DS2
from penstock.policies.signals.cpu import pool_cpu
from penstock.simulator import LIVE, RESTART, FluidEngine, FluidSpec, RescaleProfile
from penstock.workloads.patterns import Constant, Cosine, Pattern, Step

QUIET: dict[str, Any] = {"capacity_noise": 0.0, "metric_noise": 0.0}
STEADY_RESTART = RescaleProfile(name="steady", downtime=37.0)
NAMES = ("source", "map", "sink")


def chain_spec(
    rates: tuple[float, ...] = (100.0, 50.0, 80.0),
    slots: tuple[int, ...] = (2, 2, 2),
    selectivity: tuple[float, ...] = (1.0, 1.0, 1.0),
    pool: str | None = None,
    **options: Any,
) -> FluidSpec:
    """source → map → sink, each with a pool of its own, or all on one pool."""
    pipeline = Pipeline(
        operators={
            name: Operator(pool=pool or name, selectivity=s)
            for name, s in zip(NAMES, selectivity, strict=True)
        },
        edges=list(pairwise(NAMES)),
    )
    start = {pool: slots[0]} if pool else dict(zip(NAMES, slots, strict=True))
    rate_of = dict(zip(NAMES, rates, strict=True))
    return FluidSpec(pipeline=pipeline, service_rates=rate_of, start=start, **{**QUIET, **options})


def engine_of(spec: FluidSpec, rps: float, seconds: int = 600, seed: int = 0) -> FluidEngine:
    return FluidEngine(spec, Constant(rps=rps), seconds=seconds, seed=seed)


def to(before: int, slots: int) -> Change:
    return Change(before=before, slots=slots, raw=float(slots))


def numbers(o: OperatorSeen) -> Iterator[tuple[str, float]]:
    for name in OperatorSeen.__slots__:
        value = getattr(o, name)
        if value is not None:
            yield name, value


# below capacity


def test_below_capacity_everything_passes_and_busy_is_the_utilisation() -> None:
    engine = engine_of(chain_spec(), 60.0)
    engine.advance(100)
    engine.observe()
    engine.advance(15)
    seen = engine.observe()
    for name, mu in (("source", 100.0), ("map", 50.0), ("sink", 80.0)):
        o = seen.operators[name]
        assert o.arrival_rate == pytest.approx(60.0)
        assert o.busy == pytest.approx(60.0 / (2 * mu))  # λ / (μ p)
        assert o.idle == pytest.approx(1 - 60.0 / (2 * mu))
        assert o.backpressured == 0
        assert o.service_rate == pytest.approx(mu)
        assert o.cpu == pytest.approx(0.22 + (0.94 - 0.22) * 60.0 / (2 * mu))
    assert seen.operators["source"].lag == 0
    assert seen.operators["sink"].latency == 0
    assert np.allclose(engine.series.delivered, 60.0)
    assert (seen.time, seen.window, seen.acting, seen.rescales) == (115.0, 15.0, False, ())


def test_only_sources_have_an_offered_rate_and_a_lag_and_no_input_buffer() -> None:
    engine = engine_of(chain_spec(), 60.0)
    engine.advance(15)
    seen = engine.observe().operators
    assert (seen["source"].offered_rate, seen["source"].lag) == (60.0, 0.0)
    assert seen["source"].buffer is None
    for name in ("map", "sink"):
        assert (seen[name].offered_rate, seen[name].lag, seen[name].buffer) == (None, None, 0.0)


def test_nothing_offered_reads_as_idle_and_measures_no_service_rate() -> None:
    engine = engine_of(chain_spec(), 0.0)
    engine.advance(15)
    for o in engine.observe().operators.values():
        assert (o.busy, o.idle, o.backpressured, o.arrival_rate) == (0, 1, 0, 0)
        assert (o.service_rate, o.latency) == (None, None)
        assert o.cpu == pytest.approx(0.22)


def test_selectivity_multiplies_the_rates_downstream() -> None:
    engine = engine_of(chain_spec(selectivity=(0.5, 3.0, 1.0)), 40.0)
    engine.advance(30)
    seen = engine.observe().operators
    assert seen["map"].arrival_rate == pytest.approx(20.0)
    assert seen["map"].output_rate == pytest.approx(60.0)
    assert seen["sink"].arrival_rate == pytest.approx(60.0)


def test_partitions_limit_the_slots_that_can_work() -> None:
    pipeline = Pipeline(operators={"only": Operator(pool="p", partitions=3)})
    spec = FluidSpec(pipeline=pipeline, service_rates={"only": 10.0}, start={"p": 5}, **QUIET)
    engine = engine_of(spec, 100.0)
    engine.advance(60)
    assert engine.series.delivered[-1] == pytest.approx(30.0)
    assert engine.observe().operators["only"].busy == pytest.approx(3 / 5)


# overload


def test_overload_runs_at_the_bottleneck_and_lag_grows_by_the_difference() -> None:
    engine = engine_of(chain_spec(), 150.0)  # map does 2 · 50 = 100/s
    engine.advance(300)
    engine.observe()
    engine.advance(60)
    s, seen = engine.series, engine.observe().operators
    assert np.allclose(s.delivered[10:], 100.0)
    assert np.allclose(np.diff(s.lag[10:]), 150.0 - 100.0)
    assert seen["map"].busy == pytest.approx(1.0)
    assert seen["source"].busy == pytest.approx(100.0 / 200.0)
    assert seen["source"].backpressured == pytest.approx(1 - 100.0 / 200.0)
    assert seen["source"].idle == pytest.approx(0.0)
    assert seen["sink"].backpressured == 0
    assert seen["sink"].idle == pytest.approx(1 - 100.0 / 160.0)
    assert seen["map"].buffer == pytest.approx(1.0)
    assert seen["map"].service_rate == pytest.approx(50.0)


def test_queue_latency_under_constant_overload_is_the_horizontal_distance() -> None:
    """Record x came at x/λ and leaves at x/c: at time t the head has waited t·(1 − c/λ)."""
    engine = engine_of(chain_spec(), 150.0)
    engine.advance(600)
    t = np.arange(1, 601)
    buffered = engine.totals().buffered  # consumed before it was worked off
    expected = t - (100.0 * t + buffered) / 150.0
    assert np.allclose(engine.series.queue_latency[20:], expected[20:])


def test_a_full_buffer_adds_its_seconds_of_work_to_the_latency() -> None:
    """What leaves the buffer now left the queue 0.5 s ago, when the queue was shorter."""
    engine = engine_of(chain_spec(buffer_seconds=0.5), 150.0)
    engine.advance(300)
    s = engine.series
    queue_growth = 1 - 100.0 / 150.0
    assert s.latency[-1] - s.queue_latency[-1] == pytest.approx(0.5 * (1 - queue_growth))


def test_the_whole_chain_above_a_slow_sink_is_held_back() -> None:
    engine = engine_of(chain_spec(rates=(100.0, 100.0, 20.0)), 500.0)
    engine.advance(100)
    engine.observe()
    engine.advance(15)
    seen = engine.observe().operators
    assert seen["source"].backpressured == pytest.approx(1 - 40 / 200)
    assert seen["map"].backpressured == pytest.approx(1 - 40 / 200)
    assert seen["sink"].busy == pytest.approx(1.0)


def test_a_busy_ceiling_lowers_busy_and_distorts_the_service_rate() -> None:
    engine = engine_of(chain_spec(busy_ceilings={"source": 0.67}), 500.0)
    engine.advance(100)
    engine.observe()
    engine.advance(15)
    source = engine.observe().operators["source"]
    assert source.busy == pytest.approx(0.67 * 0.5)
    assert source.backpressured == pytest.approx(1 - 0.67 * 0.5)
    assert source.service_rate == pytest.approx(100.0 / 0.67)


def test_a_saturated_operator_below_its_busy_ceiling_is_idle_not_held_back() -> None:
    engine = engine_of(chain_spec(busy_ceilings={"map": 0.95}), 500.0)
    engine.advance(100)
    engine.observe()
    engine.advance(15)
    o = engine.observe().operators["map"]
    assert o.busy == pytest.approx(0.95)
    assert o.idle == pytest.approx(0.05)
    assert o.backpressured == 0


def test_a_backlog_is_worked_off_at_full_speed_after_a_burst() -> None:
    engine = FluidEngine(chain_spec(), Step(low=50.0, high=200.0, at=60.0, hold=60.0), seconds=600)
    engine.advance(600)
    s = engine.series
    assert s.lag[119] == pytest.approx(60 * 100.0, rel=0.02)
    assert np.allclose(s.delivered[125:230], 100.0)
    assert s.lag[-1] == 0 and s.queue_latency[-1] == 0
    assert engine.totals().delivered == pytest.approx(engine.totals().arrived)


# several sources, joins, fan-out


def test_a_join_takes_from_both_sources_by_their_share() -> None:
    pipeline = Pipeline(
        operators={n: Operator(pool=n) for n in ("left", "right", "join")},
        edges=[("left", "join"), ("right", "join")],
    )
    spec = FluidSpec(
        pipeline=pipeline,
        service_rates={"left": 100.0, "right": 100.0, "join": 100.0},
        start={"left": 1, "right": 1, "join": 1},
        source_shares={"left": 0.25, "right": 0.75},
        **QUIET,
    )
    engine = engine_of(spec, 80.0)
    engine.advance(60)
    seen = engine.observe().operators
    assert seen["left"].arrival_rate == pytest.approx(20.0)
    assert seen["right"].arrival_rate == pytest.approx(60.0)
    assert seen["join"].arrival_rate == pytest.approx(80.0)


def test_the_room_of_an_overloaded_join_is_divided_by_what_each_could_send() -> None:
    pipeline = Pipeline(
        operators={n: Operator(pool=n) for n in ("left", "right", "join")},
        edges=[("left", "join"), ("right", "join")],
    )
    spec = FluidSpec(
        pipeline=pipeline,
        service_rates={"left": 20.0, "right": 60.0, "join": 40.0},
        start=dict.fromkeys(pipeline.operators, 1),
        **QUIET,
    )
    engine = engine_of(spec, 400.0)
    engine.advance(60)
    engine.observe()
    engine.advance(15)
    seen = engine.observe().operators
    # right could send no more than the 40/s that the join takes
    assert seen["left"].arrival_rate == pytest.approx(40.0 * 20 / 60)
    assert seen["right"].arrival_rate == pytest.approx(40.0 * 40 / 60)
    assert seen["join"].buffer == pytest.approx(1.0)


def test_a_sender_held_back_elsewhere_leaves_its_part_of_a_join_to_the_other() -> None:
    pipeline = Pipeline(
        operators={n: Operator(pool=n) for n in ("left", "right", "slow", "join")},
        edges=[("left", "slow"), ("left", "join"), ("right", "join")],
    )
    spec = FluidSpec(
        pipeline=pipeline,
        service_rates={"left": 100.0, "right": 100.0, "slow": 1.0, "join": 50.0},
        start=dict.fromkeys(pipeline.operators, 1),
        **QUIET,
    )
    engine = engine_of(spec, 400.0)
    engine.advance(120)
    engine.observe()
    engine.advance(15)
    seen = engine.observe().operators
    assert seen["left"].arrival_rate == pytest.approx(1.0)
    assert seen["right"].arrival_rate == pytest.approx(49.0)
    assert seen["join"].busy == pytest.approx(1.0)


def test_a_diamond_is_limited_by_its_join_alone() -> None:
    """Two branches of unequal selectivity: 1 + 0.1 records reach the join for each that enters."""
    pipeline = Pipeline(
        operators={
            "source": Operator(pool="source"),
            "all": Operator(pool="all"),
            "few": Operator(pool="few", selectivity=0.1),
            "join": Operator(pool="join"),
        },
        edges=[("source", "all"), ("source", "few"), ("all", "join"), ("few", "join")],
    )
    spec = FluidSpec(
        pipeline=pipeline,
        service_rates={"source": 500.0, "all": 500.0, "few": 500.0, "join": 110.0},
        start=dict.fromkeys(pipeline.operators, 1),
        **QUIET,
    )
    engine = engine_of(spec, 1000.0)
    engine.advance(600)
    assert engine.series.delivered[-1] == pytest.approx(110.0)
    assert engine.series.consumed[-1] == pytest.approx(100.0, rel=1e-3)


def test_each_source_may_have_its_own_pattern() -> None:
    pipeline = Pipeline(operators={"a": Operator(pool="a"), "b": Operator(pool="b")})
    spec = FluidSpec(
        pipeline=pipeline, service_rates={"a": 100.0, "b": 100.0}, start={"a": 1, "b": 1}, **QUIET
    )
    patterns: Mapping[str, Pattern] = {"a": Constant(rps=10.0), "b": Constant(rps=30.0)}
    engine = FluidEngine(spec, patterns, seconds=60)
    engine.advance(60)
    seen = engine.observe().operators
    assert (seen["a"].offered_rate, seen["b"].offered_rate) == (10.0, 30.0)


# pools that several operators share


def test_a_shared_pool_saturates_at_slots_over_the_work_of_a_record() -> None:
    """S / Σ v_i/μ_i with v_i the product of the selectivities above operator i."""
    engine = engine_of(chain_spec(selectivity=(0.5, 2.0, 1.0), pool="p", slots=(4, 0, 0)), 1e4)
    engine.advance(200)
    work = 1.0 / 100.0 + 0.5 / 50.0 + 1.0 / 80.0
    assert engine.series.consumed[-1] == pytest.approx(4 / work)
    assert engine.series.delivered[-1] == pytest.approx(4 / work)


def test_operators_of_a_shared_pool_divide_its_slots_by_their_work() -> None:
    engine = engine_of(chain_spec(pool="p", slots=(4, 0, 0)), 60.0)
    engine.advance(15)
    seen = engine.observe()
    busy = {"source": 60 / 100, "map": 60 / 50, "sink": 60 / 80}
    for name, o in seen.operators.items():
        assert o.parallelism == pytest.approx(4 * busy[name] / sum(busy.values()))
        assert o.busy == pytest.approx(sum(busy.values()) / 4)
    assert sum(o.parallelism for o in seen.operators.values()) == pytest.approx(4.0)
    assert seen.slots("p") == 4
    assert pool_cpu(seen, "p") == pytest.approx(0.22 + 0.72 * sum(busy.values()) / 4)


def test_an_idle_shared_pool_is_divided_evenly() -> None:
    engine = engine_of(chain_spec(pool="p", slots=(6, 0, 0)), 0.0)
    engine.advance(15)
    assert [o.parallelism for o in engine.observe().operators.values()] == [2.0, 2.0, 2.0]


def test_a_shared_pool_with_a_slow_operator_elsewhere_still_runs_at_the_bottleneck() -> None:
    pipeline = Pipeline(
        operators={
            "source": Operator(pool="p"),
            "map": Operator(pool="own"),
            "sink": Operator(pool="p"),
        },
        edges=list(pairwise(NAMES)),
    )
    spec = FluidSpec(
        pipeline=pipeline,
        service_rates={"source": 100.0, "map": 10.0, "sink": 80.0},
        start={"p": 2, "own": 3},
        **QUIET,
    )
    engine = engine_of(spec, 1e4)
    engine.advance(300)
    assert engine.series.delivered[-1] == pytest.approx(30.0)


# what a change costs


def test_restart_stops_everything_then_catches_up() -> None:
    engine = engine_of(chain_spec(profile=STEADY_RESTART), 80.0)
    engine.advance(60)
    engine.observe()
    engine.apply({"map": to(2, 4)})
    engine.advance(15)
    seen = engine.observe()
    assert seen.acting and seen.slots("map") == 2 and seen.rescales == ()
    for o in seen.operators.values():
        assert (o.busy, o.cpu, o.service_rate, o.arrival_rate, o.latency) == (None,) * 5
    assert seen.operators["source"].offered_rate == pytest.approx(80.0)
    assert seen.operators["source"].lag == pytest.approx(15 * 80.0)
    engine.advance(200)
    seen, s = engine.observe(), engine.series
    assert not seen.acting and seen.slots("map") == 4
    assert (s.delivered[60:97] == 0).all() and (s.down[60:97] == 1).all()
    assert s.down.sum() == 37
    assert np.allclose(s.delivered[97:110], 160.0)  # the sink is the bottleneck now
    assert s.lag[-1] == 0
    (cost,) = seen.rescales
    assert (cost.time, cost.pool, cost.before, cost.after) == (60.0, "map", 2, 4)
    assert (cost.registered, cost.downtime, cost.steady) == (37.0, 37.0, 38.0)


def test_part_of_a_second_down_costs_that_part() -> None:
    profile = RescaleProfile(name="x", downtime=2.25)
    engine = engine_of(chain_spec(profile=profile), 1e4)
    engine.advance(60)
    engine.apply({"sink": to(2, 3)})
    engine.advance(10)
    assert np.allclose(engine.series.consumed[60:64], [0.0, 0.0, 75.0, 100.0])


def test_several_pools_restart_together_with_one_stop() -> None:
    engine = engine_of(chain_spec(profile=RESTART), 80.0)
    engine.advance(60)
    engine.apply({"map": to(2, 4), "sink": to(2, 3)})
    engine.advance(100)
    first, second = engine.observe().rescales
    assert first.downtime == second.downtime == engine.series.down.sum()
    assert 37 * 0.9 <= engine.series.down.sum() <= 37 * 1.1


def test_live_growth_never_lowers_throughput_and_slots_join_one_by_one() -> None:
    engine = engine_of(chain_spec(profile=LIVE), 300.0)
    engine.advance(60)
    engine.apply({"map": to(2, 5)})
    assert engine.observe().acting
    engine.advance(60)
    s = engine.series
    assert (np.diff(s.delivered[59:]) >= -1e-9).all()
    assert s.down.sum() == 0
    joined = [int(np.argmax(s.slots["map"] >= n)) - 60 for n in (3, 4, 5)]
    assert joined == sorted(joined) and 2.8 * 0.9 <= joined[0] <= 4
    assert joined[-1] >= (2.8 + 2 * 1.9) * 0.9
    seen = engine.observe()
    assert not seen.acting and seen.slots("map") == 5
    assert seen.rescales[0].downtime == 0


def test_live_removal_drains_before_the_slots_are_gone() -> None:
    engine = engine_of(chain_spec(profile=LIVE), 60.0)
    engine.advance(60)
    engine.apply({"sink": to(2, 1)})
    engine.advance(60)
    slots = engine.series.slots["sink"]
    gone = int(np.argmax(slots == 1)) - 60
    assert 5 * 0.9 <= gone <= math.ceil(5 * 1.1)
    assert np.allclose(engine.series.delivered, 60.0)


def test_a_later_wish_replaces_one_under_way() -> None:
    engine = engine_of(chain_spec(profile=LIVE), 60.0)
    engine.advance(60)
    engine.apply({"map": to(2, 20)})
    engine.advance(1)
    engine.apply({"map": to(2, 3)})
    engine.advance(100)
    assert engine.observe().slots("map") == 3
    assert engine.series.slots["map"].max() == 3
    assert [r.after for r in engine.observe().rescales] == [3]


def test_asking_for_the_present_size_costs_nothing() -> None:
    engine = engine_of(chain_spec(), 60.0)
    engine.advance(60)
    engine.apply({"map": to(2, 2)})
    assert not engine.observe().acting
    engine.advance(60)
    assert engine.series.down.sum() == 0


def test_a_cpu_share_scales_the_speed_of_a_pool_at_once() -> None:
    engine = engine_of(chain_spec(), 1e4)
    engine.advance(60)
    engine.apply({"map": Change(before=2, slots=2, raw=2.0, cpu_share=0.5)})
    engine.advance(60)
    assert engine.series.delivered[-1] == pytest.approx(50.0)
    assert {s.cpu_share for s in engine.observe().pools["map"]} == {0.5}


def test_readings_of_a_run_full_of_restarts_are_finite() -> None:
    spec = chain_spec(capacity_noise=0.03, metric_noise=0.01)
    engine = FluidEngine(spec, Cosine(low=0.0, high=300.0, period=600.0), seconds=3000, seed=3)
    slots = 2
    while engine.advance(15):
        seen = engine.observe()
        for name, o in seen.operators.items():
            for field, value in numbers(o):
                assert math.isfinite(value) and value >= 0, (name, field, value)
            if o.busy is not None and o.idle is not None and o.backpressured is not None:
                assert o.busy + o.idle + o.backpressured == pytest.approx(1.0)
        if not seen.acting and seen.time % 150 == 0:
            engine.apply({"map": to(slots, slots % 5 + 1)})
            slots = slots % 5 + 1
    assert len(seen.rescales) == 8


# through the loop


@pytest.mark.parametrize("profile", [RESTART, LIVE], ids=lambda p: str(p.name))
@pytest.mark.parametrize("pool", [None, "p"], ids=["own pools", "shared pool"])
def test_ds2_reaches_its_size_in_one_action(profile: RescaleProfile, pool: str | None) -> None:
    rates, rps, f = (100.0, 50.0, 80.0), 730.0, 1.2
    slots = (2, 2, 2) if pool is None else (3, 0, 0)
    engine = engine_of(
        chain_spec(rates=rates, slots=slots, profile=profile, pool=pool), rps, seconds=900
    )
    decisions: list[dict[str, int]] = []
    Loop(
        engine,
        DS2(over_provisioning=f),
        Guards(),
        mode="act",
        record=lambda d, _: decisions.append({p: c.slots for p, c in d.changes.items()}),
    ).run(period=15, ticks=60)
    needs = [rps * f / mu for mu in rates]
    wanted = (
        {name: math.ceil(n) for name, n in zip(NAMES, needs, strict=True)}
        if pool is None
        else {pool: math.ceil(sum(needs))}
    )
    assert [d for d in decisions if d] == [wanted]
    assert {p: engine.observe().slots(p) for p in wanted} == wanted
    assert engine.series.delivered[-1] == pytest.approx(rps)


def test_advance_says_when_the_run_is_over() -> None:
    engine = engine_of(chain_spec(), 60.0, seconds=30)
    assert [engine.advance(15) for _ in range(3)] == [True, True, False]
    assert engine.observe().time == 30.0


def test_parts_of_a_second_are_carried_over() -> None:
    engine = engine_of(chain_spec(), 60.0)
    for _ in range(10):
        engine.advance(0.25)
    assert engine.observe().time == 2.0
    for _ in range(80):
        engine.advance(0.1)
    assert engine.observe().time == 10.0


def test_a_second_look_at_the_same_moment_measures_nothing() -> None:
    engine = engine_of(chain_spec(), 60.0)
    engine.advance(15)
    engine.observe()
    again = engine.observe()
    assert again.window == 0
    assert dict(numbers(again.operators["map"])) == {"parallelism": 2.0}


# seeds


def trace(seed: int) -> tuple[Any, ...]:
    spec = chain_spec(capacity_noise=0.03, metric_noise=0.01, profile=RESTART)
    engine = engine_of(spec, 95.0, seconds=600, seed=seed)
    snapshots = []
    while engine.advance(15):
        snapshots.append(engine.observe())
        if engine.observe().time == 150:
            engine.apply({"map": to(2, 3)})
    return snapshots, engine.series.delivered.tobytes(), engine.series.lag.tobytes()


def test_a_seed_gives_the_same_run_bit_for_bit() -> None:
    assert trace(7) == trace(7)


def test_other_seeds_give_other_runs() -> None:
    first, second = trace(7), trace(8)
    assert first[1] != second[1]
    readings = [t[0][0].operators["source"].arrival_rate for t in (first, second)]
    assert readings[0] != readings[1]
    assert first[0][-1].rescales[0].downtime != second[0][-1].rescales[0].downtime


def test_capacity_noise_has_the_deviation_and_memory_it_is_given() -> None:
    spec = chain_spec(capacity_noise=0.05, noise_memory=20.0)
    engine = engine_of(spec, 1e4, seconds=50_000)
    engine.advance(50_000)
    speed_of_map = engine.series.delivered[100:] / 100.0
    assert speed_of_map.mean() == pytest.approx(1.0, abs=0.01)
    assert speed_of_map.std() == pytest.approx(0.05, rel=0.1)
    x = speed_of_map - speed_of_map.mean()
    assert (x[1:] * x[:-1]).mean() / x.var() == pytest.approx(math.exp(-1 / 20), abs=0.03)


# what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rates": (0.0, 1.0, 1.0)}, "service_rates: source = 0.0 must be .* above 0"),
        ({"rates": (math.nan, 1.0, 1.0)}, "service_rates: source = nan"),
        ({"slots": (0, 1, 1)}, "start: source = 0 must be a whole number ≥ 1"),
        ({"buffer_seconds": 0.0}, "buffer_seconds = 0.0 must be .* above 0"),
        ({"capacity_noise": -0.1}, "capacity_noise = -0.1 must be .* ≥ 0 and ≤ 0.3"),
        ({"cpu_base": 0.9, "cpu_ceiling": 0.5}, "cpu_ceiling = 0.5 must be .* ≥ 0.9"),
        ({"busy_ceilings": {"sink": 1.5}}, "busy_ceilings: sink = 1.5"),
        ({"busy_ceilings": {"snik": 0.5}}, "unknown .* did you mean 'sink'"),
        ({"source_shares": {"source": 0.5}}, "source_shares sum to 0.5"),
    ],
)
def test_bad_values_are_refused_with_value_and_bound(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        chain_spec(**options)


def test_missing_names_are_refused() -> None:
    spec = chain_spec()
    with pytest.raises(InputError, match="service_rates: nothing is given for map, sink"):
        FluidSpec(pipeline=spec.pipeline, service_rates={"source": 1.0}, start=spec.start)
    with pytest.raises(InputError, match="profile x: downtime = -1"):
        RescaleProfile(name="x", downtime=-1)


def test_bad_calls_are_refused() -> None:
    spec = chain_spec()
    with pytest.raises(InputError, match="seconds 0"):
        engine_of(spec, 1.0, seconds=0)
    with pytest.raises(InputError, match="seed -1"):
        engine_of(spec, 1.0, seed=-1)
    with pytest.raises(InputError, match="no pattern for the source source"):
        FluidEngine(spec, {}, seconds=10)
    engine = engine_of(spec, 1.0)
    with pytest.raises(InputError, match="cannot advance by -1"):
        engine.advance(-1)
    with pytest.raises(InputError, match="unknown pool 'mop'; did you mean 'map'"):
        engine.apply({"mop": to(2, 3)})
    with pytest.raises(InputError, match="0 slots asked for"):
        engine.apply({"map": to(2, 0)})


# neither knows the other


def test_the_simulator_never_imports_what_has_to_discover_it() -> None:
    folder = Path(penstock.simulator.__file__).parent
    files = sorted(folder.glob("*.py"))
    assert len(files) > 3
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file.name}: relative import"
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for module in modules:
                for banned in ("penstock.capacity", "penstock.spark"):
                    assert not f"{module}.".startswith(f"{banned}."), (file.name, module)
