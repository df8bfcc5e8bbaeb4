"""The scaling protocol: single steps, and random runs of larger systems."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import InputError
from penstock.decentralized import (
    Address,
    Instance,
    Probabilistic,
    ScalingProtocol,
    siblings_of,
    wired,
)
from penstock.decentralized.check.faults import PRINTED, whole_view
from penstock.decentralized.messages import (
    DELETION_ACK,
    DUPLICATION_ACK,
    Deletion,
    Duplication,
    Start,
)
from tests.fakes.decentralized_runs import Edges, Run, random_run

PROTOCOL = ScalingProtocol()
CHAIN = (("A", "B"), ("B", "C"))
A0, A1, A2 = (Address("A", i) for i in range(3))
B0, B1, B2 = (Address("B", i) for i in range(3))
C0, C1 = (Address("C", i) for i in range(2))


def system() -> dict[Address, Instance]:
    return wired({"A": 2, "B": 2, "C": 2}, CHAIN)


# ---- one step at a time ---------------------------------------------------------------------


def test_a_duplication_is_announced_acknowledged_and_started() -> None:
    b0, sends = PROTOCOL.duplicate(system()[B0], [B2])
    assert b0.phase == "duplicating" and b0.awaited == 4
    to_succ = Duplication(role="predecessor", new=frozenset({B2}))
    to_pred = Duplication(role="successor", new=frozenset({B2}))
    assert sends == ((C0, to_succ), (C1, to_succ), (A0, to_pred), (A1, to_pred))
    a0, sends = PROTOCOL.receive(system()[A0], B0, to_pred)
    assert a0.succs == {B0, B1, B2} and sends == ((B0, DUPLICATION_ACK),)
    for neighbour in (A0, A1, C0):
        b0, sends = PROTOCOL.receive(b0, neighbour, DUPLICATION_ACK)
        assert sends == () and b0.phase == "duplicating"
    b0, sends = PROTOCOL.receive(b0, C1, DUPLICATION_ACK)
    assert b0 == system()[B0]
    start = Start(succs=frozenset({C0, C1}), preds=frozenset({A0, A1}))
    assert sends == ((B2, start),)
    b2, sends = PROTOCOL.receive(Instance(address=B2, phase="inactive"), B0, start)
    assert b2 == replace(system()[B1], address=B2) and sends == ()


def test_an_instance_leaves_when_all_neighbours_know() -> None:
    b1, sends = PROTOCOL.leave(system()[B1])
    assert b1.phase == "leaving" and len(sends) == 4
    c0, answer = PROTOCOL.receive(system()[C0], B1, sends[0][1])
    assert c0.preds == {B0} and answer == ((B1, DELETION_ACK),)
    for neighbour in (A0, C1, C0):
        b1, sends = PROTOCOL.receive(b1, neighbour, DELETION_ACK)
        assert b1.phase == "leaving"
    b1, sends = PROTOCOL.receive(b1, A1, DELETION_ACK)
    assert b1 == Instance(address=B1, phase="terminated") and sends == ()
    assert PROTOCOL.receive(b1, A0, DELETION_ACK) == (b1, ())


def test_a_keeper_never_leaves() -> None:
    b0 = system()[B0]
    assert PROTOCOL.leave(b0) == (b0, ())
    assert PRINTED.leave(b0) == (b0, ())


def test_an_instance_that_has_not_started_remembers_what_it_hears() -> None:
    b2 = Instance(address=B2, phase="inactive")
    news = Duplication(role="successor", new=frozenset({Address("C", 2)}))
    b2, sends = PROTOCOL.receive(b2, C0, news)
    assert sends == ((C0, DUPLICATION_ACK),)
    b2, sends = PROTOCOL.receive(b2, A1, Deletion(role="predecessor"))
    assert sends == ((A1, DELETION_ACK),) and PROTOCOL.targets(b2) == frozenset()
    start = Start(succs=frozenset({C0, C1}), preds=frozenset({A0, A1}))
    b2, _ = PROTOCOL.receive(b2, B0, start)
    assert b2.succs == {C0, C1, Address("C", 2)} and b2.preds == {A0}


def test_one_action_at_a_time() -> None:
    b1, _ = PROTOCOL.duplicate(system()[B1], [B2])
    with pytest.raises(InputError, match="B1 is duplicating and cannot begin to leave"):
        PROTOCOL.leave(b1)
    gone, _ = PROTOCOL.leave(system()[B1])
    with pytest.raises(InputError, match="B1 is leaving and cannot begin a duplication"):
        PROTOCOL.duplicate(gone, [B2])
    idle = Instance(address=B2, phase="inactive")
    with pytest.raises(InputError, match="B2 is inactive"):
        PROTOCOL.leave(idle)
    assert PROTOCOL.duplicate(system()[B1], []) == (system()[B1], ())


def test_a_leaving_instance_sends_its_last_records_to_keepers() -> None:
    b1, _ = PROTOCOL.leave(system()[B1])
    assert PROTOCOL.targets(b1) == {C0} and whole_view(b1) == {C0, C1}
    b0, _ = PROTOCOL.duplicate(system()[B0], [B2])
    assert PROTOCOL.targets(b0) == {C0, C1}


def test_new_ones_start_with_a_neighbour_that_left_knowing_them_and_only_then() -> None:
    begun, _ = PROTOCOL.duplicate(system()[B0], [B2])
    unaware, _ = PROTOCOL.receive(begun, C1, Deletion(role="successor"))
    aware, _ = PROTOCOL.receive(begun, C1, DUPLICATION_ACK)
    aware, _ = PROTOCOL.receive(aware, C1, Deletion(role="successor"))
    assert unaware.start is not None and aware.start is not None
    assert C1 not in unaware.succs | aware.succs
    assert unaware.start.succs == {C0} and aware.start.succs == {C0, C1}


def test_without_neighbours_nothing_is_waited_for() -> None:
    alone = wired({"A": 2}, [])
    a1, sends = PROTOCOL.duplicate(alone[A1], [A2])
    assert a1.phase == "active" and sends == ((A2, Start(succs=frozenset(), preds=frozenset())),)
    assert PROTOCOL.leave(alone[A1])[0].phase == "terminated"


def test_an_operator_needs_its_keeper() -> None:
    with pytest.raises(InputError, match="operator B has 0 instances"):
        wired({"A": 1, "B": 0}, [])


# ---- random runs of larger systems ----------------------------------------------------------


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[dict[str, int], Edges]:
    """Up to six operators with up to eight instances each; any edges from earlier to later."""
    names = "ABCDEF"[: draw(st.integers(1, 6))]
    sizes = {name: draw(st.integers(1, 8)) for name in names}
    pairs = [(a, b) for a in names for b in names if a < b]
    edges = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    return sizes, sorted(edges)


def check_quiet(run: Run) -> None:
    """What must hold of any system in which nothing is under way."""
    live = {a: i for a, i in run.instances.items() if i.phase != "terminated"}
    assert all(i.phase == "active" for i in live.values())
    members = {name: {a for a in live if a.operator == name} for name in run.serials}
    for address, i in live.items():
        succs = [members[b] for a, b in run.edges if a == address.operator]
        preds = [members[a] for a, b in run.edges if b == address.operator]
        assert i.succs == set().union(*succs) and i.preds == set().union(*preds)
        for neighbour in i.succs | i.preds:
            assert siblings_of(address, live[neighbour]) == len(members[address.operator])
    assert all(Address(name, 0) in live for name in run.serials)


@settings(max_examples=200)
@given(pipelines(), st.integers(0, 2**32), st.integers(1, 12))
def test_random_runs_keep_every_promise(
    pipeline: tuple[dict[str, int], Edges], seed: int, actions: int
) -> None:
    run = random_run(*pipeline, seed, actions=actions)
    assert run.lost == []
    check_quiet(run)
    assert not any(run.stored.values())
    paths = run.paths()
    for name, times in paths.items():
        assert all(run.arrived[name, record + 1] == times for record in range(run.records))
    assert sum(run.arrived.values()) == run.records * sum(paths.values())


@given(pipelines(), st.integers(0, 2**32), st.integers(1, 12))
def test_every_action_costs_two_messages_a_neighbour_and_one_a_new_instance(
    pipeline: tuple[dict[str, int], Edges], seed: int, actions: int
) -> None:
    """In any interleaving, with the neighbours that an instance knows when it begins."""
    run = random_run(*pipeline, seed, actions=actions)
    assert run.messages == run.expected_messages


@given(pipelines(), st.integers(0, 2**32), st.floats(0.8, 5.0))
def test_a_duplication_costs_what_the_paper_says(
    pipeline: tuple[dict[str, int], Edges], seed: int, share: float
) -> None:
    """2 · min(k, n) · (|succs| + |preds|) + k for k new ones among n that decide at once."""
    sizes, edges = pipeline
    run, policy = Run(sizes, edges, seed, PROTOCOL), Probabilistic()
    operator = run.random.choice(sorted(sizes))
    n = sizes[operator]
    neighbours = run.instances[Address(operator, 0)].neighbours
    created = 0
    for serial in range(n):
        k = policy.decide(share * 500.0, 500.0, n, run.random.random())
        if k:
            run.duplicate(Address(operator, serial), k)
            created += k
    run.drain()
    assert run.messages == 2 * min(created, n) * neighbours + created
    assert sum(a.operator == operator for a in run.instances) == n + created


@given(pipelines(), st.integers(0, 2**32))
def test_a_deletion_costs_what_the_paper_says(
    pipeline: tuple[dict[str, int], Edges], seed: int
) -> None:
    """2 · (|succs| + |preds|) for each that leaves, all at once."""
    sizes, edges = pipeline
    run = Run(sizes, edges, seed, PROTOCOL)
    operator = run.random.choice(sorted(sizes))
    neighbours = run.instances[Address(operator, 0)].neighbours
    for serial in range(1, sizes[operator]):
        run.leave(Address(operator, serial))
    run.drain()
    assert run.messages == 2 * neighbours * (sizes[operator] - 1)
    check_quiet(run)


def test_random_runs_find_the_faults_of_the_pseudo_code() -> None:
    """The harness is able to fail: under the printed protocol records and actions are lost."""
    lost = stuck = 0
    for seed in range(40):
        run = random_run({"A": 3, "B": 3, "C": 3}, CHAIN, seed, actions=8, protocol=PRINTED)
        lost += bool(run.lost)
        stuck += any(i.phase not in ("active", "terminated") for i in run.instances.values())
    assert lost > 5 and stuck > 5
