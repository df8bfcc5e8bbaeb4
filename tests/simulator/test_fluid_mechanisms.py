"""Each mechanism of the fluid simulator on its own, against a formula worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.core.model import Change
from penstock.core.pipeline import Operator, Pipeline
from penstock.simulator import FluidEngine, FluidSpec, RescaleProfile
from penstock.simulator.queries import QUERIES, create
from penstock.workloads.patterns import Constant, Cosine, Step


def chain(*names: str, rates: dict[str, float], **more: Any) -> FluidSpec:
    operators = {name: Operator(pool=name) for name in names}
    quiet: dict[str, Any] = {"capacity_noise": 0.0, "metric_noise": 0.0}
    return FluidSpec(
        pipeline=Pipeline(operators=operators, edges=list(pairwise(names))),
        service_rates=rates,
        start=more.pop("start", dict.fromkeys(names, 1)),
        **{**quiet, **more},
    )


def saturated(spec: FluidSpec, seconds: int = 60) -> float:
    """Records/s that come through when far more are offered."""
    engine = FluidEngine(spec, Constant(rps=1e6), seconds=seconds)
    engine.advance(seconds)
    return float(engine.series.consumed[10:].mean())


@pytest.mark.parametrize("slots", [1, 2, 7, 13, 20, 30, 128, 200])
def test_key_groups_are_dealt_out_whole(slots: int) -> None:
    spec = chain("a", rates={"a": 100.0}, start={"a": slots}, key_groups={"a": 128})
    most = math.ceil(128 / slots)  # groups on the fullest slot
    assert saturated(spec) == pytest.approx(100.0 * 128 / most)
    assert spec.capacity("a", slots) == pytest.approx(100.0 * 128 / most)


@pytest.mark.parametrize("slots", [1, 2, 10, 50])
def test_a_hot_key_keeps_one_slot_busier_than_the_others(slots: int) -> None:
    spec = chain("a", rates={"a": 100.0}, start={"a": slots}, hot_shares={"a": 0.2})
    expected = 100.0 / (0.2 + 0.8 / slots)
    assert saturated(spec) == pytest.approx(expected)
    assert spec.capacity("a", slots) == pytest.approx(expected)


@pytest.mark.parametrize("slots", [1, 4, 26])
def test_speed_up_may_be_sub_linear(slots: int) -> None:
    spec = chain("a", rates={"a": 100.0}, start={"a": slots}, exponents={"a": 0.8})
    assert saturated(spec) == pytest.approx(100.0 * slots**0.8)
    assert spec.capacity("a", slots) == pytest.approx(100.0 * slots**0.8)


def test_at_saturation_a_sub_linear_operator_is_fully_busy() -> None:
    spec = chain("a", rates={"a": 100.0}, start={"a": 10}, exponents={"a": 0.8})
    engine = FluidEngine(spec, Constant(rps=1e6), seconds=30)
    engine.advance(30)
    assert engine.observe().operators["a"].busy == pytest.approx(1.0)


def test_the_log_drops_whole_segments_that_are_too_old() -> None:
    # 100/s offered, 10/s processed: the queue reaches back to the retention and further.
    spec = chain("a", rates={"a": 10.0}, retention=300.0, segment=300.0)
    engine = FluidEngine(spec, Constant(rps=100.0), seconds=3000)
    engine.advance(3000)
    ages = engine.series.queue_latency[1200:]
    # Just after a segment went, and just before the next one goes: a tenth of it was processed.
    assert ages.min() == pytest.approx(300.0, abs=1.0)
    assert ages.max() == pytest.approx(300.0 + 0.9 * 300.0, abs=1.0)
    lost = engine.series.expired
    assert set(np.flatnonzero(lost) % 300) == {0}
    totals = engine.totals()
    assert totals.expired == pytest.approx(lost.sum())
    assert totals.arrived == pytest.approx(
        totals.consumed + totals.queued + totals.expired, rel=1e-12
    )


def test_nothing_expires_from_a_queue_that_is_kept_short() -> None:
    spec = chain("a", rates={"a": 200.0}, retention=300.0)
    engine = FluidEngine(spec, Constant(rps=100.0), seconds=2000)
    engine.advance(2000)
    assert engine.series.expired.sum() == 0.0


def window(**more: Any) -> FluidSpec:
    spec = chain(
        "source", "window", "sink",
        rates={"source": 1e4, "window": 1e4, "sink": 1e4},
        fires_every={"window": 60.0},
        **more,
    )  # fmt: skip
    operators = {
        **spec.pipeline.operators,
        "window": Operator(pool="window", selectivity=0.1, stateful=True),
    }
    return replace(spec, pipeline=Pipeline(operators=operators, edges=spec.pipeline.edges))


def test_a_window_sends_nothing_until_it_fires_and_then_all_of_it() -> None:
    engine = FluidEngine(window(), Constant(rps=100.0), seconds=180)
    engine.advance(180)
    delivered = engine.series.delivered
    busy = np.flatnonzero(delivered)
    assert set((busy // 60).tolist()) <= {0, 1, 2}
    assert all(second % 60 in (59, 0, 1) for second in busy)
    # What was processed before a firing has been delivered after it.
    assert delivered[:70].sum() == pytest.approx(0.1 * 100.0 * 59, rel=0.02)
    totals = engine.totals().operators["window"]
    sent = delivered.sum() + engine.totals().operators["sink"].waiting
    assert totals.processed * 0.1 == pytest.approx(sent + totals.holds, rel=1e-9)


def test_the_operator_below_a_window_reads_idle_between_two_firings() -> None:
    engine = FluidEngine(window(), Constant(rps=100.0), seconds=300)
    seen = []
    while engine.advance(15):
        seen.append(engine.observe().operators["sink"])
    quiet = [o for o in seen if o.arrival_rate == 0.0]
    assert len(quiet) >= len(seen) // 2
    assert all(o.busy == 0.0 and o.service_rate is None for o in quiet)


def test_a_window_waits_while_its_results_find_no_room() -> None:
    # The sink takes 100/s of the 200 results/s; the window stands still while it is full.
    spec = window()
    slow = replace(spec, service_rates={**spec.service_rates, "sink": 100.0})
    engine = FluidEngine(slow, Constant(rps=2000.0), seconds=1200)
    engine.advance(1200)
    assert engine.series.delivered[300:].mean() == pytest.approx(100.0, rel=0.1)
    assert engine.series.lag[-1] > 100_000  # back pressure reached the source


def test_state_follows_the_input_and_lengthens_the_stop() -> None:
    profile = RescaleProfile(name="restart", downtime=30.0, per_state=1e-3)
    spec = chain(
        "a",
        rates={"a": 1e4},
        profile=profile,
        state_per_record={"a": 2.0},
        state_seconds={"a": 10.0},
    )
    engine = FluidEngine(spec, Constant(rps=500.0), seconds=400)
    engine.advance(200)
    state = engine.totals().operators["a"].state
    assert state == pytest.approx(2.0 * 500.0 * 10.0)  # what 10 s of input leave behind
    engine.apply({"a": Change(before=1, slots=2, raw=2.0)})
    engine.advance(100)
    assert engine.series.down.sum() == pytest.approx(30.0 + 1e-3 * state)
    (cost,) = engine.observe().rescales
    assert cost.downtime == pytest.approx(30.0 + 1e-3 * state)


def test_state_without_an_end_grows_for_ever() -> None:
    spec = chain("a", rates={"a": 1e4}, state_per_record={"a": 1.0})
    engine = FluidEngine(spec, Constant(rps=500.0), seconds=400)
    engine.advance(400)
    assert engine.totals().operators["a"].state == pytest.approx(500.0 * 400)


def test_checkpoints_cost_a_share_of_the_speed() -> None:
    plain = chain("a", rates={"a": 100.0})
    spec = replace(plain, checkpoint_every=60.0, checkpoint_seconds=12.0, checkpoint_slowdown=0.5)
    assert saturated(spec, 310) / saturated(plain, 310) == pytest.approx(1 - 0.5 * 12 / 60)


@given(
    high=st.floats(10.0, 5e3),
    slots=st.integers(1, 6),
    groups=st.integers(1, 64),
    hot=st.floats(0.0, 0.5),
    fires=st.sampled_from([0.0, 10.0, 60.0]),
    retention=st.sampled_from([0.0, 60.0, 300.0]),
    seed=st.integers(0, 5),
)
@settings(max_examples=40)
def test_no_record_is_made_or_lost(
    high: float, slots: int, groups: int, hot: float, fires: float, retention: float, seed: int
) -> None:
    spec = chain(
        "source", "window", "sink",
        rates={"source": 900.0, "window": 400.0, "sink": 700.0},
        start={"source": 1, "window": slots, "sink": 1},
        key_groups={"window": groups},
        hot_shares={"window": hot},
        fires_every={"window": fires} if fires else {},
        retention=retention,
        segment=60.0,
        capacity_noise=0.05,
    )  # fmt: skip
    engine = FluidEngine(
        spec, Step(low=0.0, high=high, at=50.0, hold=400.0), seconds=900, seed=seed
    )
    for t in range(0, 900, 150):
        engine.advance(150)
        if t == 300:
            engine.apply({"window": Change(before=slots, slots=slots + 2, raw=slots + 2.0)})
        totals = engine.totals()
        assert totals.imbalance <= 1e-9
        balance = totals.consumed + totals.queued + totals.expired
        assert balance == pytest.approx(totals.arrived, rel=1e-9)
        window = totals.operators["window"]
        sink = totals.operators["sink"]
        assert window.processed == pytest.approx(sink.received + window.holds, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("name", list(QUERIES))
@pytest.mark.parametrize("part", [0.1, 0.5, 1.0])
def test_the_fewest_slots_are_enough_and_one_fewer_is_not(name: str, part: float) -> None:
    query = create(name)
    spec = query.spec
    sources = spec.pipeline.sources
    share = {s: spec.source_shares.get(s, 1 / len(sources)) for s in sources}
    rates = {s: share[s] * part * query.high for s in sources}
    fewest = spec.fewest_slots(rates)
    demand = spec.demand(rates)
    for operator, rate in demand.items():
        slots = fewest[operator]
        assert spec.capacity(operator, slots) >= rate * (1 - 1e-9)
        assert slots == 1 or spec.capacity(operator, slots - 1) < rate
    # On shared slots the operators take turns, each on all of them.
    shared = query.shared()
    slots = shared.fewest_slots(rates)["slots"]

    def turns(size: int) -> float:
        return sum(float(rate) / shared.capacity(o, size) for o, rate in demand.items())

    assert turns(slots) <= 1 + 1e-9
    assert all(turns(size) > 1 for size in range(1, slots))


def test_the_fewest_slots_of_a_series_are_those_of_each_rate() -> None:
    spec = create("q11").spec
    rates = np.linspace(0.0, 2.5e6, 40)
    series = spec.fewest_slots_series({"source": rates})
    for i, rate in enumerate(rates):
        assert spec.fewest_slots({"source": rate}) == {p: int(v[i]) for p, v in series.items()}


def test_a_demand_that_skew_forbids_gets_the_fewest_slots_that_do_the_most() -> None:
    spec = chain("a", rates={"a": 100.0}, key_groups={"a": 8})
    assert spec.fewest_slots({"a": 1e6}) == {"a": 8}


@pytest.mark.parametrize("name", list(QUERIES))
def test_a_query_with_the_fewest_slots_keeps_up_with_a_steady_load(name: str) -> None:
    query = create(name)
    spec = query.spec
    rate = 0.6 * query.high
    sources = spec.pipeline.sources
    rates = {s: rate * spec.source_shares.get(s, 1 / len(sources)) for s in sources}
    quiet = replace(spec, start=spec.fewest_slots(rates), capacity_noise=0.0)
    engine = FluidEngine(quiet, Constant(rps=rate), seconds=1200)
    engine.advance(1200)
    assert engine.series.consumed[300:].mean() == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize("name", list(QUERIES))
def test_a_shared_pool_serves_a_query_as_well_as_one_pool_each(name: str) -> None:
    query = create(name)
    pattern = Cosine(low=query.low, high=query.high, period=1200.0)
    engine = FluidEngine(query.shared(), pattern, seconds=1200)
    engine.advance(1200)
    totals = engine.totals()
    assert totals.imbalance <= 1e-9
    assert totals.consumed == pytest.approx(totals.arrived, rel=0.02)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"key_groups": {"b": 8}}, "unknown name in key_groups"),
        ({"hot_shares": {"a": 1.5}}, "hot_shares: a = 1.5 must be a finite number ≥ 0 and ≤ 1"),
        ({"exponents": {"a": 0.0}}, "exponents: a = 0.0 must be a finite number above 0"),
        ({"fires_every": {"a": 0.5}}, "fires_every: a = 0.5 must be a finite number ≥ 1"),
        ({"state_seconds": {"a": -1.0}}, "state_seconds: a = -1.0"),
        ({"retention": -1.0}, "retention = -1.0 must be a finite number ≥ 0"),
        ({"segment": 0.0}, "segment = 0.0 must be a finite number ≥ 1"),
        ({"checkpoint_slowdown": 2.0}, "checkpoint_slowdown = 2.0"),
    ],
)
def test_wrong_values_are_refused_with_their_bound(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        chain("a", rates={"a": 1.0}, **more)
