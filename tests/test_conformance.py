"""What every registered policy promises; a new policy is covered by being registered."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.codec import to_json
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.core.model import OperatorSeen, Snapshot
from penstock.core.ports import Policy
from penstock.policies import POLICIES, create, name_of, parameters_of
from tests.scenarios import healthy, with_all

FIELDS = [
    "offered_rate",
    "arrival_rate",
    "output_rate",
    "service_rate",
    "busy",
    "idle",
    "backpressured",
    "cpu",
    "buffer",
    "lag",
    "latency",
]
every_policy = pytest.mark.parametrize("name", sorted(POLICIES))


def story() -> list[Snapshot]:
    """A load that rises, falls and loses some of its metrics."""
    snapshots = []
    for i in range(30):
        load = 1000.0 + 800.0 * math.sin(i / 4)
        seen = with_all(
            healthy(time=1000.0 + 15 * i),
            offered_rate=load,
            arrival_rate=load,
            output_rate=load,
            busy=min(1.0, load / 1600),
            cpu=min(1.0, load / 1600),
        )
        snapshots.append(with_all(seen, service_rate=None, cpu=None) if i % 7 == 3 else seen)
    return snapshots


def run(policy: Policy, snapshots: list[Snapshot], *, through_json: bool = False) -> list[Any]:
    memory = policy.start(7)
    said = []
    for seen in snapshots:
        if through_json:
            memory = json.loads(json.dumps(memory))
        proposal, memory = policy.decide(seen, memory)
        said.append(to_json(proposal))
    return said


@every_policy
def test_same_seed_memory_and_snapshots_give_the_same_proposals(name: str) -> None:
    assert run(create(name), story()) == run(create(name), story())


@every_policy
def test_memory_survives_json(name: str) -> None:
    assert run(create(name), story(), through_json=True) == run(create(name), story())


@every_policy
def test_inputs_are_never_mutated(name: str) -> None:
    policy = create(name)
    memory = policy.start(7)
    for seen in story():
        seen_before, memory_before = copy.deepcopy(seen), copy.deepcopy(memory)
        _, next_memory = policy.decide(seen, memory)
        assert seen == seen_before
        assert memory == memory_before
        memory = next_memory


@every_policy
def test_every_proposal_has_a_reason(name: str) -> None:
    assert all(said["reason"] for said in run(create(name), story()))


def unchanged(name: str, seen: Snapshot, state: State | None = None) -> str:
    """Run one tick with open guards; fails unless nothing changes. Returns the explanation."""
    policy = create(name)
    state = state or State(memory=policy.start(7))
    decision, _ = plan(policy, Guards(), seen, state)
    assert decision.changes == {}, decision.explain()
    assert decision.proposal.reason
    return decision.explain()


@every_policy
def test_nothing_measured_changes_nothing(name: str) -> None:
    seen = healthy()
    blank = {n: OperatorSeen(parallelism=o.parallelism) for n, o in seen.operators.items()}
    unchanged(name, replace(seen, operators=blank))
    unchanged(name, replace(seen, operators={}))


@every_policy
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e300])
def test_all_metrics_zero_or_absurd_change_nothing(name: str, bad: float) -> None:
    unchanged(name, with_all(healthy(), **dict.fromkeys(FIELDS, bad)))


@every_policy
def test_a_stale_snapshot_changes_nothing(name: str) -> None:
    seen = with_all(healthy(), offered_rate=9000.0, cpu=1.0, arrival_rate=9000.0)
    assert "stale" in unchanged(name, replace(seen, age=1e6))
    memory = create(name).start(7)
    assert "stale" in unchanged(name, seen, State(memory=memory, last_seen=seen.time))
    unchanged(name, replace(seen, window=0.0))
    unchanged(name, replace(seen, time=math.nan))


@every_policy
def test_an_unknown_pool_size_changes_nothing(name: str) -> None:
    unchanged(name, replace(healthy(), pools={}))
    strange = with_all(healthy(), parallelism=math.nan)
    unchanged(name, strange)


@every_policy
@given(
    field=st.sampled_from(FIELDS),
    bad=st.sampled_from([None, -5.0, math.nan, math.inf, 1e300]),
    operator=st.sampled_from(["source", "map", "sink"]),
)
def test_one_unbelievable_metric_never_causes_an_action(
    name: str, field: str, bad: float | None, operator: str
) -> None:
    """Whatever is decided with a broken metric is decided too when it is merely missing."""
    seen = healthy(shared=True)
    policy = create(name)

    def decided(value: float | None) -> dict[str, int]:
        o = replace(seen.operators[operator], **{field: value})  # type: ignore[arg-type]
        broken = replace(seen, operators={**seen.operators, operator: o})
        decision, _ = plan(policy, Guards(), broken, State(memory=policy.start(7)))
        return {p: c.slots for p, c in decision.changes.items()}

    assert decided(bad) == decided(None)
    if field in ("cpu", "service_rate"):
        assert decided(0.0) == decided(None)


@every_policy
def test_a_lone_zero_is_not_an_idle_pipeline(name: str) -> None:
    """The source reads 0 records/s while its slots work: a broken metric, not a quiet night."""
    seen = with_all(healthy(shared=True), offered_rate=0.0, lag=0.0, cpu=0.7)
    unchanged(name, seen)


@every_policy
def test_parameters_round_trip_through_the_registry(name: str) -> None:
    policy = create(name)
    assert create(name, parameters_of(policy)) == policy
    text = {k: str(v) for k, v in parameters_of(policy).items()}
    assert create(name, text) == policy
    assert name_of(policy) == name


@every_policy
def test_every_policy_is_documented(name: str) -> None:
    assert len((POLICIES[name].__doc__ or "").splitlines()[0]) > 10
