"""What every registered policy promises; a new policy is covered by being registered."""

from __future__ import annotations

import copy
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.codec import to_json
from penstock.core.facts import JoinTime, PoolFacts
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.core.model import OperatorSeen, QuerySeen, Rescale, Slot, Snapshot, SourceSeen
from penstock.core.ports import Policy
from penstock.policies import DS2, POLICIES, create, name_of, parameters_of
from tests.fakes.scenarios import healthy, with_all
from tests.places import ROOT

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
VARIANTS: dict[str, Policy] = {name: create(name) for name in sorted(POLICIES)} | {
    f"{name} strict": create(name, {"strict": True})
    for name in sorted(POLICIES)
    if "strict" in parameters_of(create(name))
}
every_name = pytest.mark.parametrize("name", sorted(POLICIES))
every_policy = pytest.mark.parametrize("policy", VARIANTS.values(), ids=VARIANTS)


@cache
def story(ticks: int = 40) -> tuple[Snapshot, ...]:
    """A load that rises, falls, piles up, is held back and loses some of its metrics; a rescale."""
    snapshots = []
    for i in range(ticks):
        load = 1000.0 + 800.0 * math.sin(i / 4)
        held = max(0.0, 0.5 * math.sin(i / 5)) if i % 20 > 5 else 0.0
        busy = min(1.0 - held, load / 1900)
        seen = with_all(
            healthy(time=1000.0 + 15 * i, slots=6 if i > 20 else 4),
            offered_rate=load + 300.0 * math.sin(i / 3),
            arrival_rate=load,
            output_rate=load,
            busy=busy,
            idle=1.0 - busy - held,
            backpressured=held,
            cpu=max(0.05, busy),
            buffer=0.4 if held else 0.05,
            lag=max(0.0, 1e6 * math.sin(i / 6)),
        )
        sink = replace(seen.operators["sink"], backpressured=0.0, idle=1.0 - busy)
        if i % 11 == 5:  # a window that has not fired: nothing to do below it
            sink = replace(sink, arrival_rate=0.0, service_rate=None, busy=0.0, idle=1.0)
        seen = replace(seen, operators={**seen.operators, "sink": sink}, acting=18 < i < 21)
        if i > 20:
            done = Rescale(time=1285.0, pool="map", before=4, after=6, registered=30.0)
            seen = replace(seen, rescales=(done,))
        blind = {"service_rate": None, "cpu": None, "idle": None}
        snapshots.append(with_all(seen, **blind) if i % 7 == 3 else seen)
    return tuple(snapshots)


def run(policy: Policy, snapshots: Sequence[Snapshot], *, through_json: bool = False) -> list[Any]:
    memory = policy.start(7)
    said = []
    for seen in snapshots:
        if through_json:
            memory = json.loads(json.dumps(memory))
        proposal, memory = policy.decide(seen, memory)
        said.append(to_json(proposal))
    return said


@every_policy
def test_same_seed_memory_and_snapshots_give_the_same_proposals(policy: Policy) -> None:
    assert run(policy, story()) == run(policy, story())


def test_proposals_do_not_depend_on_the_process() -> None:
    """The order of a set of names differs between processes; what is said must not."""
    code = (
        "import json; from tests.policies.test_conformance import VARIANTS, run, story; "
        "print(json.dumps([run(p, story()) for p in VARIANTS.values()]))"
    )
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(said.stdout) == [run(policy, story()) for policy in VARIANTS.values()]


@every_policy
def test_memory_survives_json(policy: Policy) -> None:
    assert run(policy, story(), through_json=True) == run(policy, story())


@every_policy
def test_memory_does_not_grow_without_end(policy: Policy) -> None:
    memory, sizes = policy.start(7), []
    for seen in story(800):
        _, memory = policy.decide(seen, memory)
        sizes.append(len(json.dumps(memory)))
    assert max(sizes[600:]) <= max(sizes[200:600]) + 64  # times become a digit longer


@every_policy
def test_inputs_are_never_mutated(policy: Policy) -> None:
    memory = policy.start(7)
    for seen in story():
        seen_before, memory_before = copy.deepcopy(seen), copy.deepcopy(memory)
        _, next_memory = policy.decide(seen, memory)
        assert seen == seen_before
        assert memory == memory_before
        memory = next_memory


