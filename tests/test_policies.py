"""Each policy against figures computed by hand, or by others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.core.model import OperatorSeen, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies import DS2, HpaCpu, Static, create
from tests.scenarios import healthy, with_all


def test_static_sizes_every_pool_and_without_a_size_none() -> None:
    proposal, _ = Static(slots=3).decide(healthy(), None)
    assert {p: n.slots for p, n in proposal.pool_needs.items()} == {
        "source": 3,
        "map": 3,
        "sink": 3,
    }
    assert Static().decide(healthy(), None)[0].pool_needs == {}


def test_ds2_carries_demand_through_selectivities_unrounded() -> None:
    seen = healthy()
    operators = dict(seen.operators)
    operators["source"] = replace(operators["source"], offered_rate=3000.0)
    operators["map"] = replace(operators["map"], output_rate=250.0)  # 1 in 4 passes
    proposal, _ = DS2(over_provisioning=1.0).decide(replace(seen, operators=operators), None)
    assert {n: need.slots for n, need in proposal.needs.items()} == {
        "source": 7.5,
        "map": 7.5,
        "sink": 1.875,
    }


def test_ds2_adds_up_the_branches_of_a_join() -> None:
    shape = Pipeline(
        operators={n: Operator(pool=n) for n in ("left", "right", "join")},
        edges=[("left", "join"), ("right", "join")],
    )
    busy = OperatorSeen(parallelism=1, arrival_rate=10, output_rate=10, service_rate=50.0)
    seen = Snapshot(
        time=1.0,
        window=1.0,
        pipeline=shape,
        operators={
            "left": replace(busy, offered_rate=100.0),
            "right": replace(busy, offered_rate=200.0),
            "join": busy,
        },
        pools={n: (Slot(id=n),) for n in shape.operators},
    )
    proposal, _ = DS2(over_provisioning=1.0).decide(seen, None)
    assert proposal.needs["join"].slots == 6.0


def test_ds2_leaves_alone_what_is_below_an_unfired_window() -> None:
    seen = healthy()
    operators = {**seen.operators, "map": replace(seen.operators["map"], output_rate=0.0)}
    proposal, _ = DS2().decide(replace(seen, operators=operators), None)
    assert set(proposal.needs) == {"source", "map"}


def test_ds2_releases_the_slots_of_a_pipeline_that_is_idle_for_sure() -> None:
    idle = with_all(
        healthy(), offered_rate=0.0, arrival_rate=0.0, output_rate=0.0, service_rate=None, lag=0.0,
        busy=0.0, idle=1.0,
    )  # fmt: skip
    decision, _ = plan(DS2(), Guards(minimum=2), idle, State())
    assert {c.slots for c in decision.changes.values()} == {2}


def test_hpa_follows_the_ratio_of_cpu_to_target() -> None:
    seen = with_all(healthy(slots=5), cpu=0.9)
    proposal, _ = HpaCpu().decide(seen, HpaCpu().start(0))
    assert proposal.pool_needs["map"].slots == pytest.approx(5 * 0.9 / 0.7)


def test_hpa_keeps_the_maximum_of_its_window_and_forgets_it_afterwards() -> None:
    policy = HpaCpu(window=60.0)
    memory = policy.start(0)
    needs = []
    for i, cpu in enumerate([0.9, 0.3, 0.3, 0.3, 0.3, 0.3]):
        seen = with_all(healthy(slots=7, time=1000.0 + 15 * i), cpu=cpu)
        proposal, memory = policy.decide(seen, memory)
        needs.append(proposal.pool_needs["map"].slots)
    assert needs == pytest.approx([9.0, 9.0, 9.0, 9.0, 3.0, 3.0])


def test_hpa_prefers_the_slots_own_figures() -> None:
    seen = healthy(slots=2)
    slots = (Slot(id="a", cpu=0.2), Slot(id="b", cpu=0.8))
    seen = replace(seen, pools={**seen.pools, "map": slots})
    proposal, _ = HpaCpu().decide(seen, HpaCpu().start(0))
    assert proposal.pool_needs["map"].slots == pytest.approx(2 * 0.5 / 0.7)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ds3", {}, "did you mean 'ds2'"),
        ("ds2", {"factor": 1.0}, "unknown parameter of policy ds2 'factor'"),
        ("ds2", {"over_provisioning": "much"}, "'much' is not a float"),
        ("ds2", {"over_provisioning": -1.0}, "over_provisioning = -1.0"),
        ("hpa-cpu", {"target": 70}, r"target = 70 must be in \(0, 1\]"),
        ("static", {"slots": "0"}, "slots = 0 must be ≥ 1"),
    ],
)
def test_wrong_names_and_parameters_say_what_is_wrong(
    name: str, parameters: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        create(name, parameters)
