"""Which node next and which slot first: against brute force over every choice."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.core.latency import LatencyMap
from penstock.network.maps import from_inbound
from penstock.network.placement import Draws, drawn, first_draw, joining, leaving, ranked


@st.composite
def maps(draw: st.DrawFn) -> LatencyMap:
    """Round trips of few different values, so that there are ties."""
    size = draw(st.integers(1, 7))
    count = size * (size - 1) // 2
    milliseconds = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    rtt = np.zeros((size, size))
    rtt[np.tril_indices(size, -1)] = np.array(milliseconds) * 0.013
    names = draw(st.permutations([f"n{i}" for i in range(size)]))
    return LatencyMap(names, rtt + rtt.T)


def best_node(rtt: LatencyMap, used: list[str], free: list[str]) -> tuple[str, float]:
    """By the rule, one node at a time."""

    def cost(node: str) -> tuple[float, float, str]:
        apart = [rtt.between(node, other) for other in used]
        rest = apart or [rtt.between(node, other) for other in free]
        return round(max(apart, default=0.0), 9), round(sum(rest), 9), node

    best = min(free, key=cost)
    return best, rtt.worst([*used, best])


def first_leaver(rtt: LatencyMap, slots: list[tuple[str, str]]) -> tuple[str, float]:
    def cost(slot: tuple[str, str]) -> tuple[float, float, str]:
        rest = [node for other, node in slots if other != slot[0]]
        pairs = [rtt.between(a, b) for i, a in enumerate(rest) for b in rest[:i]]
        return round(max(pairs, default=0.0), 9), round(sum(pairs), 9), slot[0]

    best = min(slots, key=cost)
    return best[0], cost(best)[0]


@given(maps(), st.data())
def test_each_node_that_joins_is_the_best_by_the_rule(rtt: LatencyMap, data: st.DataObject) -> None:
    used = data.draw(st.lists(st.sampled_from(rtt.nodes), max_size=5))  # several slots of one node
    free = data.draw(st.lists(st.sampled_from(rtt.nodes), min_size=1, max_size=6))
    steps = list(joining(rtt, used, free))
    assert sorted(step.name for step in steps) == sorted(free)
    assert steps[0] == ranked(rtt, used, free)[0]
    left, there = list(free), list(used)
    for step in steps:
        name, worst = best_node(rtt, there, left)
        assert step.name == name
        assert step.worst == pytest.approx(worst, abs=1e-9)
        left.remove(name)
        there.append(name)


@given(maps(), st.data())
def test_the_ranking_is_that_of_each_node_alone(rtt: LatencyMap, data: st.DataObject) -> None:
    used = data.draw(st.lists(st.sampled_from(rtt.nodes), min_size=1, max_size=5))
    free = data.draw(st.lists(st.sampled_from(rtt.nodes), max_size=6, unique=True))
    left, expected = list(free), []
    while left:
        expected.append(best_node(rtt, used, left)[0])
        left.remove(expected[-1])
    steps = ranked(rtt, used, free)
    assert [step.name for step in steps] == expected
    for step in steps:
        assert step.worst == pytest.approx(rtt.worst([*used, step.name]), abs=1e-9)


@given(maps(), st.data())
def test_each_slot_that_leaves_is_the_best_by_the_rule(
    rtt: LatencyMap, data: st.DataObject
) -> None:
    nodes = data.draw(st.lists(st.sampled_from(rtt.nodes), max_size=7))
    slots = [(f"s{i}", node) for i, node in enumerate(nodes)]
    steps = list(leaving(rtt, data.draw(st.permutations(slots))))
    assert len(steps) == max(0, len(slots) - 1)  # the last one stays
    for step in steps:
        name, worst = first_leaver(rtt, slots)
        assert step.name == name
        assert step.worst == pytest.approx(worst, abs=1e-9)
        slots = [slot for slot in slots if slot[0] != name]


def test_far_nodes_join_last_and_leave_first() -> None:
    """Half the nodes have 25 ms inbound: 50 ms between two of them, 25 to the others."""
    rtt = from_inbound({f"n{i}": 0.025 * (i % 2) for i in range(10)})
    steps = list(joining(rtt, ["n0"], [n for n in rtt.nodes if n != "n0"]))
    assert [step.name for step in steps] == ["n2", "n4", "n6", "n8", "n1", "n3", "n5", "n7", "n9"]
    assert [step.worst for step in steps[3:6]] == [0.0, 0.025, 0.05]
    gone = [step.name for step in leaving(rtt, [(node, node) for node in rtt.nodes])]
    assert set(gone[:5]) == {"n1", "n3", "n5", "n7", "n9"}


def test_large_maps_agree_with_looking_at_everything() -> None:
    """Bounds that are looked up again only where needed find what a full search finds."""
    random = np.random.default_rng(5)
    names = [f"n{i:03d}" for i in range(40)]
    rtt = from_inbound(dict(zip(names, random.uniform(0.0, 0.15, 40).tolist(), strict=True)))
    slots = [(name, name) for name in names]
    for step in islice(leaving(rtt, slots), 12):
        name, worst = first_leaver(rtt, slots)
        assert step.name == name
        assert step.worst == pytest.approx(worst, abs=1e-9)
        slots.remove((name, name))


def test_nodes_that_the_map_does_not_know_are_refused() -> None:
    rtt = from_inbound({"a": 0.0, "b": 0.1})
    with pytest.raises(InputError, match="unknown node 'c'"):
        ranked(rtt, ["a"], ["c"])


def test_random_choices_go_on_from_a_seed_and_a_count() -> None:
    names = [f"n{i}" for i in range(8)]
    draws: Draws = first_draw(7)
    story = []
    for _ in range(40):
        order, draws = drawn(names, json.loads(json.dumps(draws)))
        assert sorted(order) == names
        story.append(order)
    assert story[0] == drawn(reversed(names), first_draw(7))[0]  # no matter how they are listed
    assert len({order[0] for order in story}) == 8
    assert story[0] != drawn(names, first_draw(8))[0]
    assert drawn([], draws)[0] == ()
