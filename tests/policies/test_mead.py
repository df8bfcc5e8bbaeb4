"""MEAD and its kin: the search, the models, and what they do with input they cannot use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.model import Arrivals, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies.mead.cpu_threshold import CpuThreshold
from penstock.policies.mead.decision import Path, paths_of, search
from penstock.policies.mead.mead import Mead, MeadKingman, MeadMg1
from penstock.queueing.map2 import hyperexponential
from penstock.simulator.tuples import TupleEngine, log_analysis

LEVELS = (0.4, 0.55, 0.7, 0.85, 1.0)
INTERVAL = 0.01
BURSTY = hyperexponential(r2=3.0, low=0.3, gamma=math.exp(-1 / 10)).scaled(INTERVAL)
KINDS: list[Callable[..., Mead]] = [Mead, MeadMg1, MeadKingman]


def times_of(process: object = BURSTY, count: int = 60_000, seed: int = 0) -> np.ndarray:
    return np.cumsum(process.sample(count, np.random.default_rng(seed)))  # type: ignore[attr-defined]


def seen_under(times: np.ndarray, seconds: float = 300.0) -> Snapshot:
    engine = TupleEngine(log_analysis(INTERVAL), times, seed=1)
    engine.advance(seconds)
    return engine.observe()


@cache  # nobody can change a snapshot
def seen_under_bursts() -> Snapshot:
    return seen_under(times_of())


def with_arrivals(seen: Snapshot, arrivals: Arrivals | None) -> Snapshot:
    source = replace(seen.operators["source"], arrivals=arrivals)
    return replace(seen, operators={**seen.operators, "source": source})


def shares(policy: Mead, seen: Snapshot) -> dict[str, float | None]:
    proposal, _ = policy.decide(seen, policy.start(0))
    return {name: need.cpu_share for name, need in proposal.needs.items()}


def test_all_paths_of_a_pipeline() -> None:
    pipeline = Pipeline(
        operators={name: Operator(pool=name) for name in "sabcd"},
        edges=[("s", "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
    )
    assert set(paths_of(pipeline, "abcd")) == {("a", "b", "d"), ("a", "c", "d")}


def queue(demands: Mapping[str, float]):  # type: ignore[no-untyped-def]
    """M/M/1 in a row, the load relative to full CPU."""

    def predict(path: Path, at: Mapping[str, float]) -> float:
        total = 0.0
        for name in path:
            load = demands[name] / at[name]
            if load >= 0.98:
                return math.inf
            total += load / (1 - load)
        return total

    return predict


@given(
    st.lists(st.floats(0.05, 0.95), min_size=3, max_size=3),
    st.floats(0.5, 30.0),
    st.sampled_from([0.0, 0.05, 0.3]),
)
def test_the_search(loads: list[float], target: float, delta: float) -> None:
    demands = dict(zip("abc", loads, strict=True))
    paths = [("a", "b"), ("a", "c")]
    predict = queue(demands)
    choice = search(paths, LEVELS, target, delta, predict)
    full = dict.fromkeys("abc", 1.0)
    for path in paths:
        expected = predict(path, choice.shares)
        assert choice.predicted[path] == expected
        if delta == 0.0 and predict(path, full) <= target:
            assert expected <= target
    if all(predict(path, dict.fromkeys("abc", 0.4)) <= target for path in paths):
        assert set(choice.shares.values()) == {0.4}  # nothing more than needed


def test_a_step_that_gains_little_is_taken_back() -> None:
    """A path that no CPU can make fast enough does not get all of it."""
    slow = queue({"a": 0.3, "b": 0.01})

    def never(path: Path, at: Mapping[str, float]) -> float:
        return 100.0 + float(slow(path, at))

    assert search([("a", "b")], LEVELS, 1.0, 0.0, never).shares == {"a": 1.0, "b": 1.0}
    reverted = search([("a", "b")], LEVELS, 10.0, 0.3, never).shares
    assert reverted == {"a": 0.4, "b": 0.4}


def test_bursts_need_more_cpu_than_models_without_them_think() -> None:
    seen = seen_under_bursts()
    with_bursts = shares(Mead(target=0.1), seen)
    without = shares(MeadMg1(target=0.1), seen)
    assert with_bursts["matcher"] is not None and without["matcher"] is not None
    assert with_bursts["matcher"] > without["matcher"]
    assert without["matcher"] <= (shares(MeadKingman(target=0.1), seen)["matcher"] or 0)


def test_all_models_agree_where_there_are_no_bursts() -> None:
    seen = seen_under(np.cumsum(np.random.default_rng(3).exponential(INTERVAL, 60_000)))
    said = [shares(kind(target=0.05), seen) for kind in KINDS]
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("kind", [Mead, MeadMg1])
def test_tighter_targets_never_get_less(kind: Callable[..., Mead]) -> None:
    seen = seen_under_bursts()
    for percentile in (0.0, 0.95):
        totals = [
            sum(v or 0 for v in shares(kind(target=t, percentile=percentile), seen).values())
            for t in (5.0, 1.0, 0.3, 0.1, 0.03)
        ]
        assert totals == sorted(totals)


def test_a_percentile_is_harder_than_the_mean() -> None:
    seen = seen_under_bursts()
    mean = sum(v or 0 for v in shares(Mead(target=0.2), seen).values())
    p95 = sum(v or 0 for v in shares(Mead(target=0.2, percentile=0.95), seen).values())
    assert p95 >= mean


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("values", "said"),
    [
        (None, "not measured"),
        ([], "0 arrivals seen"),
        ([0.5], "1 arrivals seen"),
        ([0.5] * 1_000, "all 1000 times between arrivals are 0.5 s"),
        ([0.5, -0.1] * 500, "not in order"),
        ([0.5, math.nan] * 500, "not numbers"),
    ],
)
def test_arrivals_that_say_nothing_mean_full_cpu(
    kind: Callable[..., Mead], values: list[float] | None, said: str
) -> None:
    seen = with_arrivals(seen_under_bursts(), None if values is None else Arrivals(values))
    proposal, _ = kind(target=0.3).decide(seen, kind(target=0.3).start(0))
    assert proposal.reason.startswith("full CPU: ") and said in proposal.reason
    assert {need.cpu_share for need in proposal.needs.values()} == {1.0}
    assert set(proposal.needs) == {"parser", "counter", "matcher"}


@pytest.mark.parametrize("kind", KINDS)
def test_overload_means_full_cpu_and_a_slot_more(kind: Callable[..., Mead]) -> None:
    seen = seen_under_bursts()
    flood = Arrivals(np.random.default_rng(0).exponential(INTERVAL / 4, 5_000))
    proposal, _ = kind(target=0.3).decide(with_arrivals(seen, flood), kind(target=0.3).start(0))
    assert proposal.needs["matcher"].cpu_share == 1.0 and proposal.needs["matcher"].slots == 2.0
    assert "not enough: one slot more for matcher" in proposal.reason


def test_demands_that_are_not_known_mean_full_cpu() -> None:
    seen = seen_under_bursts()
    blind = replace(
        seen,
        operators={
            **seen.operators,
            "matcher": replace(seen.operators["matcher"], service_rate=None),
        },
    )
    policy = Mead(target=0.3)
    proposal, memory = policy.decide(blind, policy.start(0))
    assert "at matcher is not known yet" in proposal.reason
    _, memory = policy.decide(seen, memory)
    later, _ = policy.decide(blind, memory)  # what was learnt before is not forgotten
    assert "target" in later.reason


def test_one_level_down_at_a_time() -> None:
    seen = seen_under_bursts()
    policy = Mead(target=5.0, gradual=True)
    proposal, _ = policy.decide(seen, policy.start(0))
    assert {need.cpu_share for need in proposal.needs.values()} == {0.85}
    assert shares(Mead(target=5.0), seen)["counter"] == 0.4


def test_it_meets_its_target_where_m_g_1_does_not() -> None:
    times = times_of(count=150_000, seed=4)
    means = {}
    for policy in (Mead(target=0.15), MeadMg1(target=0.15)):
        engine = TupleEngine(log_analysis(INTERVAL), times, seed=2)
        Loop(engine, policy, Guards(), mode="act").run(period=60.0, ticks=1_000)
        engine.drain()
        means[policy.model] = (float(engine.responses("matcher")[1].mean()), engine.mean_share())
    assert means["map"][0] <= 0.15 < means["mg1"][0]
    assert means["map"][1] < 0.7


def test_the_threshold_policy() -> None:
    seen = seen_under_bursts()
    loads = {"parser": 0.75, "counter": 0.6, "matcher": 0.3}
    operators = {
        name: replace(o, cpu=loads.get(name)) if name in loads else o
        for name, o in seen.operators.items()
    }
    pools = {
        name: tuple(replace(slot, cpu_share=0.7) for slot in slots)
        for name, slots in seen.pools.items()
    }
    proposal, _ = CpuThreshold().decide(replace(seen, operators=operators, pools=pools), None)
    found = {name: need.cpu_share for name, need in proposal.needs.items()}
    assert found == {"parser": 0.85, "counter": 0.7, "matcher": 0.55}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"target": 0.0}, "target"),
        ({"percentile": 1.0}, "percentile"),
        ({"levels": "1,0.5"}, "rise"),
        ({"levels": "0.5,2"}, "rise"),
        ({"levels": "a"}, "numbers"),
        ({"windows": "50"}, "100 arrivals"),
        ({"delta": 1.0}, "delta"),
        ({"service_scv": 0.0}, "service_scv"),
        ({"maps": 0}, "maps"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Mead(**parameters)  # type: ignore[arg-type]


def test_thresholds_are_checked() -> None:
    with pytest.raises(InputError, match="low 0"):
        CpuThreshold(low=0.8)
