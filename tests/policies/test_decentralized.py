"""The policy ``decentralized``: slots of a pool decide one by one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.core.model import OperatorSeen, Slot, Snapshot
from penstock.policies.decentralized import Decentralized, Memory
from tests.fakes.scenarios import healthy, with_all

POLICY = Decentralized()


def with_loads(*loads: float | None, pool: str = "map") -> Snapshot:
    """One pool whose slots were measured; of the others nothing is known."""
    seen = healthy()
    slots = tuple(Slot(id=f"s{i}", load=load) for i, load in enumerate(loads))
    return replace(seen, pools={**seen.pools, pool: slots})


def start(seed: int = 7) -> Memory:
    return POLICY.start(seed)


def test_on_average_a_pool_becomes_what_its_load_needs() -> None:
    """Ten slots: 10·l / 0.7, as far as nine of them may leave."""
    for load, needed in ((1.0, 10 / 0.7), (0.85, 8.5 / 0.7), (0.35, 10 - 9 * 0.5)):
        memory, sizes = start(), []
        for _ in range(2000):
            proposal, memory = POLICY.decide(with_loads(*[load] * 10), memory)
            sizes.append(proposal.pool_needs["map"].slots)
        assert sum(sizes) / len(sizes) == pytest.approx(needed, rel=0.01)


@given(st.floats(0.601, 0.799), st.integers(0, 1000))
def test_between_the_thresholds_nothing_changes(load: float, seed: int) -> None:
    proposal, _ = POLICY.decide(with_loads(*[load] * 8), start(seed))
    assert proposal.pool_needs["map"].slots == 8 and not proposal.place


def test_only_slots_with_little_to_do_leave_and_never_the_keeper() -> None:
    memory = start()
    left: set[str] = set()
    for _ in range(60):
        proposal, memory = POLICY.decide(with_loads(0.1, 0.1, 0.7, 0.7, 0.1), memory)
        gone = proposal.place["map"].remove if proposal.place else ()
        assert proposal.pool_needs["map"].slots == 5 - len(gone)
        left |= set(gone)
    assert left == {"s1", "s4"} and memory["keepers"] == {"map": "s0"}


def test_a_keeper_that_is_gone_is_replaced_and_then_kept() -> None:
    seen = with_loads(0.7, 0.7, 0.7)
    _, memory = POLICY.decide(seen, start())
    rest = replace(seen, pools={**seen.pools, "map": seen.pools["map"][1:]})
    _, memory = POLICY.decide(rest, memory)
    assert memory["keepers"]["map"] == "s1"
    _, memory = POLICY.decide(seen, memory)
    assert memory["keepers"]["map"] == "s1"


@given(st.lists(st.none() | st.floats(0.0, 1.0), min_size=1, max_size=12), st.integers(0, 99))
def test_slots_without_a_load_never_cause_an_action(loads: list[float | None], seed: int) -> None:
    """What a pool decides is what its measured slots decide; none measured, none decides."""
    proposal, memory = POLICY.decide(with_loads(*loads), start(seed))
    known = [load for load in loads if load is not None]
    if not any(known):  # all zero: not believed while records come in
        assert not proposal.pool_needs and "no change" in proposal.reason
        return
    assert memory["draws"] == len(known)
    low = sum(load <= 0.6 for load in known)
    high = sum(load >= 0.8 for load in known)
    assert -low <= proposal.pool_needs["map"].slots - len(loads) <= high
    removed = proposal.place["map"].remove if proposal.place else ()
    assert all(loads[int(name[1:])] is not None for name in removed)


def test_an_idle_pool_shrinks_only_if_nothing_comes_in() -> None:
    idle = with_loads(*[0.0] * 6)
    assert not POLICY.decide(idle, start())[0].pool_needs
    quiet = with_all(idle, offered_rate=0.0, lag=0.0, busy=0.0, idle=1.0)
    assert POLICY.decide(quiet, start())[0].pool_needs["map"].slots == 1


def test_slots_that_are_not_measured_are_as_busy_as_their_operator() -> None:
    seen = healthy()
    named = {p: tuple(replace(s, operator=p) for s in slots) for p, slots in seen.pools.items()}
    seen = with_all(replace(seen, pools=named), busy=0.95, idle=0.05)
    proposal, memory = POLICY.decide(seen, start(3))
    assert memory["draws"] == 12
    assert sum(n.slots for n in proposal.pool_needs.values()) > 12
    for broken in ({"busy": None}, {"idle": 0.9}):  # not measured; does not add up
        assert not POLICY.decide(with_all(seen, **broken), start(3))[0].pool_needs
    blank = {n: OperatorSeen(parallelism=o.parallelism) for n, o in seen.operators.items()}
    assert not POLICY.decide(replace(seen, operators=blank), start(3))[0].pool_needs


def test_decisions_repeat_through_json_and_depend_on_the_seed() -> None:
    def run(seed: int, through_json: bool) -> list[float]:
        memory, said = start(seed), []
        for load in [0.9, 0.3, 1.0, 0.5] * 10:
            if through_json:
                memory = json.loads(json.dumps(memory))
            proposal, memory = POLICY.decide(with_loads(*[load] * 9), memory)
            said.append(proposal.pool_needs["map"].slots)
        return said

    assert run(1, True) == run(1, False) != run(2, False)


def test_guards_remove_the_slots_that_chose_to_leave() -> None:
    seen = with_loads(0.7, 0.7, 0.7, 0.0, 0.7)
    decision, _ = plan(POLICY, Guards(), seen, State(memory=start()))
    assert decision.targets["map"].slots == 4 and decision.targets["map"].remove == ("s3",)


def test_thresholds_that_cross_are_refused() -> None:
    with pytest.raises(InputError, match=r"decentralized: 0 ≤ down 0.75 < ratio 0.7"):
        Decentralized(down=0.75)
