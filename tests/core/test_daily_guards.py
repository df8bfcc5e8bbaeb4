"""Executors that are not taken from queries that would be harmed: by hand, and whatever comes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.codec import from_json, to_json
from penstock.core.findings import Finding, FindingKind, TriggerKind, sentence_of
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.core.model import Need, Proposal, QuerySeen, Snapshot
from penstock.core.sanity import believable
from penstock.policies import Static
from tests.fakes.scenarios import healthy

KINDS: tuple[TriggerKind, ...] = get_args(TriggerKind)
FINDINGS: tuple[FindingKind, ...] = get_args(FindingKind)


def seen(*queries: QuerySeen, unmeasured: tuple[str, ...] = (), shared: bool = True) -> Snapshot:
    """Four slots."""
    named = {f"q{i}": q for i, q in enumerate(queries)}
    return replace(healthy(shared=shared), queries=named, unmeasured=unmeasured)


def query(kind: TriggerKind | None = None, held: float | None = None) -> QuerySeen:
    return QuerySeen(batches=3, rows=100, trigger_kind=kind, held_slots=held)


def decided(
    guards: Guards, need: float | None, look: Snapshot, last_action: float | None = None
) -> tuple[int, list[str]]:
    needs = {} if need is None else {"all": Need(slots=need)}
    proposal = Proposal(pool_needs=needs, reason="test")
    targets, effects = guards.apply(proposal, look, last_action)
    return targets["all"].slots, [e.guard for e in effects]


@pytest.mark.parametrize(
    ("overdue", "slots", "bound"), [(None, 1, []), (20.0, 1, []), (31.0, 4, ["drain"])]
)
def test_no_scale_down_while_a_batch_takes_up_a_backlog(
    overdue: float | None, slots: int, bound: list[str]
) -> None:
    look = seen(replace(query("asap"), overdue=overdue))
    assert decided(Guards(drain=30.0), 1.0, look) == (slots, bound)
    assert decided(Guards(drain=30.0), 7.0, look) == (7, [])


@pytest.mark.parametrize(
    ("case", "look", "need", "slots", "guards"),
    [
        ("a backfill is not shrunk", seen(query("available-now")), 1.0, 4, ["backfill"]),
        ("nor a single batch", seen(query("once")), 1.0, 4, ["backfill"]),
        ("nor beside others", seen(query("asap"), query("once")), 1.0, 4, ["backfill"]),
        ("but it may grow", seen(query("available-now")), 7.0, 7, []),
        ("others shrink", seen(query("interval"), query("asap"), query()), 1.0, 1, []),
        ("not beside the unknown", seen(query(), unmeasured=("new",)), 1.0, 4, ["unmeasured"]),
        ("which may grow", seen(query(), unmeasured=("new",)), 5.0, 5, []),
        ("tasks hold three", seen(query("real-time", 3.0)), 1.0, 3, ["real-time"]),
        ("more than there are", seen(query("real-time", 5.5)), 1.0, 6, ["real-time"]),
        ("whatever is said", seen(query("real-time", 6.0)), None, 6, ["real-time"]),
        ("two such", seen(query("real-time", 3.0), query("real-time", 2.0)), 1, 5, ["real-time"]),
        ("one for the rest", seen(query("real-time", 3.0), query("asap")), 1, 4, ["real-time"]),
        ("how many is not known", seen(query("real-time")), 1.0, 4, ["real-time"]),
        ("nor up", seen(query("real-time")), 7.0, 4, ["real-time"]),
        ("of one of two", seen(query("real-time", 2.0), query("real-time")), 1, 4, ["real-time"]),
        ("more than allowed", seen(query("real-time", 9.0)), 2.0, 4, ["real-time"]),
        ("nothing wanted", seen(query("real-time")), 4.0, 4, []),
    ],
)  # fmt: skip
def test_what_is_kept(
    case: str, look: Snapshot, need: float | None, slots: int, guards: list[str]
) -> None:
    assert decided(Guards(maximum=8), need, look) == (slots, guards), case


def test_in_several_pools_it_is_not_known_whose_tasks_they_are() -> None:
    look = seen(query("real-time", 1.0), shared=False)
    proposal = Proposal(pool_needs={"map": Need(slots=9)}, reason="test")
    targets, effects = Guards().apply(proposal, look, None)
    assert targets["map"].slots == 4
    assert {e.guard for e in effects} == {"real-time"}


def test_the_limits_of_the_user_hold_over_a_backfill() -> None:
    look = seen(query("available-now"))
    assert decided(Guards(maximum=2), 1.0, look) == (2, ["backfill", "bounds"])


def test_a_cap_below_what_tasks_hold_leaves_advice() -> None:
    assert decided(Guards(maximum=8, cap=5), 2.0, seen(query("real-time", 6.0)))[0] == 4


QUERIES = st.lists(
    st.builds(
        query,
        st.sampled_from([*KINDS, None]),
        st.none() | st.floats(allow_nan=True, allow_infinity=True),
    ),
    min_size=1,
    max_size=4,
)


@given(QUERIES, st.floats(0.0, 50.0), st.integers(1, 10), st.lists(st.just("new"), max_size=1))
def test_whatever_is_told_limits_hold_and_nobody_is_harmed(
    queries: list[QuerySeen], need: float, maximum: int, unmeasured: list[str]
) -> None:
    look, _ = believable(seen(*queries, unmeasured=tuple(unmeasured)))
    slots, _ = decided(Guards(maximum=maximum), need, look)
    lived = [q for q in look.queries.values() if q.trigger_kind in ("real-time", "continuous")]
    if slots != 4:  # something is done
        assert 1 <= slots <= maximum
        assert all(q.held_slots is not None for q in lived)
        assert slots >= sum(q.held_slots or 0.0 for q in lived)
    if unmeasured or any(q.trigger_kind in ("available-now", "once") for q in queries):
        assert slots >= min(4, maximum)


@pytest.mark.parametrize("word", ["", "hourly", "REAL-TIME", 7, float("nan")])
def test_a_trigger_that_is_not_known_is_not_measured(word: Any) -> None:
    found, notes = believable(seen(query(word, 3.0)))
    assert found.queries["q0"].trigger_kind is None
    assert len(notes) == 1


@pytest.mark.parametrize("held", [-1.0, float("nan"), float("inf")])
def test_absurd_slots_leave_advice(held: float) -> None:
    decision, _ = plan(Static(slots=1), Guards(), seen(query("real-time", held)), State())
    assert decision.changes == {}
    assert [e.guard for e in decision.effects] == ["real-time"]


def test_a_journal_keeps_them_and_one_of_before_has_none() -> None:
    finding = Finding(kind="hot-partition", query="q", stage="join", partition=7, seconds=9.5)
    look = replace(seen(query("real-time", 3.0), unmeasured=("new",)), findings=(finding,))
    written = json.loads(json.dumps(to_json(look)))
    assert from_json(Snapshot, written) == look
    for key in ("unmeasured", "findings"):
        del written[key]
    for key in ("trigger_kind", "held_slots"):
        del written["queries"]["q0"][key]
    old = from_json(Snapshot, written)
    assert (old.unmeasured, old.findings) == ((), ())
    assert old.queries["q0"].trigger_kind is None


@pytest.mark.parametrize("kind", FINDINGS)
def test_every_finding_has_a_sentence_of_its_own(kind: FindingKind) -> None:
    full = Finding(
        kind=kind, query="orders", batch=3, seconds=61.4, whole=80.0, tasks=200, tasks_ended=34,
        stage="join", partition=7, share=0.04, place="walCommit", slots=2.5,
    )  # fmt: skip
    said = sentence_of(full)
    assert "None" not in said
    assert said.startswith("orders: ") == (kind != "no-query")
    assert said not in {sentence_of(replace(full, kind=k)) for k in FINDINGS if k != kind}
