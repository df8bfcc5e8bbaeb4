"""Thresholds of CPU with and without latencies, against figures computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.core.errors import InputError
from penstock.core.model import Placement, Slot
from penstock.policies import ThrNlaware, ThrNlunaware
from penstock.policies.gesscale.thresholds import Thresholds
from tests.fakes.fog_scenarios import fog
from tests.fakes.scenarios import healthy, with_all
from tests.policies.test_policies import last, needs, pool_needs

BOTH = [ThrNlunaware(), ThrNlaware()]


@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        (0.901, {"taxi": 4.0}),
        (0.9, {}),
        (0.5, {}),
        (0.499, {"taxi": 2.0}),
        (0.0, {}),  # a running slot never reads exactly 0
        (None, {}),
    ],
)
def test_one_slot_more_above_and_one_less_below(
    policy: Thresholds, cpu: float | None, expected: dict[str, float]
) -> None:
    assert needs(last(policy, fog("abc", cpu=cpu))) == expected


def test_the_aware_one_adds_the_nearest_and_removes_the_farthest() -> None:
    up = last(ThrNlaware(), fog("ad", cpu=0.95))
    assert up.place == {"taxi": Placement(add_on=("c",))}  # 80 ms from d; b, near a, is 90
    assert up.reason == "taxi 2→3 on c (+0 ms → 100 ms at most): CPU 95.0%, above 90%"
    down = last(ThrNlaware(), fog("dac", cpu=0.3))  # d is 100 ms from a, 80 from c; a and c 60
    assert down.place == {"taxi": Placement(remove=("taxi-0",))}
    assert down.reason == ("taxi 3→2 without d (-40 ms → 60 ms at most): CPU 30.0%, below 50%")


def test_the_unaware_one_draws_from_a_seed() -> None:
    policy = ThrNlunaware()
    added, gone = set(), set()
    for seed in range(40):
        up, memory = policy.decide(fog("ad", cpu=0.95), policy.start(seed))
        again, _ = policy.decide(fog("ad", cpu=0.95), policy.start(seed))
        assert up == again
        added |= set(up.place["taxi"].add_on)
        down, _ = policy.decide(fog("dac", cpu=0.3, time=600.0), memory)
        gone |= set(down.place["taxi"].remove)
    assert added == {"b", "c", "e"} and gone == {"taxi-0", "taxi-1", "taxi-2"}
    assert " ms" not in up.reason


@pytest.mark.parametrize("policy", BOTH)
def test_nodes_that_nobody_tells_are_left_to_the_engine(
    policy: Thresholds,
) -> None:
    seen = fog("abc", cpu=0.95, rtt=None, free=())
    assert needs(last(policy, seen)) == {"taxi": 4.0}
    assert last(policy, seen).place == {}
    assert last(policy, fog("abc", cpu=0.3, rtt=None, free=())).place == {}


@pytest.mark.parametrize("policy", BOTH)
def test_it_ends_at_one_slot_and_at_the_last_node(policy: Thresholds) -> None:
    assert "one slot is the least" in last(policy, fog("a", cpu=0.1)).reason
    full = last(policy, fog("abcde", cpu=0.99))
    assert full.needs == {} and "no node is free" in full.reason


@pytest.mark.parametrize("policy", BOTH)
def test_a_shared_pool_is_one(policy: Thresholds) -> None:
    assert pool_needs(last(policy, with_all(healthy(shared=True), cpu=0.95))) == {"all": 5.0}
    assert pool_needs(last(policy, with_all(healthy(shared=True), cpu=0.2))) == {"all": 3.0}


def test_cpu_of_the_slots_comes_first() -> None:
    seen = fog("abc", cpu=0.7)
    hot = tuple(Slot(id=f"taxi-{i}", node=n, cpu=0.96) for i, n in enumerate("abc"))
    assert needs(last(ThrNlaware(), replace(seen, pools={**seen.pools, "taxi": hot}))) == {
        "taxi": 4.0
    }


@pytest.mark.parametrize("policy", BOTH)
def test_it_looks_once_a_period_and_never_at_a_rescale(policy: Thresholds) -> None:
    memory, said = policy.start(1), []
    for i in range(6):
        seen = fog("abc", cpu=0.95, time=15.0 * i, acting=i == 4)
        proposal, memory = policy.decide(seen, memory)
        said.append(bool(proposal.needs))
    assert said == [True, False, False, False, False, True]


@pytest.mark.parametrize("kind", [ThrNlaware, ThrNlunaware])
def test_thresholds_must_be_in_order(kind: Callable[..., Thresholds]) -> None:
    for fields in ({"high": 0.4}, {"low": 0.0}, {"high": 1.1}, {"low": 0.9}):
        with pytest.raises(InputError, match="must hold"):
            kind(**fields)
    with pytest.raises(InputError, match="period"):
        kind(period=float("nan"))
