"""Where slots are added and which leave, by what a change names and by rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import EngineError
from penstock.core.model import Change
from penstock.lab.sites.engine import moves
from tests.fakes.spark import executor

ROOM = {"home": 1, "near": 2, "far": 0}
ALIVE = [executor(0, added=10.0), executor(1, added=30.0), executor(2, added=50.0)]
SITE_OF = {"0": "home", "1": "near", "2": "far"}


def plan(
    slots: int, add_on: tuple[str, ...] = (), remove: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    change = Change(before=3, slots=slots, raw=float(slots), add_on=add_on, remove=remove)
    made = moves(change, ALIVE, site_of=SITE_OF, room=ROOM)
    return made.add, made.remove


@pytest.mark.parametrize(
    ("name", "made", "expected"),
    [
        ("nothing", plan(3), ((), ())),
        ("named", plan(4, ("near",)), (("near",), ())),
        ("the rest by rule, home first", plan(5, ("near",)), (("near", "home"), ())),
        ("none named", plan(6), (("home", "near", "near"), ())),
        ("named to leave", plan(2, (), ("0",)), ((), ("0",))),
        ("the newest leave", plan(1), ((), ("2", "1"))),
        ("named and more", plan(1, (), ("0",)), ((), ("0", "2"))),
        ("a move", plan(3, ("near",), ("0",)), (("near",), ("0",))),
        ("a move to where room is made", plan(3, ("far",), ("2",)), (("far",), ("2",))),
        ("replaced by rule", plan(3, (), ("0",)), (("home",), ("0",))),
        ("one in, who leaves by rule", plan(3, ("near",)), (("near",), ("2",))),
        ("those who are gone already", plan(3, (), ("9",)), ((), ())),
    ],
)
def test_moves(name: str, made: tuple[object, object], expected: tuple[object, object]) -> None:
    assert made == expected, name


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(EngineError, match="site far has no room"):
        plan(4, ("far",))
    with pytest.raises(EngineError, match="no site 'mars'; there are: home, near, far"):
        plan(4, ("mars",))
    with pytest.raises(EngineError, match="room for 3 more slots, not for 4"):
        plan(7)


@given(
    slots=st.integers(1, 9),
    add_on=st.lists(st.sampled_from(["home", "near", "far"]), max_size=3).map(tuple),
    remove=st.lists(st.sampled_from(["0", "1", "2", "9"]), unique=True, max_size=3).map(tuple),
    room=st.fixed_dictionaries({site: st.integers(0, 4) for site in ROOM}),
)
def test_the_size_is_reached_and_no_site_is_overfull(
    slots: int, add_on: tuple[str, ...], remove: tuple[str, ...], room: dict[str, int]
) -> None:
    change = Change(before=3, slots=slots, raw=float(slots), add_on=add_on, remove=remove)
    try:
        made = moves(change, ALIVE, site_of=SITE_OF, room=room)
    except EngineError:
        # Only for want of room: with plenty of it the same change is possible.
        plenty = dict.fromkeys(room, 20)
        assert len(moves(change, ALIVE, site_of=SITE_OF, room=plenty).add) > 0
        return
    assert len(ALIVE) + len(made.add) - len(made.remove) == slots
    assert made.add[: len(add_on)] == add_on[: len(made.add)]
    assert len(made.add) <= slots
    assert set(remove) & set(SITE_OF) <= set(made.remove)
    assert len(set(made.remove)) == len(made.remove)
    for site, free in room.items():
        leaving = sum(SITE_OF[id] == site for id in made.remove)
        assert made.add.count(site) <= free + leaving