@every_policy
def test_every_proposal_has_a_reason(policy: Policy) -> None:
    assert all(said["reason"] for said in run(policy, story()))


@every_policy
def test_every_need_is_a_finite_number(policy: Policy) -> None:
    for said in run(policy, story()):
        needs = [*said.get("needs", {}).values(), *said.get("pool_needs", {}).values()]
        assert all(math.isfinite(need["slots"]) and need["slots"] >= 0 for need in needs)


def unchanged(policy: Policy, seen: Snapshot, state: State | None = None) -> str:
    """Run one tick with open guards; fails unless nothing changes. Returns the explanation."""
    state = state or State(memory=policy.start(7))
    decision, _ = plan(policy, Guards(), seen, state)
    assert decision.changes == {}, decision.explain()
    assert "raised" not in decision.explain()
    assert decision.proposal.reason
    return decision.explain()


@every_policy
def test_nothing_measured_changes_nothing(policy: Policy) -> None:
    seen = healthy()
    blank = {n: OperatorSeen(parallelism=o.parallelism) for n, o in seen.operators.items()}
    unchanged(policy, replace(seen, operators=blank))
    unchanged(policy, replace(seen, operators={}))


@every_policy
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e300])
def test_all_metrics_zero_or_absurd_change_nothing(policy: Policy, bad: float) -> None:
    fields = FIELDS
    if policy == DS2(strict=True) and bad == 0.0:
        # A busy time of 0 is the one fault that it is there to reproduce.
        fields = [field for field in FIELDS if field != "busy"]
    unchanged(policy, with_all(healthy(), **dict.fromkeys(fields, bad)))


@every_policy
def test_metrics_lost_after_a_while_change_nothing(policy: Policy) -> None:
    """A history of sizes and lags is no reason to act on a snapshot that shows nothing."""
    memory = policy.start(7)
    snapshots = story(12)
    for seen in snapshots:
        _, memory = policy.decide(seen, memory)
    later = replace(healthy(time=1180.0), pools=snapshots[-1].pools)
    blank = {n: OperatorSeen(parallelism=o.parallelism) for n, o in later.operators.items()}
    unchanged(policy, replace(later, operators=blank), State(memory=memory, last_seen=1165.0))


@every_policy
def test_a_stale_snapshot_changes_nothing(policy: Policy) -> None:
    seen = with_all(healthy(), offered_rate=9000.0, cpu=1.0, arrival_rate=9000.0)
    assert "stale" in unchanged(policy, replace(seen, age=1e6))
    state = State(memory=policy.start(7), last_seen=seen.time)
    assert "stale" in unchanged(policy, seen, state)
    unchanged(policy, replace(seen, window=0.0))
    unchanged(policy, replace(seen, time=math.nan))


@every_policy
def test_an_unknown_pool_size_changes_nothing(policy: Policy) -> None:
    unchanged(policy, replace(healthy(), pools={}))
    strange = with_all(healthy(), parallelism=math.nan)
    unchanged(policy, strange)


@every_policy
@given(
    field=st.sampled_from(FIELDS),
    bad=st.sampled_from([None, -5.0, math.nan, math.inf, 1e300]),
    operator=st.sampled_from(["source", "map", "sink"]),
)
def test_one_unbelievable_metric_never_causes_an_action(
    policy: Policy, field: str, bad: float | None, operator: str
) -> None:
    """Whatever is decided with a broken metric is decided too when it is merely missing."""
    seen = healthy(shared=True)

    def decided(value: float | None) -> dict[str, int]:
        o = replace(seen.operators[operator], **{field: value})  # type: ignore[arg-type]
        broken = replace(seen, operators={**seen.operators, operator: o})
        decision, _ = plan(policy, Guards(), broken, State(memory=policy.start(7)))
        return {p: c.slots for p, c in decision.changes.items()}

    assert decided(bad) == decided(None)
    if field in ("cpu", "service_rate"):
        assert decided(0.0) == decided(None)


BAD = [None, -5.0, math.nan, math.inf, 1e300]
TOLD = ("cost_fixed", "cost_per_record", "busy_per_record", "trigger", "admission_limit")


