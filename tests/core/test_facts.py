"""What a policy is told of a pool: limits from the guards, kept in the journal, never believed
when it cannot be true.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.batches.actions import join_time, usual_join
from penstock.core.codec import from_json, to_json
from penstock.core.facts import JoinTime, PoolFacts
from penstock.core.guards import Guards
from penstock.core.loop import Loop, State, plan
from penstock.core.model import Change, Need, Proposal, QuerySeen, Rescale, Snapshot, SourceSeen
from penstock.core.sanity import believable
from penstock.history.journal import Header, Journal, read, replay
from tests.fakes.scenarios import healthy

FACTS = PoolFacts(cores=4.0, join=JoinTime(seconds=10.0, origin="assumed"))
GUARDS = Guards(minimum=2, maximum=9)


class Listening:
    """Keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Snapshot] = []

    def start(self, seed: int) -> None:
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        self.shown.append(seen)
        return Proposal(reason="listening"), memory


def told(facts: PoolFacts = FACTS, **fields: Any) -> Snapshot:
    return replace(healthy(shared=True), facts={"all": facts}, **fields)


def test_a_policy_is_told_the_limits_that_hold() -> None:
    policy = Listening()
    decision, _ = plan(policy, GUARDS, told(), State())
    assert policy.shown[0].facts["all"] == replace(FACTS, minimum=2, maximum=9)
    assert decision.seen is policy.shown[0]  # what it saw is what is written down


def test_without_facts_a_snapshot_is_passed_on_as_it_is() -> None:
    policy, seen = Listening(), healthy()
    plan(policy, GUARDS, seen, State())
    assert policy.shown[0] is seen
    complete = told(replace(FACTS, minimum=2, maximum=9))
    plan(policy, GUARDS, complete, State())
    assert policy.shown[1] is complete


class Shown:
    """An engine that shows one snapshot after the other."""

    def __init__(self, *snapshots: Snapshot) -> None:
        self.snapshots = list(snapshots)

    def observe(self) -> Snapshot:
        return self.snapshots.pop(0)

    def apply(self, changes: Any) -> None:
        raise AssertionError(changes)

    def advance(self, seconds: float) -> bool:
        return bool(self.snapshots)


def test_a_journal_keeps_them_and_a_replay_tells_those_of_its_own_guards(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    header = Header(policy="own", guards=GUARDS, mode="advise", period=15.0)
    engine = Shown(told(), told(time=1015.0))
    with Journal(path, header) as journal:
        Loop(engine, Listening(), GUARDS, record=journal.record).run(period=15.0, ticks=2)
    _, entries = read(path)
    assert [e.decision.seen.facts["all"].maximum for e in entries] == [9, 9]
    again, wider = Listening(), Listening()
    replay(entries, again, GUARDS, 0)
    assert again.shown == [e.decision.seen for e in entries]
    replay(entries, wider, replace(GUARDS, maximum=40), 0)
    assert [s.facts["all"].maximum for s in wider.shown] == [40, 40]


def test_they_survive_json_and_cost_nothing_where_nothing_is_known() -> None:
    query = QuerySeen(
        batches=1, rows=2, busy_per_record=0.1, trigger=0.0, admission_limit=500.0,
        sources=(SourceSeen(name="files", most_files=3.0),),
    )  # fmt: skip
    seen = told(queries={"q": query})
    document = json.loads(json.dumps(to_json(seen)))
    assert from_json(Snapshot, document) == seen
    plain = to_json(healthy())
    assert "facts" not in plain
    assert "slot_tasks" not in plain["pipeline"]
    assert all("cold" not in slot for slots in plain["pools"].values() for slot in slots)


@pytest.mark.parametrize(
    ("wrong", "gone"),
    [
        ({"cores": math.nan}, "cores"),
        ({"cores": -4.0}, "cores"),
        ({"cores": 0.0}, "cores"),
        ({"cores": 1e30}, "cores"),
        ({"minimum": 7, "maximum": 3}, "minimum"),
        ({"minimum": -1}, "minimum"),
        ({"maximum": 10**30}, "maximum"),
        ({"join": JoinTime(seconds=math.inf, origin="measured")}, "join"),
        ({"join": JoinTime(seconds=-3.0, origin="assumed")}, "join"),
        ({"join": JoinTime(seconds=1e9, origin="measured")}, "join"),
    ],
)
def test_facts_that_cannot_be_true_are_not_shown(wrong: dict[str, Any], gone: str) -> None:
    seen, notes = believable(told(replace(FACTS, **wrong)))
    assert getattr(seen.facts["all"], gone) is None
    assert len(notes) == 1 and gone in notes[0]
    kept = {"cores": 4.0, "join": FACTS.join}
    assert all(getattr(seen.facts["all"], k) == v for k, v in kept.items() if k not in wrong)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, 1e300])
@pytest.mark.parametrize("field", ["busy_per_record", "trigger", "admission_limit", "most_rows"])
def test_what_a_query_was_told_is_believed_only_if_it_can_be(field: str, bad: float) -> None:
    source, query = SourceSeen(name="s", lag=3.0), QuerySeen(batches=1, rows=2)
    if field == "most_rows":
        query = replace(query, sources=(replace(source, most_rows=bad, most_files=2.0),))
    else:
        wrong: dict[str, Any] = {field: bad}
        query = replace(query, sources=(source,), **wrong)
    seen, notes = believable(told(queries={"q": query}))
    assert seen.queries["q"] == QuerySeen(batches=1, rows=2, sources=(source,))
    assert len(notes) == 1


def grew(seconds: float | None, *, before: int = 1, after: int = 2) -> Rescale:
    return Rescale(time=0.0, pool="p", before=before, after=after, registered=seconds)


def test_the_time_to_join_is_assumed_until_it_was_measured() -> None:
    assert join_time((), None) is None
    assert join_time((), 10.0) == JoinTime(seconds=10.0, origin="assumed")
    useless = (grew(None), grew(2.0, before=4, after=3))  # never came; a shrinkage
    assert join_time(useless, 10.0) == JoinTime(seconds=10.0, origin="assumed")
    past = (*useless, grew(3.0), grew(90.0), grew(5.0))
    assert join_time(past, 10.0) == JoinTime(seconds=5.0, origin="measured")


@pytest.mark.parametrize(
    ("master", "known"),
    [
        ("spark://10.0.0.1:7077", True),
        ("local-cluster[2,1,1024]", True),
        ("yarn", True),
        ("k8s://https://10.0.0.1:6443", True),
        ("local[4]", False),
        ("local", False),
        ("elsewhere://x", False),
        ("", False),
    ],
)
def test_what_is_assumed_depends_on_the_cluster_manager(master: str, known: bool) -> None:
    assert (usual_join(master) is not None) == known


def test_a_change_of_a_wide_pool_says_how_many_cores() -> None:
    seen = healthy(shared=True)
    operators = {n: replace(o, partitions=10) for n, o in seen.pipeline.operators.items()}
    shape = replace(seen.pipeline, operators=operators, slot_tasks={"all": 4})

    class Wants(Listening):
        def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
            return Proposal(pool_needs={"all": Need(slots=40.0)}, reason="much"), memory

    decision, _ = plan(Wants(), Guards(step_up=2), replace(seen, pipeline=shape), State())
    assert decision.targets["all"] == Change(before=4, slots=3, raw=40.0)
    assert "3 slots of 4 cores work on all partitions at once" in decision.explain()
