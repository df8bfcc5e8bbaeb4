"""The loop: modes, faults, explanations, and a journal that replays."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError, NotReady
from penstock.core.guards import Guards
from penstock.core.loop import Decision, Loop, State, plan
from penstock.core.model import (
    Change,
    Need,
    OperatorSeen,
    Proposal,
    QuerySeen,
    Slot,
    Snapshot,
    SourceSeen,
)
from penstock.core.pipeline import Operator, Pipeline
from penstock.core.sanity import believable
from penstock.history.journal import Header, Journal, read, replay
from penstock.policies import DS2, HpaCpu, create
from penstock.report.series import ticks_of
from tests.fakes.scenarios import NAMES, healthy, with_all

NUMBERS = [f.name for f in fields(OperatorSeen) if f.default is None and f.name != "arrivals"]


@dataclass
class ScriptedEngine:
    """Shows given snapshots one after the other and remembers what was asked of it."""

    snapshots: list[Snapshot]
    asked: list[dict[str, int]] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)

    def observe(self) -> Snapshot:
        seen = self.snapshots.pop(0)
        pools = {
            p: tuple(Slot(id=str(i)) for i in range(self.sizes.get(p, len(slots))))
            for p, slots in seen.pools.items()
        }
        return replace(seen, pools=pools)

    def apply(self, changes: Mapping[str, Change]) -> None:
        self.asked.append({p: c.slots for p, c in changes.items()})
        self.sizes |= self.asked[-1]

    def advance(self, seconds: float) -> bool:
        return bool(self.snapshots)


@dataclass(frozen=True)
class Broken:
    def start(self, seed: int) -> None:
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        raise RuntimeError("out of ideas")


def loads(*rates: float) -> list[Snapshot]:
    return [with_all(healthy(time=1000.0 + 15.0 * i), offered_rate=r) for i, r in enumerate(rates)]


def test_advise_is_the_default_and_touches_nothing() -> None:
    engine = ScriptedEngine(loads(4000.0, 4000.0))
    loop = Loop(engine, DS2(), Guards())
    decision = loop.tick()
    assert decision.changes["map"].slots == 12
    assert not decision.applied
    assert engine.asked == []


def test_act_applies_and_then_cools_down() -> None:
    engine = ScriptedEngine(loads(4000.0, 8000.0, 8000.0))
    loop = Loop(engine, DS2(), Guards(cool_down=30.0), mode="act")
    loop.run(period=15.0, ticks=10)
    assert engine.asked == [
        {"source": 12, "map": 12, "sink": 12},
        {"source": 24, "map": 24, "sink": 24},
    ]


class Starting(ScriptedEngine):
    """Has measured nothing when it is first looked at."""

    looks = 0

    def observe(self) -> Snapshot:
        self.looks += 1
        if self.looks == 1:
            raise NotReady("no batch has ended yet")
        return super().observe()


def test_before_the_first_measurement_there_is_nothing_to_decide() -> None:
    decisions: list[Decision] = []
    engine = Starting(loads(1.0, 1.0))
    loop = Loop(engine, DS2(), Guards(), record=lambda decision, _: decisions.append(decision))
    loop.run(period=15.0, ticks=9)
    assert (engine.looks, len(decisions)) == (3, 2)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InputError, match="mode 'auto'"):
        Loop(ScriptedEngine([]), DS2(), Guards(), mode="auto")  # type: ignore[arg-type]


def test_a_policy_that_raises_changes_nothing_and_says_so() -> None:
    decision, state = plan(Broken(), Guards(), healthy(), State(memory={"kept": 1}))
    assert decision.changes == {}
    assert "RuntimeError: out of ideas" in decision.explain()
    assert state.memory == {"kept": 1}


def test_the_explanation_names_sizes_raw_figure_and_guard() -> None:
    decision, _ = plan(DS2(), Guards(step_up=2), with_all(healthy(), offered_rate=4000.0), State())
    line = decision.explain()
    assert "map 4→6" in line
    assert "raw 12.00" in line
    assert "step-limit 12→6: at most +2 per action" in line


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, 1e300])
def test_a_reading_that_cannot_be_true_is_not_shown_to_the_policy(field: str, bad: float) -> None:
    seen = healthy()
    broken = replace(seen.operators["source"], **{field: bad})  # type: ignore[arg-type]
    believed, notes = believable(replace(seen, operators={**seen.operators, "source": broken}))
    assert getattr(believed.operators["source"], field) is None
    assert [note.split(" = ")[0] for note in notes] == [f"source: {field}"]
    assert believable(seen) == (seen, ())


@pytest.mark.parametrize(
    ("field", "value", "good"),
    [
        ("cpu", 1.9, True), ("cpu", 2.1, False), ("cpu", 0.0, False),
        ("busy", 1.04, True), ("busy", 1.06, False), ("busy", 0.0, True),
        ("service_rate", 0.0, False), ("arrival_rate", 0.0, True), ("lag", 1e14, True),
    ],
)  # fmt: skip
def test_where_belief_ends(field: str, value: float, good: bool) -> None:
    seen = with_all(healthy(), **{field: value})
    assert (believable(seen)[1] == ()) is good


@pytest.mark.parametrize(
    ("slot", "good"),
    [
        (Slot(id="1"), True),
        (Slot(id="1", cpu=0.5), True),
        (Slot(id="1", load=0.0), True),
        (Slot(id="1", cpu=0.0), False),
        (Slot(id="1", load=math.nan), False),
    ],
)
def test_slots_are_believed_one_by_one(slot: Slot, good: bool) -> None:
    seen = healthy(shared=True)
    seen = replace(seen, pools={"all": (Slot(id="0", cpu=0.4, load=0.5), slot)})
    believed, notes = believable(seen)
    assert (notes == ()) is good
    assert believed.pools["all"][0] == seen.pools["all"][0]
    assert believed.pools["all"][1] == (slot if good else Slot(id="1"))


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, 1e300])
@pytest.mark.parametrize("field", ["lag", "lag_seconds", "partitions"])
def test_sources_that_cannot_be_true_are_not_shown(field: str, bad: float) -> None:
    value: Any = {"t-0": bad} if field == "partitions" else bad
    good = QuerySeen(batches=1, rows=1, lag=5.0, sources=(SourceSeen(name="t", lag=5.0),))
    broken = replace(good, sources=(replace(good.sources[0], **{field: value}),))
    seen = replace(healthy(), queries={"good": good, "broken": broken})
    believed, notes = believable(seen)
    assert believed.queries == {"good": good, "broken": replace(good, sources=())}
    assert [note.split(" = ")[0] for note in notes] == ["broken: sources"]


def test_an_infinite_need_is_not_a_need() -> None:
    @dataclass(frozen=True)
    class Endless(Broken):
        def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
            return Proposal(needs={"map": Need(slots=float("inf"))}, reason="busy was 0"), None

    decision, _ = plan(Endless(), Guards(), healthy(), State())
    assert decision.changes == {}


@dataclass(frozen=True)
class Restless:
    """Wants another size whenever it is asked; remembers when it was."""

    def start(self, seed: int) -> list[float]:
        return []

    def decide(self, seen: Snapshot, memory: list[float]) -> tuple[Proposal, list[float]]:
        needs = {"map": Need(slots=float(4 + (seen.slots("map") == 4)))}
        return Proposal(needs=needs, reason="restless"), [*memory, seen.time]


def acted_at(guards: Guards) -> tuple[list[float], Loop, list[Decision]]:
    """When a restless policy acts in 64 ticks of 15 s from time 1000 on."""
    made: list[Decision] = []
    engine = ScriptedEngine([healthy(time=1000.0 + 15.0 * i) for i in range(64)])
    loop = Loop(
        engine, Restless(), guards, mode="act", record=lambda decision, _: made.append(decision)
    )
    loop.run(period=15.0, ticks=64)
    return [d.seen.time for d in made if d.applied], loop, made


def test_a_loop_that_sleeps_acts_every_315_seconds() -> None:
    assert acted_at(Guards(cool_down=300.0))[0] == [1000.0, 1300.0, 1600.0, 1900.0]
    assert acted_at(Guards(cool_down=300.0, sleep=True))[0] == [1000.0, 1315.0, 1630.0, 1945.0]


def test_a_sleeping_loop_does_not_ask_the_policy() -> None:
    times, loop, made = acted_at(Guards(cool_down=300.0, sleep=True))
    assert loop.state.memory == times  # asked only when it could act
    assert loop.state.last_seen == 1945.0
    assert len(acted_at(Guards(cool_down=300.0))[1].state.memory) == len(made) == 64


def test_a_sleeping_decision_keeps_every_size_and_says_how_long() -> None:
    state = State(memory={"kept": 1}, last_seen=1000.0, last_action=1000.0)
    guards = Guards(cool_down=300.0, sleep=True)
    decision, after = plan(Broken(), guards, healthy(time=1015.0), state)
    assert {p: (c.before, c.slots, c.raw) for p, c in decision.targets.items()} == dict.fromkeys(
        NAMES, (4, 4, 4.0)
    )
    assert decision.changes == {} and decision.effects == ()
    assert "no change: asleep, 285 s of the cool-down left" in decision.explain()
    assert after == replace(state, last_seen=1015.0)
    decision, _ = plan(Broken(), guards, healthy(time=1300.0), state)
    assert "asleep, 0 s" in decision.proposal.reason
    decision, _ = plan(Broken(), guards, healthy(time=1300.5), state)
    assert "out of ideas" in decision.proposal.reason


def test_a_sleeping_loop_still_brings_a_pool_back_into_its_bounds() -> None:
    guards = Guards(maximum=3, cool_down=300.0, sleep=True)
    state = State(last_action=1000.0)
    decision, _ = plan(Broken(), guards, healthy(time=1015.0), state)
    assert {p: c.slots for p, c in decision.changes.items()} == dict.fromkeys(NAMES, 3)
    assert {e.guard for e in decision.effects} == {"bounds"}
    decision, _ = plan(Broken(), guards, replace(healthy(time=1015.0), acting=True), state)
    assert decision.changes == {}


def test_without_an_action_there_is_nothing_to_sleep_off() -> None:
    guards = Guards(cool_down=300.0, sleep=True)
    loop = Loop(ScriptedEngine(loads(900.0, 900.0, 900.0)), Restless(), guards)  # only advises
    loop.run(period=15.0, ticks=3)
    assert loop.state.memory == [1000.0, 1015.0, 1030.0]


def test_one_query_does_not_vouch_for_another() -> None:
    """The figures of one are 150 s old; only the other is sized, and a note says so."""
    both = Pipeline(
        operators={
            name: Operator(pool="executors") for name in ("old/read", "new/read", "new/count")
        },
        edges=(("new/read", "new/count"),),
    )
    busy = OperatorSeen(parallelism=1.0, offered_rate=100.0, arrival_rate=100.0, service_rate=10.0)
    seen = Snapshot(
        time=1000.0,
        window=15.0,
        pipeline=both,
        operators={"old/read": busy, "new/read": busy, "new/count": busy},
        pools={"executors": tuple(Slot(id=str(i)) for i in range(3))},
        queries={
            "old": QuerySeen(batches=1, rows=1, age=150.0),
            "new": QuerySeen(batches=1, rows=1, age=2.0),
        },
        execution="micro-batch",
    )
    decision, _ = plan(DS2(over_provisioning=1.0), Guards(), seen, State())
    assert set(decision.proposal.needs) == {"new/read", "new/count"}
    assert decision.targets["executors"].slots == 1 + 10 + 10  # the old one keeps what it has
    assert "old: its figures are 150 s old, at most 120 s allowed" in decision.explain()
    young = replace(seen, queries={n: replace(q, age=2.0) for n, q in seen.queries.items()})
    assert (
        plan(DS2(over_provisioning=1.0), Guards(), young, State())[0].targets["executors"].slots
        == 30
    )


def test_a_stale_snapshot_is_stale_in_sleep_too() -> None:
    state = State(last_seen=1015.0, last_action=1000.0)
    guards = Guards(cool_down=300.0, sleep=True)
    decision, after = plan(Broken(), guards, healthy(time=1015.0), state)
    assert "stale" in decision.explain() and after == state


def journal_of(
    path: Path, policy: Any, snapshots: list[Snapshot], guards: Guards
) -> list[Decision]:
    made: list[Decision] = []
    header = Header(policy="x", guards=guards, mode="act", seed=3, period=15.0)
    with Journal(path, header) as journal:

        def record(decision: Decision, state: State) -> None:
            journal.record(decision, state)
            made.append(decision)

        engine = ScriptedEngine(snapshots)
        Loop(engine, policy, guards, mode="act", seed=3, record=record).run(period=15.0, ticks=99)
    return made


@pytest.mark.parametrize("sleep", [False, True])
@pytest.mark.parametrize("policy", [DS2(), HpaCpu(), create("static", {"slots": 3}), Restless()])
def test_a_journal_replays_to_the_same_decisions(tmp_path: Path, policy: Any, sleep: bool) -> None:
    guards = Guards(cool_down=40.0, tolerance=0.1, step_up=5, sleep=sleep)
    made = journal_of(
        tmp_path / "j", policy, loads(900, 4000, 4100, 0, 900, 800, 7000, 500, 500), guards
    )
    header, entries = read(tmp_path / "j")
    assert header.guards == guards
    assert [e.decision for e in entries] == made
    again = replay(entries, policy, header.guards, header.seed)
    assert [d.proposal for d in again] == [d.proposal for d in made]
    assert [d.targets for d in again] == [d.targets for d in made]
    slept = any("asleep" in d.proposal.reason for d in again)
    assert slept is (sleep and any(d.applied for d in made))
    for tick in ticks_of(entries):  # a report can be made of it, asleep or not
        assert tick.target_total is not None
        assert tick.target_total == tick.total or tick.news


def test_a_torn_last_line_is_left_out_and_any_other_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal_of(path, DS2(), loads(900, 4000), Guards())
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1][:40]]))
    assert len(read(path)[1]) == 1
    path.write_text("\n".join([lines[0], lines[1][:40], lines[2]]))
    with pytest.raises(InputError, match="line 2"):
        read(path)
    path.write_text("")
    with pytest.raises(InputError, match="empty"):
        read(path)
    with pytest.raises(InputError, match="no journal at"):
        read(tmp_path / "none")


def test_a_reason_may_hold_any_character(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Odd(Broken):
        def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
            return Proposal(reason="a\u2028b\u0085c\nd\x00</script>"), None

    made = journal_of(tmp_path / "j", Odd(), loads(900), Guards())
    assert [e.decision for e in read(tmp_path / "j")[1]] == made


def test_unknown_keys_are_refused_when_reading() -> None:
    document = to_json(healthy())
    assert from_json(Snapshot, json.loads(json.dumps(document))) == healthy()
    with pytest.raises(InputError, match=r"unknown key of Snapshot 'tme'; did you mean 'time'"):
        from_json(Snapshot, {**document, "tme": 3})
