"""Scores against tiny series whose answers are known, and against independent oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from penstock.comparison import oracle
from penstock.comparison.scores import (
    Actions,
    drain_seconds,
    flow_scores,
    latency_scores,
    scores_of,
    slot_scores,
    stage_scores,
)
from penstock.core.guards import Guards
from penstock.core.loop import Decision, Loop, State
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies import DS2
from penstock.simulator import FluidEngine, FluidSpec, Series
from penstock.simulator.queries import QUERIES
from penstock.simulator.series import OperatorTotals, Totals
from penstock.workloads.patterns import Constant, create


def series(seconds: int, *, slots: dict[str, list[float]] | None = None, **given: Any) -> Series:
    fields = ("offered", "consumed", "delivered", "lag", "queue_latency", "latency", "down", "cpu")
    arrays = {name: np.array(given.get(name, [0.0] * seconds)) for name in (*fields, "expired")}
    pools = slots or {"p": [1.0] * seconds}
    return Series(**arrays, slots={name: np.array(values) for name, values in pools.items()})


def demand(**pools: list[float]) -> dict[str, Any]:
    return {name: np.array(values, dtype=float) for name, values in pools.items()}


def test_slots_and_spec_accuracy() -> None:
    # Demand 2 2 4 4 in pool a, 1 throughout in b; supply 3 2 2 4 and 1 1 1 2.
    seen = series(4, slots={"a": [3, 2, 2, 4], "b": [1, 1, 1, 2]})
    scores = slot_scores(seen, demand(a=[2, 2, 4, 4], b=[1, 1, 1, 1]))
    assert scores["slots_mean"] == 4.0
    assert scores["slots_max"] == 6.0
    assert scores["slot_seconds"] == 16.0
    assert scores["cost"] == 16 / 60  # one unit per slot and minute
    assert scores["accuracy_o"] == (1 + 0 + 0 + 1) / 4
    assert scores["accuracy_u"] == 2 / 4
    assert scores["timeshare_o"] == 2 / 4
    assert scores["timeshare_u"] == 1 / 4
    assert scores["oracle_slot_seconds"] == 16.0
    assert scores["regret"] == 0.0


def test_a_pool_too_large_does_not_hide_one_that_is_too_small() -> None:
    seen = series(2, slots={"a": [5, 5], "b": [1, 1]})
    scores = slot_scores(seen, demand(a=[3, 3], b=[3, 3]))
    assert scores["accuracy_o"] == scores["accuracy_u"] == 2.0
    assert scores["timeshare_o"] == scores["timeshare_u"] == 1.0


POOL_SIZES = hnp.arrays(np.float64, 20, elements=st.integers(1, 80).map(float))


@given(a=POOL_SIZES, b=POOL_SIZES, wanted=POOL_SIZES)
def test_what_is_paid_is_what_is_needed_plus_the_areas(a: Any, b: Any, wanted: Any) -> None:
    seen = series(20, slots={"a": a.tolist(), "b": b.tolist()})
    s = slot_scores(seen, {"a": wanted, "b": wanted[::-1]})
    balance = s["oracle_slots_mean"] + s["accuracy_o"] - s["accuracy_u"]  # type: ignore[operator]
    assert s["slots_mean"] == pytest.approx(balance)
    paid = s["oracle_slot_seconds"] * (1 + s["regret"])  # type: ignore[operator]
    assert s["slot_seconds"] == pytest.approx(paid)


def test_latency_leaves_the_downtime_out() -> None:
    seen = series(
        5,
        queue_latency=[1.0, 100.0, 3.0, 2.0, 4.0],
        latency=[2.0, 100.0, 4.0, 3.0, 5.0],
        down=[0.0, 1.0, 0.0, 0.5, 0.0],
        delivered=[1.0, 0.0, 0.0, 1.0, 1.0],
    )
    s = latency_scores(seen, slo=3.0)
    assert s["latency_mean"] == pytest.approx((1 + 3 + 0.5 * 2 + 4) / 3.5)
    assert s["latency_p50"] == 3.0  # 1 and half of 2 make 1.5 of 3.5 s, 3 takes it past 1.75
    assert s["latency_max"] == 4.0
    assert s["e2e_mean"] == pytest.approx((2 + 0.5 * 3 + 5) / 2.5)  # second 2 delivered nothing
    assert s["slo_seconds"] == 2.0  # whoever waits is late, whether the job is up or down


def test_a_job_that_is_never_up_has_no_latency() -> None:
    s = latency_scores(series(3, down=[1.0, 1.0, 1.0], queue_latency=[1.0, 2.0, 3.0]), slo=60.0)
    assert s["latency_mean"] is None and s["latency_p99"] is None and s["e2e_max"] is None


@given(values=hnp.arrays(np.float64, st.integers(1, 60), elements=st.floats(0, 1e4)))
def test_quantiles_are_those_of_numpy(values: Any) -> None:
    s = latency_scores(series(len(values), queue_latency=values), slo=60.0)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
        expected = np.quantile(values, share, method="inverted_cdf")
        assert s[f"latency_{name}"] == expected


def test_flow() -> None:
    s = flow_scores(
        series(
            3,
            offered=[10.0, 10.0, 10.0],
            consumed=[10.0, 0.0, 14.0],
            expired=[0.0, 2.0, 0.0],
            lag=[0.0, 8.0, 4.0],
            cpu=[0.5, 0.0, 0.8],
            down=[0.0, 1.0, 0.0],
        )
    )
    assert s["throughput"] == pytest.approx(24 / 30)
    assert s["expired"] == 2.0 and s["lag_end"] == 4.0 and s["downtime"] == 1.0
    assert s["cpu_mean"] == pytest.approx(0.65)


def test_nothing_offered_has_no_throughput() -> None:
    assert flow_scores(series(2))["throughput"] is None


@pytest.mark.parametrize(
    ("times", "minutes", "actions", "converged"),
    [
        pytest.param([], 0.0, 0.0, 1.0, id="no action at all"),
        pytest.param([660.0, 900.0], 5.0, 2.0, 1.0, id="settles early"),
        pytest.param([660.0, 2399.9], 29.998333, 2.0, 1.0, id="just before the last ten minutes"),
        pytest.param([660.0, 2400.0], 30.0, 2.0, 0.0, id="just within them"),
        pytest.param([300.0, 3000.0], 0.0, 0.0, 1.0, id="only outside the stage"),
    ],
)
def test_stages(times: list[float], minutes: float, actions: float, converged: float) -> None:
    s = stage_scores(times, [(600.0, 3000.0, 2e6)], 5400)
    assert s["stage1_minutes"] == pytest.approx(minutes)
    assert s["stage1_actions"] == actions
    assert s["stage1_converged"] == converged


def test_a_stage_ends_with_the_run() -> None:
    s = stage_scores([1500.0], [(600.0, 3000.0, 1.0)], 1800)
    assert s["stage1_converged"] == 0.0


def two_steps(*, shared: bool) -> FluidSpec:
    pools = ("p", "p") if shared else ("a", "b")
    return FluidSpec(
        pipeline=Pipeline(
            operators={
                "a": Operator(pool=pools[0], selectivity=0.5),
                "b": Operator(pool=pools[1]),
            },
            edges=[("a", "b")],
        ),
        service_rates={"a": 10.0, "b": 4.0},
        start=dict.fromkeys(pools, 1),
        capacity_noise=0.0,
        metric_noise=0.0,
    )


def waiting(a: float, b: float) -> Totals:
    def one(left: float) -> OperatorTotals:
        return OperatorTotals(received=left, processed=0.0, waiting=left)

    return Totals(
        arrived=a, consumed=0.0, queued=a, expired=0.0, buffered=b, delivered=0.0,
        operators={"a": one(a), "b": one(b)},
    )  # fmt: skip


def test_drain_time_is_that_of_the_slowest_pool() -> None:
    # a: 100 / (2·10) = 5 s; b: (20 + 0.5·100) / (1·4) = 17.5 s
    assert drain_seconds(two_steps(shared=False), waiting(100, 20), {"a": 2, "b": 1}) == 17.5


def test_operators_that_share_slots_drain_one_after_the_other() -> None:
    # (100/10 + 70/4) / 5 slots
    assert drain_seconds(two_steps(shared=True), waiting(100, 20), {"p": 5}) == pytest.approx(5.5)


def test_nothing_waiting_drains_at_once() -> None:
    assert drain_seconds(two_steps(shared=False), waiting(0, 0), {"a": 1, "b": 1}) == 0.0


def test_excess_time_is_how_long_an_engine_really_takes() -> None:
    """Run into a backlog, stop the input, and wait until it is gone."""
    spec = two_steps(shared=False)
    load = create("step", {"low": 0.0, "high": 30.0, "at": 0.0, "hold": 100.0})
    engine = FluidEngine(spec, load, seconds=1000, seed=0)
    engine.advance(100)
    expected = drain_seconds(spec, engine.totals(), {"a": 1, "b": 1})
    engine.advance(900)
    busy_until = int(np.flatnonzero(engine.series.delivered > 1e-9)[-1]) + 1
    assert busy_until - 100 == pytest.approx(expected, abs=3)


def test_all_scores_of_a_run_are_there_and_finite() -> None:
    query = QUERIES["q1"]
    engine = FluidEngine(query.spec, Constant(rps=1e6), seconds=1200, seed=1)
    actions = Actions()

    def record(decision: Decision, state: State) -> None:
        if decision.applied:
            actions.add(decision)

    Loop(engine, DS2(), Guards(), mode="act", record=record).run(period=15, ticks=80)
    wanted = oracle.demand(query.spec, engine.series)
    scores = scores_of(engine, wanted, actions, figures={"forecast_error": 0.1})
    assert scores["forecast_error"] == 0.1
    assert all(v is not None and np.isfinite(v) for v in scores.values())
    assert scores["actions"] == len(actions.times) >= scores["reconfigurations"] > 0  # type: ignore[operator]


RATES = st.floats(0.0, 3e6)


@settings(max_examples=40)
@given(rate=RATES, name=st.sampled_from(sorted(QUERIES)), shared=st.booleans())
def test_the_oracle_has_enough_and_one_less_is_too_few(
    rate: float, name: str, shared: bool
) -> None:
    query = QUERIES[name]
    shared = shared and not query.spec.key_groups  # with skew the fewest is an upper bound
    spec = query.shared() if shared else query.spec
    rate *= query.high / 2.2e6
    shares = {s: spec.source_shares.get(s, 1.0) for s in spec.pipeline.sources}
    offered = np.array([rate])
    slots = oracle.demand(spec, series(1, offered=offered))
    demanded = spec.demand({source: rate * share for source, share in shares.items()})
    for pool, needed in slots.items():
        members = spec.pipeline.members(pool)

        def work(size: int, members: tuple[str, ...] = members) -> float:
            """Share of the time that a pool of that size is busy."""
            return sum(float(demanded[m]) / spec.capacity(m, size) for m in members)

        assert work(int(needed[0])) <= 1 + 1e-9
        assert needed[0] == 1 or work(int(needed[0]) - 1) > 1 - 1e-9


@given(low=RATES, high=RATES)
def test_the_oracle_never_has_fewer_slots_for_more_load(low: float, high: float) -> None:
    spec = QUERIES["q11"].spec
    both = oracle.demand(spec, series(2, offered=sorted((low, high))))
    assert all(slots[0] <= slots[1] for slots in both.values())
    assert oracle.total(both)[0] >= len(spec.pipeline.pools)
