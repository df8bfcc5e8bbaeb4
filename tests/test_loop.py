"""The loop: modes, faults, explanations, and a journal that replays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.journal import Header, Journal, read, replay
from penstock.core.loop import Decision, Loop, State, plan
from penstock.core.model import Change, Need, Proposal, Slot, Snapshot
from penstock.policies import DS2, HpaCpu, create
from tests.scenarios import healthy, with_all


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


def test_an_infinite_need_is_not_a_need() -> None:
    @dataclass(frozen=True)
    class Endless(Broken):
        def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
            return Proposal(needs={"map": Need(slots=float("inf"))}, reason="busy was 0"), None

    decision, _ = plan(Endless(), Guards(), healthy(), State())
    assert decision.changes == {}


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


@pytest.mark.parametrize("policy", [DS2(), HpaCpu(), create("static", {"slots": 3})])
def test_a_journal_replays_to_the_same_decisions(tmp_path: Path, policy: Any) -> None:
    guards = Guards(cool_down=40.0, tolerance=0.1, step_up=5)
    made = journal_of(
        tmp_path / "j", policy, loads(900, 4000, 4100, 0, 900, 800, 7000, 500, 500), guards
    )
    header, entries = read(tmp_path / "j")
    assert header.guards == guards
    assert [e.decision for e in entries] == made
    again = replay(entries, policy, header.guards, header.seed)
    assert [d.proposal for d in again] == [d.proposal for d in made]
    assert [d.targets for d in again] == [d.targets for d in made]


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
