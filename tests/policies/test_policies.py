"""Each policy against figures computed by hand, or by others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.core.model import OperatorSeen, Proposal, Rescale, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.core.ports import Policy
from penstock.policies import DS2, HpaCpu, HpaVarga, Static, create
from penstock.policies.ds2 import BOUNDLESS
from tests.fakes.scenarios import healthy, with_all
from tests.places import REFERENCE

VECTORS = json.loads((REFERENCE / "autoscaler_vectors.json").read_text(encoding="utf-8"))["ds2"]

CHAIN = [("source", "map"), ("map", "sink")]
JOIN = [("left", "join"), ("right", "join"), ("join", "sink")]
SPLIT = [("source", "a"), ("source", "b"), ("a", "sink"), ("b", "sink")]


def snapshot(
    edges: list[tuple[str, str]],
    held: Mapping[str, float | None] | None = None,
    *,
    time: float = 1000.0,
    slots: int = 4,
    **fields: Any,
) -> Snapshot:
    """One pool per operator; ``held`` the back-pressured shares (else 0), the rest is busy."""
    names = list(dict.fromkeys(name for edge in edges for name in edge))
    shape = Pipeline(operators={n: Operator(pool=n) for n in names}, edges=edges)
    operators = {}
    for name in names:
        share = (held or {}).get(name, 0.0)
        operators[name] = OperatorSeen(
            parallelism=float(slots),
            arrival_rate=10_000.0,
            output_rate=10_000.0,
            service_rate=4000.0,
            busy=0.6,
            idle=0.4 - (share or 0.0) if (share or 0.0) < 0.4 else 0.0,
            backpressured=share,
            cpu=0.6,
            buffer=None if name in shape.sources else 0.5,
            offered_rate=10_000.0 if name in shape.sources else None,
            lag=50_000.0 if name in shape.sources else None,
        )
        if share is not None and share > 0.4:
            operators[name] = replace(operators[name], busy=1.0 - share)
    pools = {n: tuple(Slot(id=f"{n}-{i}") for i in range(slots)) for n in names}
    seen = Snapshot(time=time, window=15.0, pipeline=shape, operators=operators, pools=pools)
    return with_all(seen, **fields)


def but(seen: Snapshot, name: str, **fields: Any) -> Snapshot:
    return replace(
        seen, operators={**seen.operators, name: replace(seen.operators[name], **fields)}
    )


def needs(proposal: Proposal) -> dict[str, float]:
    return {name: need.slots for name, need in proposal.needs.items()}


def pool_needs(proposal: Proposal) -> dict[str, float]:
    return {name: need.slots for name, need in proposal.pool_needs.items()}


def last(policy: Policy, *snapshots: Snapshot) -> Proposal:
    """The proposal on the last of some snapshots."""
    memory = policy.start(0)
    for seen in snapshots:
        proposal, memory = policy.decide(seen, memory)
    return proposal


# --- static, ds2 ---


def test_static_sizes_every_pool_and_without_a_size_none() -> None:
    proposal, _ = Static(slots=3).decide(healthy(), None)
    assert pool_needs(proposal) == {"source": 3, "map": 3, "sink": 3}
    assert Static().decide(healthy(), None)[0].pool_needs == {}


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("shape", ["one_source", "two_sources"])
def test_ds2_gives_the_results_of_its_own_projects_tests(shape: str, number: int) -> None:
    """Rates are of whole operators, at a parallelism of 1; those of a source are its output."""
    vector = VECTORS[shape][number]
    edges = [(a, b) for a, b in VECTORS["edges"][shape]]
    seen = snapshot(edges, slots=1)
    for name in seen.operators:
        true_processing, true_output, _, _ = vector[name]
        source = name in seen.pipeline.sources
        seen = but(
            seen,
            name,
            offered_rate=float(true_output) if source else None,
            arrival_rate=float(true_output if source else true_processing),
            output_rate=float(true_output),
            service_rate=None if source else float(true_processing),
        )
    decision, _ = plan(DS2(over_provisioning=1.0), Guards(maximum=1000), seen, State())
    sizes = {name: change.slots for name, change in decision.targets.items()}
    assert vector["expected"].items() <= sizes.items()


def test_ds2_carries_demand_through_selectivities_unrounded() -> None:
    seen = but(but(healthy(), "source", offered_rate=3000.0), "map", output_rate=250.0)
    proposal, _ = DS2(over_provisioning=1.0).decide(seen, None)
    assert needs(proposal) == {"source": 7.5, "map": 7.5, "sink": 1.875}


def test_ds2_adds_up_the_branches_of_a_join() -> None:
    seen = but(but(snapshot(JOIN), "left", offered_rate=8000.0), "right", offered_rate=16_000.0)
    proposal, _ = DS2(over_provisioning=1.0).decide(seen, None)
    assert needs(proposal) == {"left": 2.0, "right": 4.0, "join": 6.0, "sink": 6.0}


@pytest.mark.parametrize("strict", [False, True])
def test_ds2_below_an_unfired_window(strict: bool) -> None:
    """The sink had nothing to do: left as it is, or, as in the thesis, without bound."""
    seen = but(healthy(), "map", output_rate=0.0)
    seen = but(seen, "sink", arrival_rate=0.0, service_rate=None, busy=0.0, idle=1.0)
    proposal, _ = DS2(strict=strict).decide(seen, None)
    assert needs(proposal).get("sink") == (BOUNDLESS if strict else None)
    assert set(proposal.needs) >= {"source", "map"}
    decision, _ = plan(DS2(strict=strict), Guards(maximum=80), seen, State())
    assert decision.targets["sink"].slots == (80 if strict else 4)


@pytest.mark.parametrize("strict", [False, True])
def test_ds2_releases_the_slots_of_a_pipeline_that_is_idle_for_sure(strict: bool) -> None:
    idle = with_all(
        healthy(), offered_rate=0.0, arrival_rate=0.0, output_rate=0.0, service_rate=None, lag=0.0,
        busy=0.0, idle=1.0,
    )  # fmt: skip
    decision, _ = plan(DS2(strict=strict), Guards(minimum=2), idle, State())
    assert {c.slots for c in decision.changes.values()} == {2}


def test_ds2_speaks_of_the_operators_that_change_most() -> None:
    names = [f"o{i}" for i in range(40)]
    seen = snapshot(list(pairwise(names)))
    seen = but(seen, "o17", service_rate=400.0)
    proposal, _ = DS2().decide(seen, None)
    assert len(proposal.needs) == 40
    assert proposal.reason.startswith("demand over service rate: o17 30.00 (10000/s at 400/s")
    assert proposal.reason.endswith("and 32 more that change less")


# --- hpa-cpu ---


def test_hpa_follows_the_ratio_of_cpu_to_target() -> None:
    proposal = last(HpaCpu(), with_all(healthy(slots=5), cpu=0.9))
    assert proposal.pool_needs["map"].slots == pytest.approx(5 * 0.9 / 0.7)


def test_hpa_keeps_the_maximum_of_its_window_and_forgets_it_afterwards() -> None:
    policy = HpaCpu(window=60.0)
    memory = policy.start(0)
    wanted = []
    for i, cpu in enumerate([0.9, 0.3, 0.3, 0.3, 0.3, 0.3]):
        seen = with_all(healthy(slots=7, time=1000.0 + 15 * i), cpu=cpu)
        proposal, memory = policy.decide(seen, memory)
        wanted.append(proposal.pool_needs["map"].slots)
    assert wanted == pytest.approx([9.0, 9.0, 9.0, 9.0, 3.0, 3.0])


def test_hpa_prefers_the_slots_own_figures() -> None:
    seen = healthy(slots=2)
    slots = (Slot(id="a", cpu=0.2), Slot(id="b", cpu=0.8))
    proposal = last(HpaCpu(), replace(seen, pools={**seen.pools, "map": slots}))
    assert proposal.pool_needs["map"].slots == pytest.approx(2 * 0.5 / 0.7)


RESTARTED = Rescale(time=1000.0, pool="map", before=4, after=7, registered=35.0, downtime=40.0)


@pytest.mark.parametrize("kind", [HpaCpu, HpaVarga])
@pytest.mark.parametrize(
    ("change", "counts_from"),
    [
        ("seen by its size alone", 1015.0 + 120.0),
        ("reported with its cost", 1000.0 + 40.0 + 120.0),
        ("in flight until 1060", 1060.0 + 120.0),
    ],
)
def test_hpa_leaves_out_the_catch_up_after_a_change_of_size(
    kind: Any, change: str, counts_from: float
) -> None:
    """All operators are at their ceiling for 300 s after a restart; the load is 0.35 of that."""
    policy, strict = kind(), kind(strict=True)
    memory, memory_strict = policy.start(0), strict.start(0)
    spoke, wanted, ratchet = None, [], []
    for i in range(41):
        time = 1000.0 + 15.0 * i
        used = 0.35 if i == 0 or i > 20 else 0.98
        seen = with_all(healthy(slots=7 if i else 4, time=time), cpu=used, busy=used, idle=1 - used)
        seen = replace(
            seen,
            rescales=(RESTARTED,) if change.startswith("reported") and time >= 1045 else (),
            acting=change.startswith("in flight") and time <= 1060,
        )
        proposal, memory = policy.decide(seen, memory)
        said = proposal.needs or proposal.pool_needs
        if said and i and spoke is None:
            spoke = time
        if not said:
            assert "since the last change of size" in proposal.reason
        wanted.append(said["map"].slots if said else 0.0)
        proposal, memory_strict = strict.decide(seen, memory_strict)
        ratchet.append((proposal.needs or proposal.pool_needs)["map"].slots)
    assert spoke is not None
    assert 0 <= spoke - counts_from < 15.0
    assert ratchet[1] == pytest.approx(7 * 0.98 / 0.7)  # at once
    assert wanted[-1] == ratchet[-1] == pytest.approx(7 * 0.35 / 0.7)  # in the end


def test_hpa_forgets_old_figures_while_it_warms_up() -> None:
    high = with_all(healthy(time=1000.0), cpu=1.0)
    later = [with_all(healthy(slots=6, time=1000.0 + t), cpu=0.35) for t in (15.0, 105.0, 135.0)]
    assert pool_needs(last(HpaCpu(window=120.0), high, *later))["map"] == pytest.approx(3.0)
    assert pool_needs(last(HpaCpu(window=180.0), high, *later))["map"] == pytest.approx(4 / 0.7)


def test_hpa_in_a_loop_that_sleeps_counts_the_first_figure_after_it() -> None:
    """Called 315 s after an action that is reported: warm by then, and the window is stale."""
    before = with_all(healthy(time=1000.0), cpu=1.0)
    after = replace(with_all(healthy(slots=7, time=1315.0), cpu=0.5), rescales=(RESTARTED,))
    assert pool_needs(last(HpaCpu(), before, after))["map"] == pytest.approx(5.0)
    assert pool_needs(last(HpaCpu(strict=True), before, after))["map"] == pytest.approx(5.0)


# --- parameters ---


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ds3", {}, "did you mean 'ds2'"),
        ("ds2", {"factor": 1.0}, "unknown parameter of policy ds2 'factor'"),
        ("ds2", {"over_provisioning": "much"}, "'much' is not a float"),
        ("ds2", {"over_provisioning": [1.2]}, r"\[1.2\] is not a float"),
        ("ds2", {"over_provisioning": True}, "True is not a float"),
        ("ds2", {"over_provisioning": -1.0}, "over_provisioning = -1.0"),
        ("ds2", {"strict": "yes"}, "'yes' must be true or false"),
        ("ds2", {"strict": 1}, "1 is not a bool"),
        ("hpa-cpu", {"target": 70}, r"target = 70 must be in \(0, 1\]"),
        ("hpa-cpu", {"warm_up": "-1"}, "warm_up = -1.0 s must be ≥ 0"),
        ("hpa-varga", {"target": 0}, r"target = 0 must be in \(0, 1\]"),
        ("hpa-varga", {"lag_target": 0}, "lag_target = 0 must be above 0"),
        ("hpa-varga", {"backpressured": 1}, r"backpressured = 1 must be in \[0, 1\)"),
        ("hpa-varga", {"window": "nan"}, "window = nan must be ≥ 0"),
        ("dhalion", {"scale_down_factor": 0.8}, "1.2 shrinks by 20 %"),
        ("dhalion", {"buffer_low": 20}, r"buffer_low = 20 must be in \[0, 1\)"),
        ("dhalion", {"lag_low": "-5"}, "lag_low = -5.0 must be ≥ 0"),
        ("dhalion", {"period": 0}, "period = 0 s must be above 0"),
        ("static", {"slots": "0"}, "slots = 0 must be ≥ 1"),
        ("static", {"slots": 2.5}, "2.5 is not a int"),
    ],
)
def test_wrong_names_and_parameters_say_what_is_wrong(
    name: str, parameters: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        create(name, parameters)