def told(**fields: Any) -> Snapshot:
    """A query in micro-batches with all that a policy may be told of it, or some of that."""
    known: dict[str, Any] = {
        "cost_fixed": 0.4, "cost_per_record": 1e-3, "busy_per_record": 1.4e-3,
        "trigger": 1.0, "admission_limit": 2000.0,
    } | {k: v for k, v in fields.items() if k in TOLD}  # fmt: skip
    query = QuerySeen(
        batches=15, rows=15_000, batch_duration=0.9, batch_interval=1.0, offered_rate=1000.0,
        processed_rate=1000.0, lag=10.0, lag_seconds=0.01, busy=0.6,
        sources=(SourceSeen(name="s", lag=10.0, most_rows=fields.get("most_rows", 2000.0)),),
        **known,
    )  # fmt: skip
    seen = replace(healthy(shared=True), queries={"q": query}, execution="micro-batch")
    cold = fields.get("cold", False)
    pools = {"all": tuple(replace(slot, cold=cold) for slot in seen.pools["all"])}
    join = JoinTime(seconds=fields.get("join", 10.0), origin="assumed")
    facts = PoolFacts(
        cores=fields.get("cores", 1.0), minimum=fields.get("minimum", 1), maximum=80,
        join=None if fields.get("join", 10.0) is None else join,
    )  # fmt: skip
    return replace(seen, pools=pools, facts={"all": facts} if fields.get("facts", True) else {})


def slots_decided(policy: Policy, seen: Snapshot) -> dict[str, int]:
    decision, _ = plan(policy, Guards(), seen, State(memory=policy.start(7)))
    assert "policy-raised" not in decision.faults, decision.explain()
    return {p: c.slots for p, c in decision.changes.items()}


@every_policy
@given(
    field=st.sampled_from([*TOLD, "most_rows", "cores", "minimum", "join"]),
    bad=st.sampled_from(BAD),
)
def test_what_is_told_wrongly_or_by_half_causes_no_action(
    policy: Policy, field: str, bad: float | None
) -> None:
    """Whatever is decided with a figure that cannot be true is decided too without that figure."""
    assert slots_decided(policy, told(**{field: bad})) == slots_decided(
        policy, told(**{field: None})
    )


@every_policy
def test_where_nothing_is_told_nothing_is_done_for_it(policy: Policy) -> None:
    """A snapshot of 0.1 has none of it; no policy acts because it is missing."""
    blank: dict[str, Any] = dict.fromkeys(TOLD) | {"most_rows": None, "facts": False}
    without = slots_decided(policy, told(**blank))
    assert without in ({}, slots_decided(policy, told()))


@every_policy
def test_cold_slots_alone_are_no_reason_to_act(policy: Policy) -> None:
    assert slots_decided(policy, told(cold=True)) in ({}, slots_decided(policy, told()))


@every_policy
def test_a_lone_zero_is_not_an_idle_pipeline(policy: Policy) -> None:
    """The source reads 0 records/s while its slots work: a broken metric, not a quiet night."""
    seen = with_all(healthy(shared=True), offered_rate=0.0, lag=0.0, cpu=0.7)
    unchanged(policy, seen)


@every_policy
def test_a_pool_that_was_never_seen_before_is_no_surprise(policy: Policy) -> None:
    """Slots come and go between two looks; a policy copes with any size it finds."""
    memory = policy.start(7)
    for i, size in enumerate((1, 40, 2)):
        seen = healthy(time=1000.0 + 15 * i, slots=size)
        slots = tuple(Slot(id=f"other-{j}") for j in range(size))
        decision, state = plan(
            policy,
            Guards(),
            replace(seen, pools={**seen.pools, "map": slots}),
            State(memory=memory),
        )
        memory = state.memory
        assert "raised" not in decision.explain()


@every_name
def test_parameters_round_trip_through_the_registry(name: str) -> None:
    policy = create(name)
    assert create(name, parameters_of(policy)) == policy
    text = {k: str(v) for k, v in parameters_of(policy).items()}
    assert create(name, text) == policy
    assert name_of(policy) == name


@every_name
def test_every_policy_is_documented(name: str) -> None:
    assert len((POLICIES[name].text).splitlines()[0]) > 10
    page = ROOT / "docs" / "policies" / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    for parameter in parameters_of(create(name)):
        assert f"`{parameter}`" in text, f"{page.name} does not explain {parameter}"
