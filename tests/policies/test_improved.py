"""The improved policies against figures computed by hand, and against their originals."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Decision, Loop, State, plan
from penstock.core.model import OperatorSeen, Proposal, Rescale, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.core.ports import Policy
from penstock.policies.dhalion import Dhalion
from penstock.policies.dhalion_plus import DhalionPlus
from penstock.policies.ds2 import DS2
from penstock.policies.ds2_plus import DS2Plus
from penstock.policies.hpa_cpu import HpaCpu
from penstock.policies.hpa_plus import HpaPlus
from penstock.policies.proactive import Forecast, Proactive, errors_of, look_ahead, no_outlook
from penstock.policies.signals.learned import saturated
from penstock.simulator import FluidEngine, FluidSpec, queries
from penstock.workloads import patterns
from tests.fakes.scenarios import healthy, with_all

NEW = (DS2Plus(), HpaPlus(), DhalionPlus(), Proactive())
THESIS = Guards(minimum=1, maximum=80, cap=80, step_up=15, cool_down=300.0, sleep=True)


def plain(**parameters: Any) -> DS2Plus:
    """DS2+ whose only correction is the one that a test is about."""
    return DS2Plus(**{"busy_ceiling": 1.0, "downtime": 0.0, "catch_up": 300.0} | parameters)


def run(policy: Policy, snapshots: Sequence[Snapshot]) -> tuple[Proposal, Any]:
    """The last proposal, and the memory after it."""
    memory = policy.start(0)
    proposal = Proposal(reason="nothing seen")
    for seen in snapshots:
        proposal, memory = policy.decide(seen, memory)
    return proposal, memory


def slots_of(proposal: Proposal) -> dict[str, float]:
    return {name: need.slots for name, need in proposal.needs.items()}


def offered(seen: Snapshot, rate: float, lag: float = 0.0, taken: float | None = None) -> Snapshot:
    """So much is offered, and taken in by every operator unless said otherwise; so much waits."""
    done = rate if taken is None else taken
    return with_all(seen, offered_rate=rate, lag=lag, arrival_rate=done, output_rate=done)


def changed(seen: Snapshot, name: str, **fields: Any) -> Snapshot:
    return replace(
        seen, operators={**seen.operators, name: replace(seen.operators[name], **fields)}
    )


# --- DS2+ --------------------------------------------------------------------------------------


def piled_up(rate: float, lag: float, slots: int) -> Snapshot:
    """All slots work as they can, 400/s each; where they are held back is not measured."""
    seen = with_all(healthy(slots=slots), busy=1.0, idle=0.0, backpressured=None)
    return offered(seen, rate, lag=lag, taken=400.0 * slots)


def test_the_lag_is_worked_off_within_the_catch_up_time() -> None:
    """2,000/s and 60,000 waiting: 30 s of input in 300 s make 1.1 times 2,000/400 slots."""
    proposal, _ = run(plain(), [piled_up(2000.0, 60_000.0, slots=4)])
    assert slots_of(proposal) == pytest.approx(dict.fromkeys(["source", "map", "sink"], 5.5))
    assert "lag of 60.0 k records (30 s of input)" in proposal.reason


def test_what_comes_in_during_the_stop_is_worked_off_too() -> None:
    seen = offered(healthy(), 2000.0)
    proposal, _ = run(plain(downtime=60.0), [seen])
    assert slots_of(proposal)["map"] == pytest.approx(5.0 * 1.2)


def test_the_measured_downtime_counts_once_there_is_one() -> None:
    past = tuple(
        Rescale(time=t, pool="map", before=3, after=4, downtime=d)
        for t, d in ((100.0, 20.0), (500.0, 40.0))
    )
    seen = replace(offered(healthy(), 2000.0), rescales=past)
    proposal, _ = run(plain(downtime=999.0), [seen])
    assert slots_of(proposal)["map"] == pytest.approx(5.0 * 1.1)  # 30 s in 300 s


def held_up(busy: float = 0.8) -> Snapshot:
    """The map can do no more: the source is held back throughout, the map reads 80 % busy."""
    seen = with_all(healthy(), busy=busy, idle=1.0 - busy)
    seen = changed(seen, "source", busy=0.3, idle=0.0, backpressured=0.7)
    return offered(seen, 2000.0, taken=1000.0)


def test_a_busy_ceiling_below_1_is_learned_where_it_shows() -> None:
    """The map reads 80 % busy when full, so its slots do 0.8 of what DS2 takes them to do."""
    proposal, _ = run(plain(), [held_up()])
    assert slots_of(proposal) == pytest.approx({"source": 5.0, "map": 5.0 / 0.8, "sink": 5.0})
    ds2, _ = DS2(over_provisioning=1.0).decide(held_up(), None)
    assert ds2.needs["map"].slots == pytest.approx(5.0)


def test_until_a_ceiling_is_learned_the_parameter_counts() -> None:
    proposal, _ = run(plain(busy_ceiling=0.5), [offered(healthy(), 2000.0)])
    assert slots_of(proposal)["map"] == pytest.approx(10.0)


def test_only_the_bottleneck_is_saturated() -> None:
    assert saturated(held_up()) == {"map"}
    assert saturated(healthy()) == set()
    below = changed(held_up(), "map", idle=0.0, backpressured=0.2)  # held back by the sink
    assert saturated(below) == {"sink"}
    queue = offered(with_all(healthy(), busy=0.6, idle=0.4), 1000.0, lag=50_000.0)
    assert saturated(queue) == {"source"}


def test_a_source_that_empties_its_queue_in_the_window_is_not_saturated() -> None:
    """10 records waited at the end: in between it may have had nothing to do."""
    assert saturated(offered(healthy(), 900.0, lag=10.0)) == set()


def test_nothing_is_learned_while_an_action_is_in_flight() -> None:
    _, memory = run(plain(), [replace(held_up(), acting=True)])
    assert memory["learned"]["map"]["ceiling"] is None


def test_a_backlog_that_drains_in_time_is_left_alone_and_stops_every_scale_down() -> None:
    """Half used: 60 s of input are gone in 60 s. Without them half of the slots would go."""
    seen = piled_up(1000.0, 60_000.0, slots=5)
    proposal, _ = run(plain(), [replace(seen, time=1000.0 + 15 * i) for i in range(20)])
    assert proposal.needs == {}
    assert "gone in 60 s" in proposal.reason
    proposal, _ = run(plain(), [offered(healthy(slots=5), 1000.0)])
    assert slots_of(proposal)["map"] == pytest.approx(2.5)


def test_a_backlog_that_drains_too_slowly_causes_an_action() -> None:
    """96 % used: 60 s of input take 1,440 s, 1.5 · 300 s are allowed."""
    proposal, _ = run(plain(), [piled_up(1536.0, 60.0 * 1536.0, slots=4)])
    assert "would take 1,440 s to drain" in proposal.reason
    assert slots_of(proposal)["map"] == pytest.approx(3.84 * 1.2)


def test_a_smaller_size_is_taken_once_it_has_paid_for_the_stop() -> None:
    """9 of 12 slots are too many; the stop costs 0.5 · 40 s · 12 = 240 slot-seconds."""
    quiet = offered(healthy(), 399.0)
    policy = plain(catch_up=1e9, downtime=40.0, pay_back=0.5)
    memory, said = policy.start(0), []
    for i in range(4):
        proposal, memory = policy.decide(replace(quiet, time=1000.0 + 15 * i), memory)
        said.append((memory["waste"]["wasted"], bool(proposal.needs)))
    assert said == [(0.0, False), (135.0, False), (270.0, True), (405.0, True)]


def test_a_saving_that_comes_and_goes_is_never_taken() -> None:
    quiet, busy = offered(healthy(), 1100.0), offered(healthy(), 1500.0)
    policy = plain(catch_up=1e9, downtime=40.0)
    story = [replace((quiet, busy)[i // 4 % 2], time=1000.0 + 15 * i) for i in range(40)]
    memory = policy.start(0)
    for seen in story:
        proposal, memory = policy.decide(seen, memory)
        assert proposal.needs == {}


def test_where_a_rescale_stops_nothing_every_saving_is_taken_at_once() -> None:
    proposal, _ = run(plain(), [offered(healthy(), 1100.0)])
    assert slots_of(proposal)["map"] == pytest.approx(2.75)


def test_a_new_size_does_not_inherit_the_waste_of_the_old_one() -> None:
    policy = plain(catch_up=1e9, downtime=40.0)
    seen = [replace(offered(healthy(slots=s), 399.0), time=t) for t, s in ((0.0, 4), (315.0, 3))]
    _, memory = run(policy, seen)
    assert memory["waste"]["wasted"] == pytest.approx(6 / 2 * 315)  # from 0 on, not from 9


def test_a_pipeline_that_does_less_than_its_figures_say_is_too_small() -> None:
    """2,000/s come in, 1,000/s are taken, 100,000 wait: whatever busy time says."""
    seen = with_all(healthy(), service_rate=5000.0, backpressured=None)
    proposal, _ = run(plain(), [offered(seen, 2000.0, lag=100_000.0, taken=1000.0)])
    assert "at 200% of what it can do" in proposal.reason
    worst = max(slots_of(proposal).values())
    assert worst == pytest.approx(4 * 2.0 * (1.0 + 50.0 / 300.0))


def test_below_a_window_that_has_not_fired_the_last_figures_count() -> None:
    policy = plain()
    fired = changed(
        offered(healthy(), 1600.0, taken=1000.0), "map", output_rate=4000.0
    )  # 4 windows' worth
    fired = changed(fired, "sink", arrival_rate=4000.0, output_rate=4000.0)
    quiet = changed(offered(healthy(), 1600.0, taken=1000.0), "map", output_rate=0.0)
    quiet = changed(
        quiet, "sink", arrival_rate=0.0, output_rate=0.0, service_rate=None, busy=0.0, idle=1.0
    )
    story = [quiet, quiet, fired, quiet] * 10
    seen = [replace(s, time=1000.0 + 15 * i) for i, s in enumerate(story)]
    last = changed(replace(quiet, time=2000.0), "source", offered_rate=2000.0)
    proposal, _ = run(policy, [*seen, last, replace(last, time=2061.0)])
    assert slots_of(proposal)["sink"] == pytest.approx(5.0, rel=0.2)  # the mean, not 0 and not 20


def test_shared_slots_are_sized_by_what_all_operators_need() -> None:
    seen = offered(healthy(shared=True, slots=4), 2000.0)
    decision, _ = plan(plain(), Guards(), seen, State(memory=plain().start(0)))
    assert decision.targets["all"].slots == 15


def test_an_idle_pipeline_is_released() -> None:
    idle = with_all(
        healthy(), offered_rate=0.0, arrival_rate=0.0, output_rate=0.0, service_rate=None, lag=0.0,
        busy=0.0, idle=1.0,
    )  # fmt: skip
    decision, _ = plan(plain(), Guards(minimum=2), idle, State(memory=plain().start(0)))
    assert {c.slots for c in decision.changes.values()} == {2}


@given(
    rate=st.floats(1500.0, 1e6),
    more=st.floats(1.0, 10.0),
    lag=st.floats(0.0, 1e8),
)
def test_more_demand_never_asks_for_less(rate: float, more: float, lag: float) -> None:
    policy = DS2Plus()
    low, _ = run(policy, [offered(healthy(slots=1), rate, lag)])
    high, _ = run(policy, [offered(healthy(slots=1), rate * more, lag * more)])
    assert low.needs and high.needs
    assert all(high.needs[n].slots >= low.needs[n].slots * (1 - 1e-9) for n in low.needs)


def test_a_thousand_operators_are_sized() -> None:
    names = [f"step-{i}" for i in range(1000)]
    shape = Pipeline(
        operators={n: Operator(pool=n) for n in names},
        edges=list(itertools.pairwise(names)),
    )
    o = healthy().operators["map"]
    operators = dict.fromkeys(names, o)
    operators[names[0]] = replace(o, offered_rate=2000.0, lag=0.0)
    pools = {n: tuple(Slot(id=f"{n}-{i}") for i in range(4)) for n in names}
    seen = Snapshot(time=1.0, window=15.0, pipeline=shape, operators=operators, pools=pools)
    proposal, _ = run(plain(), [seen])
    assert len(proposal.needs) == 1000
    assert len(proposal.reason) < 300


# --- HPA+ --------------------------------------------------------------------------------------


def on_cpu(rate: float, time: float, *, slots: int = 4, base: float = 0.2) -> Snapshot:
    """CPU = base + 0.6 · rate / (1,000 · slots): 0.8 when a slot does its 1,000/s."""
    return with_all(
        healthy(slots=slots, time=time),
        offered_rate=rate,
        arrival_rate=rate,
        output_rate=rate,
        cpu=base + 0.6 * rate / (1000.0 * slots),
        lag=0.0,
    )


def taught(policy: HpaPlus) -> Any:
    """The memory after rates from 400/s to 4,000/s, and one look at a full map."""
    memory = policy.start(0)
    for i in range(30):
        seen = on_cpu(400.0 + 120.0 * i, 15.0 * i)
        if i == 29:
            seen = on_cpu(4000.0, 15.0 * i)
            seen = changed(seen, "source", busy=0.3, idle=0.0, backpressured=0.7)
        _, memory = policy.decide(seen, memory)
    return memory


def test_base_and_ceiling_of_cpu_are_learned() -> None:
    """At 2,000/s and target 0.6 a slot may do (0.6 − 0.2) / 0.6 · 1,000: 3 slots, not 4."""
    policy = HpaPlus(target=0.6, downtime=0.0, catch_up=1e9)
    proposal, _ = policy.decide(on_cpu(2000.0, 1000.0, slots=5), taught(policy))
    assert slots_of(proposal)["map"] == pytest.approx(2000.0 / (1000.0 * 0.4 / 0.6), rel=0.02)


def test_a_target_that_cpu_cannot_reach_is_lowered() -> None:
    """CPU of the map ends at 0.8, a target of 1.0 would let everything pile up."""
    policy = HpaPlus(target=1.0, most=0.8, downtime=0.0, catch_up=1e9)
    proposal, _ = policy.decide(on_cpu(2000.0, 1000.0, slots=5), taught(policy))
    assert slots_of(proposal)["map"] == pytest.approx(2000.0 / 800.0, rel=0.02)


def test_at_the_ceiling_of_cpu_the_missing_part_is_seen_in_the_records() -> None:
    """4,000/s are done, 12,000/s come in: three times as much, where HPA sees 0.8/0.7."""
    policy = HpaPlus(target=0.6, downtime=0.0, catch_up=1e9)
    full = changed(on_cpu(4000.0, 1000.0), "source", offered_rate=12_000.0)
    proposal, _ = policy.decide(full, taught(policy))
    assert slots_of(proposal)["map"] == pytest.approx(12_000.0 / (1000.0 * 0.4 / 0.6), rel=0.02)
    hpa, _ = HpaCpu(target=0.6).decide(full, HpaCpu().start(0))
    assert hpa.pool_needs["map"].slots == pytest.approx(4 * 0.8 / 0.6)


def test_without_a_spread_of_rates_all_cpu_counts_as_work() -> None:
    policy = HpaPlus(target=0.7, cpu_ceiling=1.0, most=1.0, downtime=0.0, catch_up=1e9)
    steady = [on_cpu(1000.0, 15.0 * i, slots=4) for i in range(20)]
    proposal, _ = run(policy, steady)
    assert slots_of(proposal)["map"] == pytest.approx(4 * 0.35 / 0.7)


def test_cpu_missing_in_one_pool_leaves_that_pool_alone() -> None:
    policy = HpaPlus(downtime=0.0)
    seen = changed(on_cpu(400.0, 1000.0, slots=8), "map", cpu=None)
    proposal, _ = run(policy, [seen])
    assert set(proposal.needs) == {"source", "sink"}


@pytest.mark.parametrize("policy", [HpaPlus(), DhalionPlus()], ids=["hpa+", "dhalion+"])
def test_a_window_with_a_stop_in_it_is_not_mistaken_for_a_lack_of_slots(policy: Policy) -> None:
    """Two thirds of the window were down, so a third was done; shares of time do not show it."""
    stop = Rescale(time=980.0, pool="map", before=3, after=4, downtime=15.0)
    seen = replace(offered(healthy(time=1000.0), 1200.0, taken=400.0), rescales=(stop,))
    proposal, memory = run(policy, [seen])
    assert proposal.needs == {}
    assert "a rescale was under way" in proposal.reason
    assert memory["cost"] == {}


# --- Dhalion+ ----------------------------------------------------------------------------------


def sick() -> Snapshot:
    """The map is full at 1,000/s, the sink is 60 % busy; twice as much comes in."""
    seen = with_all(healthy(), busy=0.6, idle=0.4)
    seen = changed(seen, "source", busy=0.3, idle=0.0, backpressured=0.7)
    return offered(changed(seen, "map", busy=0.9, idle=0.1), 2000.0, taken=1000.0)


def gentle(**parameters: Any) -> DhalionPlus:
    base = {"target": 1.0, "busy_ceiling": 1.0, "downtime": 0.0, "catch_up": 1e9}
    return DhalionPlus(**base | parameters)


def test_all_that_would_hold_up_the_others_next_grows_in_one_action() -> None:
    """Full at p = 4: the map needs 8. The sink needs 4 · 0.6 · 2 = 4.8. The source has enough."""
    proposal, _ = run(gentle(), [sick()])
    assert slots_of(proposal) == pytest.approx({"map": 8.0, "sink": 4.8})
    assert "source is back-pressured 70% of its time" in proposal.reason
    one, _ = run(Dhalion(), [sick()])
    assert set(one.needs) == {"map"}


def test_room_is_left_up_to_the_target() -> None:
    proposal, _ = run(gentle(target=0.8), [sick()])
    assert slots_of(proposal) == pytest.approx({"map": 10.0, "sink": 6.0})


def test_a_healthy_pipeline_shrinks_to_what_was_measured_in_one_action() -> None:
    """30 % busy on 10 slots: 3 do, where Dhalion takes 8 and comes again."""
    seen = with_all(healthy(slots=10), busy=0.3, idle=0.7)
    proposal, _ = run(gentle(), [offered(seen, 1000.0)])
    assert slots_of(proposal) == pytest.approx(dict.fromkeys(["source", "map", "sink"], 3.0))
    one, _ = run(Dhalion(), [offered(seen, 1000.0)])
    assert set(slots_of(one).values()) == {8.0}


def test_nothing_shrinks_while_a_buffer_is_used() -> None:
    seen = changed(with_all(healthy(slots=10), busy=0.3, idle=0.7), "map", buffer=0.5)
    proposal, _ = run(gentle(), [offered(seen, 1000.0)])
    assert proposal.needs == {}
    assert "records wait at map" in proposal.reason


def test_without_a_symptom_nothing_grows() -> None:
    """110 % by its figures, yet all that comes in is taken and nothing waits."""
    seen = with_all(healthy(), busy=0.99, idle=0.01)
    proposal, _ = run(gentle(busy_ceiling=0.9), [offered(seen, 1000.0)])
    assert proposal.needs == {}


def test_back_pressure_in_the_dark_changes_nothing() -> None:
    proposal, _ = run(gentle(), [changed(sick(), "sink", backpressured=None)])
    assert proposal.needs == {}
    assert "back pressure not measured" in proposal.reason


# --- forecast and proactive --------------------------------------------------------------------


def forecast(times: Sequence[float], rate: Callable[[float], float]) -> tuple[Forecast, Any]:
    memory = no_outlook()
    ahead = Forecast(now=0.0, slope=0.0, trust=0.0)
    for t in times:
        ahead, memory = look_ahead(memory, t, rate(t), 300.0)
    return ahead, memory


SLEEPY = [0.0, 15.0, 330.0, 345.0, 360.0, 675.0, 990.0, 1005.0, 1320.0, 1335.0, 1650.0]


@pytest.mark.parametrize("times", [SLEEPY, [15.0 * i for i in range(120)]], ids=["gaps", "even"])
def test_a_steady_rise_is_trusted_and_forecast(times: Sequence[float]) -> None:
    ahead, memory = forecast(times, lambda t: 1000.0 + 2.0 * t)
    assert ahead.slope == pytest.approx(2.0)
    assert ahead.trust > 0.95
    last = times[-1]
    assert ahead.after(300.0) == pytest.approx(1000.0 + 2.0 * (last + 300.0), rel=0.03)
    assert errors_of(memory)["forecast_error"] < 0.15


def test_a_trend_that_never_lasts_is_not_trusted() -> None:
    """Up for 300 s, down for 300 s: what rose has fallen one horizon later."""
    ahead, _ = forecast([15.0 * i for i in range(400)], lambda t: 1000.0 + abs(t % 600.0 - 300.0))
    assert ahead.trust < 0.3


def test_the_error_is_the_share_of_the_rate_that_was_missed() -> None:
    """Without a trend the rate is expected to stay: 1,000 said, 1,250 came; then 1,250, 1,000."""
    memory = no_outlook()
    for t, rate in ((0.0, 1000.0), (300.0, 1250.0)):
        _, memory = look_ahead(memory, t, rate, 300.0)
    assert errors_of(memory) == pytest.approx({"forecast_error": 0.2, "forecast_bias": -0.2})


def test_no_figure_is_made_up_before_a_forecast_was_due() -> None:
    _, memory = look_ahead(no_outlook(), 0.0, 1000.0, 300.0)
    assert errors_of(memory) == {}


@given(st.lists(st.tuples(st.floats(0.5, 900.0), st.floats(0.0, 1e9)), min_size=1, max_size=60))
def test_a_forecast_is_a_rate_and_its_memory_is_bounded(steps: list[tuple[float, float]]) -> None:
    memory, time = no_outlook(), 0.0
    for gap, rate in steps:
        time += gap
        ahead, memory = look_ahead(memory, time, rate, 300.0)
        assert 0.0 <= ahead.trust <= 1.0
        assert 0.0 <= ahead.after(300.0) < 1e13
    assert len(memory["due"]) <= 33
    assert memory == json.loads(json.dumps(memory))


def test_proactive_sizes_for_the_mean_of_the_next_horizon() -> None:
    """Rising by 1/s every second: half a horizon of 400 s ahead, 200/s more are needed."""
    policy = Proactive(horizon=400.0, downtime=0.0, busy_ceiling=1.0, catch_up=1e9)
    story = [offered(healthy(time=15.0 * i), 1500.0 + 15.0 * i) for i in range(100)]
    proposal, memory = run(policy, story)
    now = 1500.0 + 15.0 * 99 - 22.5  # the mean of the last minute
    assert slots_of(proposal)["map"] == pytest.approx((now + 200.0) / 400.0, rel=0.02)
    assert "expected in the next 400 s" in proposal.reason
    assert 0.0 < policy.figures(memory)["forecast_error"] < 0.1
    assert policy.figures(memory)["forecast_bias"] < 0.0


def test_proactive_on_a_steady_load_is_ds2_plus() -> None:
    story = [offered(healthy(time=15.0 * i), 2000.0) for i in range(60)]
    ahead, _ = run(Proactive(), story)
    now, _ = run(DS2Plus(), story)
    assert slots_of(ahead) == pytest.approx(slots_of(now))


# --- parameters --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (DS2Plus, {"catch_up": 0.0}, r"ds2\+: catch_up = 0.0 s must be a finite number above 0"),
        (DS2Plus, {"over_provisioning": -1.0}, "over_provisioning = -1.0 must be above 0"),
        (DS2Plus, {"busy_ceiling": 1.5}, r"busy_ceiling = 1.5 must be in \(0, 1\]"),
        (DS2Plus, {"downtime": -1.0}, "0 where a rescale stops nothing"),
        (DS2Plus, {"pay_back": float("nan")}, "pay_back = nan must be a finite number ≥ 0"),
        (HpaPlus, {"target": 0.0}, r"hpa\+: target = 0.0 must be in \(0, 1\]"),
        (HpaPlus, {"most": 70}, r"hpa\+: most = 70 must be in \(0, 1\]"),
        (HpaPlus, {"calm": float("inf")}, "calm = inf s must be a finite number ≥ 0"),
        (DhalionPlus, {"backpressured": 1.0}, r"backpressured = 1.0 must be in \[0, 1\)"),
        (DhalionPlus, {"target": 2.0}, r"dhalion\+: target = 2.0 must be in \(0, 1\]"),
        (Proactive, {"horizon": 0.0}, "horizon = 0.0 s must be above 0"),
        (Proactive, {"catch_up": -5.0}, "proactive: catch_up = -5.0"),
    ],
)
def test_parameters_that_cannot_be_are_refused(
    kind: type[Any], parameters: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        kind(**parameters)


# --- in the simulator --------------------------------------------------------------------------


def from_one_slot(query: str) -> FluidSpec:
    spec = queries.create(query).spec
    return replace(spec, start=dict.fromkeys(spec.pipeline.pools, 1))


def simulated(policy: Policy, query: str, workload: str, seed: int) -> tuple[float, float]:
    """Mean queue latency while up, and mean slots, of the thesis's experiment."""
    q = queries.create(query)
    parameters: dict[str, Any] = {"seed": seed}
    if workload == "cosine":
        parameters |= {"low": q.low, "high": q.high, "noise": q.noise, "from_high": True}
    else:
        parameters |= {"maximum": q.high * 2.5 / 2.2}
    pattern = patterns.create(workload, parameters)
    spec = from_one_slot(query) if workload == "increasing" else q.spec
    engine = FluidEngine(spec, pattern, seconds=8400, seed=seed)
    Loop(engine, policy, THESIS, mode="act", seed=seed).run(period=15.0, ticks=560)
    series = engine.series
    latency = float(series.queue_latency[series.down < 1.0].mean())
    return latency, float(sum(s.mean() for s in series.slots.values()))


