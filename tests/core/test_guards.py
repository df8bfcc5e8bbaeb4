"""Each guard in a named scenario, and limits that hold whatever is proposed."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.core.guards import Blackout, Effect, Guards
from penstock.core.loop import Decision, State
from penstock.core.model import (
    Change,
    Need,
    OperatorSeen,
    Placement,
    Proposal,
    Slot,
    Snapshot,
)
from penstock.core.pipeline import Operator, Pipeline
from penstock.core.sizing import shrunk
from tests.fakes.scenarios import NAMES, healthy, pipeline, with_all


def decide(
    guards: Guards, needs: dict[str, float], seen: Snapshot, last_action: float | None = None
) -> tuple[dict[str, int], list[str]]:
    proposal = Proposal(needs={n: Need(slots=s) for n, s in needs.items()}, reason="test")
    targets, effects = guards.apply(proposal, seen, last_action)
    return {p: c.slots for p, c in targets.items()}, [e.guard for e in effects]


def test_needs_of_a_shared_pool_are_summed_and_rounded_up_once() -> None:
    targets, effects = decide(
        Guards(), {"source": 0.3, "map": 0.4, "sink": 0.2}, healthy(shared=True)
    )
    assert targets == {"all": 1}
    assert effects == []


def test_an_operator_without_a_need_keeps_its_share() -> None:
    targets, _ = decide(Guards(), {"map": 3.0}, healthy(shared=True, slots=6))
    assert targets == {"all": 7}  # 2 + 3 + 2


def test_a_whole_number_computed_with_rounding_error_is_not_rounded_up() -> None:
    targets, _ = decide(Guards(), {"map": 3.0000000000004}, healthy())
    assert targets["map"] == 3


def test_a_pools_own_need_wins() -> None:
    proposal = Proposal(
        needs={"map": Need(slots=9)}, pool_needs={"map": Need(slots=2)}, reason="test"
    )
    targets, _ = Guards().apply(proposal, healthy(), None)
    assert targets["map"].slots == 2


@pytest.mark.parametrize(
    ("name", "guards", "need", "slots", "effect"),
    [
        ("maximum", Guards(maximum=6), 50.0, 6, ["bounds"]),
        ("minimum", Guards(minimum=2), 0.1, 2, ["bounds"]),
        ("step up", Guards(step_up=3), 50.0, 7, ["step-limit"]),
        ("step down", Guards(step_down=1), 1.0, 3, ["step-limit"]),
        ("within tolerance", Guards(tolerance=0.1), 4.3, 4, ["tolerance"]),
        ("outside tolerance", Guards(tolerance=0.1), 4.5, 5, []),
        ("over-provisioning", Guards(over_provisioning=1.5), 4.0, 6, []),
    ],
)
def test_guards_on_one_pool(
    name: str, guards: Guards, need: float, slots: int, effect: list[str]
) -> None:
    targets, effects = decide(guards, {"map": need}, healthy())
    assert (targets["map"], effects) == (slots, effect), name


def test_slots_beyond_the_partitions_are_refused() -> None:
    seen = healthy()
    shape = pipeline(partitions=5)
    targets, effects = decide(Guards(), {"map": 9.0}, replace(seen, pipeline=shape))
    assert (targets["map"], effects) == (5, ["useful-parallelism"])
    targets, _ = decide(Guards(useful=False), {"map": 9.0}, replace(seen, pipeline=shape))
    assert targets["map"] == 9


def test_no_scale_down_while_the_backlog_drains() -> None:
    guards = Guards(drain=30.0)
    behind = with_all(healthy(), lag=40_000.0)  # 40 s of input
    targets, effects = decide(guards, {"map": 2.0}, behind)
    assert (targets["map"], effects) == (4, ["drain"])
    assert decide(guards, {"map": 6.0}, behind)[0]["map"] == 6
    assert decide(guards, {"map": 2.0}, with_all(healthy(), lag=20_000.0))[0]["map"] == 2


def test_proportional_shrink_at_the_cap_is_the_thesis_example() -> None:
    needs = {"source": 10.0, "map": 30.0, "sink": 20.0}
    targets, effects = decide(Guards(cap=30), needs, healthy())
    assert targets == {"source": 5, "map": 15, "sink": 10}
    assert effects == ["cap"] * 3


def test_cancel_at_the_cap_lets_nothing_grow() -> None:
    needs = {"source": 2.0, "map": 30.0, "sink": 4.0}
    targets, effects = decide(Guards(cap=30, at_cap="cancel"), needs, healthy())
    assert targets == {"source": 2, "map": 4, "sink": 4}
    assert effects == ["cap"]


def test_a_pool_that_was_not_sized_pays_nothing_for_the_cap() -> None:
    targets, _ = decide(Guards(cap=20), {"map": 30.0, "sink": 30.0}, healthy())
    assert targets == {"source": 4, "map": 8, "sink": 8}


def test_cool_down_starts_with_the_action() -> None:
    guards = Guards(cool_down=300.0)
    targets, effects = decide(guards, {"map": 9.0}, healthy(time=1299.0), last_action=1000.0)
    assert (targets["map"], effects) == (4, ["cool-down"])
    targets, effects = decide(guards, {"map": 9.0}, healthy(time=1300.0), last_action=1000.0)
    assert (targets["map"], effects) == (9, [])


def test_nothing_changes_while_an_action_is_in_flight() -> None:
    targets, effects = decide(Guards(), {"map": 9.0}, replace(healthy(), acting=True))
    assert (targets["map"], effects) == (4, ["in-flight"])


@pytest.mark.parametrize(
    ("text", "hour", "held"),
    [("08:00-18:00", 12, True), ("08:00-18:00", 19, False), ("22:00-06:30", 23, True),
     ("22:00-06:30", 6, True), ("22:00-06:30", 7, False)],
)  # fmt: skip
def test_blackout_windows(text: str, hour: int, held: bool) -> None:
    guards = Guards(blackouts=(Blackout.parse(text),))
    seen = healthy(time=5 * 86400.0 + hour * 3600.0)
    targets, effects = decide(guards, {"map": 9.0}, seen)
    assert (targets["map"] == 4) is held
    assert ("blackout" in effects) is held


def test_the_minimum_forces_no_slot_on_a_pool_that_could_not_use_it() -> None:
    seen = healthy()
    operators = {**seen.pipeline.operators, "map": Operator(pool="map", partitions=4)}
    narrow = replace(seen, pipeline=Pipeline(operators=operators, edges=seen.pipeline.edges))
    targets, effects = decide(Guards(minimum=6), {}, narrow)
    assert targets == {"source": 6, "map": 4, "sink": 6}
    assert set(effects) == {"bounds"}
    targets, _ = decide(Guards(minimum=6, useful=False), {}, narrow)
    assert targets == dict.fromkeys(NAMES, 6)


def test_a_pool_outside_its_bounds_is_brought_back_without_a_proposal() -> None:
    targets, effects = decide(Guards(maximum=3, cool_down=60.0), {}, healthy(), last_action=999.0)
    assert targets == dict.fromkeys(NAMES, 3)
    assert set(effects) == {"bounds"}


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"minimum": 5, "maximum": 3}, "minimum 5 is above maximum 3"),
        ({"minimum": 0}, "minimum 0"),
        ({"step_up": 0}, "step_up 0"),
        ({"cool_down": -1.0}, "cool_down -1.0"),
        ({"tolerance": float("nan")}, "tolerance nan"),
        ({"over_provisioning": 0.0}, "over_provisioning 0.0"),
        ({"at_cap": "crash"}, "at_cap 'crash'"),
    ],
)
def test_bad_guards_are_refused_with_the_value(kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Guards(**kwargs)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "8-18", "08:00", "25:00-26:00", "08:70-09:00", "08:00-08:00"])
def test_bad_blackouts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="blackout"):
        Blackout.parse(text)


@given(
    needs=st.dictionaries(st.sampled_from(NAMES), st.floats(0, 1e12), max_size=3),
    before=st.integers(1, 60),
    minimum=st.integers(1, 10),
    room=st.integers(0, 50),
    step=st.none() | st.integers(1, 20),
    cap_room=st.none() | st.integers(0, 60),
)
def test_limits_hold_whatever_is_proposed(
    needs: dict[str, float],
    before: int,
    minimum: int,
    room: int,
    step: int | None,
    cap_room: int | None,
) -> None:
    maximum = minimum + room
    cap = None if cap_room is None else 3 * minimum + cap_room
    guards = Guards(minimum=minimum, maximum=maximum, step_up=step, cap=cap)
    targets, _ = decide(guards, needs, healthy(slots=before))
    assert all(minimum <= slots <= maximum for slots in targets.values())
    if cap is not None and len(needs) == 3:
        assert sum(targets.values()) <= cap


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.booleans())
def test_more_need_never_means_fewer_slots(a: float, b: float, shared: bool) -> None:
    low, high = sorted((a, b))
    guards = Guards(maximum=50, step_up=15, tolerance=0.0, over_provisioning=1.2)
    seen = healthy(shared=shared)
    pool = "all" if shared else "map"
    assert (
        decide(guards, {"map": low}, seen)[0][pool] <= decide(guards, {"map": high}, seen)[0][pool]
    )


def test_slots_named_for_removal_reach_the_change() -> None:
    seen = healthy()
    proposal = Proposal(
        needs={"map": Need(slots=3)}, place={"map": Placement(remove=("map-2",))}, reason="test"
    )
    targets, _ = Guards().apply(proposal, seen, None)
    assert targets["map"].remove == ("map-2",)


VALUES = [
    Operator(pool="p", partitions=4),
    OperatorSeen(parallelism=2.0, busy=0.5),
    Slot(id="1", node="far"),
    Snapshot(time=1.0, window=15.0, pipeline=pipeline(), operators={}, pools={}),
    Need(slots=1.5),
    Placement(add_on=("n",)),
    Proposal(reason="test", needs={"map": Need(slots=2.0)}),
    Change(before=1, slots=2, raw=1.5),
    Effect(guard="cap", pool="map", before=3.0, after=2.0, why="test"),
    State(memory={"a": [1]}, last_seen=1.0),
    Decision(seen=healthy(), proposal=Proposal(reason="test"), notes=("odd",)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_frozen_comparable_and_copyable(value: Any) -> None:
    fields = dataclasses.fields(value)
    for f in fields:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, f.name, None)
    with pytest.raises((AttributeError, TypeError)):
        value.something_else = 1  # slots: no other field
    kind = type(value)
    again = kind(**{f.name: getattr(value, f.name) for f in fields})
    for same in (
        again,
        replace(value),
        copy.copy(value),
        copy.deepcopy(value),
        pickle.loads(pickle.dumps(value)),
    ):
        assert same == value and type(same) is kind and repr(same) == repr(value)
    with pytest.raises(TypeError, match="positional"):
        kind(1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        kind(nonsense=1)
    parameters = inspect.signature(kind).parameters
    assert list(parameters) == [f.name for f in fields]


def test_defaults_of_a_proposal_are_its_own() -> None:
    one, two = Proposal(reason="a"), Proposal(reason="a")
    assert one == two and one.needs is not two.needs
    with pytest.raises(TypeError, match="reason"):
        Proposal()  # type: ignore[call-arg]


@given(
    planned=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    minimum=st.integers(1, 3),
    spare=st.integers(0, 100),
)
def test_shrinking_takes_what_is_too_much_from_the_largest(
    planned: list[int], minimum: int, spare: int
) -> None:
    """Against the rule written down naively, with a search for the largest each time."""
    sizes = {f"p{i}": max(slots, minimum) for i, slots in enumerate(planned)}
    floor, total = minimum * len(sizes), sum(sizes.values())
    room = min(floor + spare, total - 1)
    if room < floor:
        return
    expected = {
        pool: minimum + round((room - floor) / (total - floor) * (slots - minimum))
        for pool, slots in sizes.items()
    }
    while sum(expected.values()) > room:
        largest = next(p for p, slots in expected.items() if slots == max(expected.values()))
        expected[largest] -= 1
    assert shrunk(sizes, room, minimum) == expected
    assert sum(expected.values()) <= room
    assert all(minimum <= expected[pool] <= slots for pool, slots in sizes.items())


@pytest.mark.parametrize(
    ("slots", "place", "limits", "expected"),
    [
        (6.0, Placement(add_on=("a", "b")), {}, (("a", "b"), ())),
        (6.0, Placement(add_on=("a", "b")), {"step_up": 1}, (("a",), ())),
        (6.0, Placement(add_on=("a", "b")), {"maximum": 4}, ((), ())),
        (6.0, Placement(add_on=("a",)), {}, (("a",), ())),
        (2.0, Placement(remove=("x", "y")), {}, ((), ("x", "y"))),
        (2.0, Placement(remove=("x", "y")), {"step_down": 1}, ((), ("x",))),
        (4.0, Placement(add_on=("a",), remove=("x",)), {}, (("a",), ("x",))),
    ],
)
def test_named_nodes_and_slots_follow_what_the_guards_leave(
    slots: float,
    place: Placement,
    limits: dict[str, Any],
    expected: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    seen = healthy(slots=4)
    pool = seen.pipeline.pools[0]
    proposal = Proposal(reason="", pool_needs={pool: Need(slots=slots)}, place={pool: place})
    targets, _ = Guards(**limits).apply(proposal, seen, None)
    assert (targets[pool].add_on, targets[pool].remove) == expected