@pytest.mark.parametrize(
    ("new", "old", "query", "workload"),
    [
        (DS2Plus(), DS2(), "q1", "increasing"),
        (HpaPlus(), HpaCpu(), "q1", "cosine"),
        (DhalionPlus(), Dhalion(), "q1", "cosine"),
        (DhalionPlus(), Dhalion(), "q5", "increasing"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_new_one_is_faster_with_fewer_slots(
    new: Policy, old: Policy, query: str, workload: str
) -> None:
    seeds = range(3)
    ours = np.mean([simulated(new, query, workload, s) for s in seeds], axis=0)
    theirs = np.mean([simulated(old, query, workload, s) for s in seeds], axis=0)
    assert ours[0] < theirs[0]
    assert ours[1] < theirs[1]


@pytest.mark.parametrize("policy", NEW, ids=lambda policy: type(policy).__name__)
def test_on_a_constant_load_they_come_to_rest(policy: Policy) -> None:
    """One size is right; after three quarters of an hour nobody acts any more."""
    pattern = patterns.create("constant", {"rps": 1.2e6})
    engine = FluidEngine(queries.create("q1").spec, pattern, seconds=5400, seed=3)
    acted: list[float] = []

    def record(decision: Decision, state: State) -> None:
        if decision.applied:
            acted.append(decision.seen.time)

    Loop(engine, policy, THESIS, mode="act", record=record).run(period=15.0, ticks=360)
    assert len(acted) <= 5
    assert max(acted, default=0.0) < 2700.0
    assert float(engine.series.queue_latency[-900:].mean()) < 1.0


def test_the_learned_ceiling_is_the_simulated_one() -> None:
    """q1's source reads 73 % busy when it is full, which the policy is not told."""
    spec = from_one_slot("q1")
    engine = FluidEngine(spec, patterns.create("constant", {"rps": 5e6}), seconds=600, seed=1)
    policy, memory = DS2Plus(), DS2Plus().start(0)
    for _ in range(20):
        engine.advance(15.0)
        _, memory = policy.decide(engine.observe(), memory)
    assert memory["learned"]["map"]["ceiling"] == pytest.approx(spec.busy_ceilings["map"], rel=0.03)
    assert memory["learned"]["source"]["ceiling"] is None  # held back by the map


def test_a_blank_snapshot_after_a_long_story_is_no_reason_to_act() -> None:
    blank = {n: OperatorSeen(parallelism=4.0) for n in ("source", "map", "sink")}
    for policy in NEW:
        story = [offered(healthy(time=15.0 * i), 900.0 + 30.0 * i) for i in range(30)]
        lost = replace(healthy(time=500.0), operators=blank)
        proposal, _ = run(policy, [*story, lost])
        assert proposal.needs == {}
        assert proposal.reason.startswith("no change")
