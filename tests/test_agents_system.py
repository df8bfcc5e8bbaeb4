"""Agents that really talk, in memory and virtual time: what must hold whatever happens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from penstock.agents import Operator, Pipeline
from penstock.decentralized import Address
from tests.agents_memory import System, run

A0, B0, B1, B2, C0, C1 = (
    Address(name, serial)
    for name, serial in (("A", 0), ("B", 0), ("B", 1), ("B", 2), ("C", 0), ("C", 1))
)
SINK, SOURCE = Address("sink", 0), Address("source", 0)


def pipeline(**values: object) -> Pipeline:
    """Three operators of which the middle one has two instances; nobody decides by itself."""
    operators = (
        Operator(name="A", capacity=2000.0, instances=1),
        Operator(name="B", capacity=1000.0, instances=2),
        Operator(name="C", capacity=1500.0, instances=2),
    )
    given = {"operators": operators, "low": 1500.0, "high": 1500.0, "seconds": 4.0, "period": None}
    return Pipeline(**{**given, **values})  # type: ignore[arg-type]


Deed = Callable[[System], Awaitable[None]]


def played(deed: Deed, setup: Pipeline | None = None, at: float = 2.0) -> System:
    """A whole run in which something is done after some seconds."""
    system = System(setup or pipeline())

    async def work() -> None:
        await system.start()
        system.go()
        await asyncio.sleep(at)
        await deed(system)
        await system.drained()
        await system.quiet()
        system.result = system.audit()
        await system.stop()

    run(work())
    return system


def check_exact(system: System, *, duplicated: bool = False) -> None:
    found = system.result
    assert found["lost"] == found["unexpected"] == 0
    assert found["delivered"] == found["expected"] > 0
    assert duplicated or found["duplicated"] == 0
    assert found["duplicated"] <= system.count("records rerouted")  # selectivity is 1 where any is


async def nothing(system: System) -> None:
    pass


def test_every_record_arrives_once() -> None:
    system = played(nothing)
    check_exact(system)
    assert system.result["expected"] == 6000
    assert system.count("messages") == 0


def test_selectivity_makes_fewer_and_more_records_and_all_are_accounted_for() -> None:
    operators = (
        Operator(name="A", capacity=2000.0, instances=2, selectivity=0.5),
        Operator(name="B", capacity=2000.0, instances=1, selectivity=2.3),
    )
    system = played(nothing, pipeline(operators=operators, sources=2))
    check_exact(system)
    assert system.result["expected"] == pytest.approx(6000 * 0.5 * 2.3, rel=0.1)


def test_a_duplication_and_a_deletion_lose_nothing_and_repeat_nothing() -> None:
    async def deed(system: System) -> None:
        await system.agents[B0].duplicate(2)
        await asyncio.sleep(1.0)
        system.check_views()
        assert system.living("B") == [B0, B1, B2, Address("B", 3)]
        assert all(system.agents[b].stage.processed > 0 for b in system.living("B"))
        system.agents[B1].leave()
        await asyncio.sleep(1.0)
        assert B1 not in system.agents
        system.check_views()

    system = played(deed)
    check_exact(system)
    # 2 · (|succs| + |preds|) + k, with one predecessor and two successors
    assert system.count("messages") == (2 * 3 + 2) + 2 * 3
    assert system.count("messages by the formula") == system.count("messages")
    assert system.count("peers lost") == 0


def test_all_operators_act_at_once_and_still_every_record_arrives_once() -> None:
    async def deed(system: System) -> None:
        names = ("A", "B", "C")
        for _ in range(3):
            free = [a for n in names for a in system.living(n) if system.agents[a].membership.free]
            await asyncio.gather(*(system.agents[a].duplicate(1) for a in free))
            await asyncio.sleep(0.001)
            for address in free:
                if address in system.agents and system.agents[address].membership.free:
                    system.agents[address].leave()
            await asyncio.sleep(0.3)

    system = played(deed, at=1.0)
    check_exact(system)
    assert system.count("messages") == system.count("messages by the formula") > 50
    assert system.count("stale messages") == system.count("peers lost") == 0


def test_a_broken_connection_loses_nothing_and_repeats_nothing_at_the_sink() -> None:
    async def deed(system: System) -> None:
        for _ in range(5):
            system.cut(A0, B0)
            system.cut(B1, C0)
            system.cut(C0, SINK)
            await asyncio.sleep(0.2123)

    system = played(deed)
    check_exact(system)
    assert system.count("connections lost") >= 15
    assert system.count("frames sent again") > 0
    assert system.count("frames had before") > 0
    assert system.count("peers lost") == 0


@pytest.mark.parametrize("who", [B1, C1])
def test_a_killed_instance_costs_no_record(who: Address) -> None:
    async def deed(system: System) -> None:
        await system.in_flight(who)
        system.kill(who)
        await asyncio.sleep(1.0)
        system.check_views()

    system = played(deed)
    check_exact(system, duplicated=True)
    assert system.count("records rerouted") > 0
    assert system.count("peers lost") >= 2


def test_a_killed_keeper_comes_back_and_learns_its_neighbours() -> None:
    async def deed(system: System) -> None:
        system.kill(B0)
        await asyncio.sleep(1.0)
        system.check_views()
        await system.agents[B0].duplicate(1)
        await asyncio.sleep(0.5)
        system.check_views()

    system = played(deed)
    check_exact(system, duplicated=True)
    assert system.count("peers lost") == 0


def test_the_only_instance_of_an_operator_may_die() -> None:
    async def deed(system: System) -> None:
        system.kill(A0)
        await asyncio.sleep(1.0)
        system.check_views()

    check_exact(played(deed), duplicated=True)


def test_a_neighbour_that_dies_does_not_hold_up_an_action() -> None:
    async def deed(system: System) -> None:
        system.freeze(C1)  # it will never acknowledge
        await system.agents[B0].duplicate(1)
        await asyncio.sleep(0.2)
        assert system.agents[B0].membership.me.phase == "duplicating"
        system.kill(C1)
        await asyncio.sleep(0.5)
        system.check_views()

    check_exact(played(deed), duplicated=True)


def test_a_keeper_that_dies_while_it_is_asked_is_asked_again() -> None:
    async def deed(system: System) -> None:
        system.freeze(C0)
        system.agents[B1].leave()
        await asyncio.sleep(0.2)
        assert system.agents[B1].membership.me.phase == "leaving"
        system.kill(C0)
        await asyncio.sleep(1.0)
        assert B1 not in system.agents
        system.check_views()

    system = played(deed)
    check_exact(system, duplicated=True)
    assert system.count("messages repeated") == 1


def test_new_instances_end_when_their_creator_dies_before_it_has_started_them() -> None:
    async def deed(system: System) -> None:
        system.freeze(C1)  # so that the start waits
        await system.agents[B1].duplicate(2)
        await asyncio.sleep(0.2)
        assert len(system.living("B")) == 4
        system.kill(B1)
        await asyncio.sleep(0.5)
        assert system.living("B") == [B0]
        system.kill(C1)

    check_exact(played(deed), duplicated=True)


def test_silent_connections_are_replaced_before_anybody_is_given_up() -> None:
    async def deed(system: System) -> None:
        await system.in_flight(B1)
        system.freeze(B1)
        await asyncio.sleep(4.0)
        system.check_views()

    system = played(deed)
    check_exact(system)
    assert system.count("connections lost") >= 6
    assert system.count("peers lost") == 0


def test_an_instance_that_nobody_hears_is_given_up_and_ends() -> None:
    async def deed(system: System) -> None:
        await system.in_flight(B1)
        system.freeze(B1, for_good=True)
        await asyncio.sleep(5.0)  # longer than twice the patience
        assert B1 not in system.agents
        system.check_views()

    system = played(deed)
    check_exact(system, duplicated=True)
    assert system.count("records rerouted") > 0


def test_an_instance_that_was_given_up_by_one_peer_learns_it_and_ends() -> None:
    async def deed(system: System) -> None:
        await system.in_flight(B1)
        system.freeze_way(A0, B1)
        await asyncio.sleep(5.0)
        assert B1 not in system.agents[A0].membership.neighbours
        assert B1 in system.agents
        system.cut(B1, A0)
        await asyncio.sleep(0.5)
        assert B1 not in system.agents
        system.check_views()

    check_exact(played(deed), duplicated=True)


def test_a_slow_receiver_is_passed_over_and_buffers_stay_bounded() -> None:
    operators = (
        Operator(name="A", capacity=4000.0, instances=1),
        Operator(name="B", capacity=100.0, instances=1),
    )
    most = 0

    async def deed(system: System) -> None:
        nonlocal most
        while system.agents[SOURCE].stage.processed < 1000:
            await asyncio.sleep(0.1)
            most = max(most, system.agents[B0].stage.waiting)
        assert system.agents[SOURCE].outbox.blocked > 1.0

    system = played(deed, pipeline(operators=operators, in_flight=0.5), at=0.1)
    check_exact(system)
    assert 100 < most <= 0.5 * 4000 + 200  # a window and a parcel


def test_agents_follow_a_load_that_rises_fourfold_and_falls_again() -> None:
    operators = tuple(Operator(name=name, capacity=400.0, instances=2) for name in "ABC")
    setup = pipeline(operators=operators, low=500.0, high=2000.0, seconds=90.0, period=4.0)
    sizes: list[list[int]] = []

    async def deed(system: System) -> None:
        for _ in range(44):
            await asyncio.sleep(2.0)
            sizes.append([len(system.living(name)) for name in "ABC"])

    system = played(deed, setup, at=0.5)
    check_exact(system)
    ideal = 2000.0 / (0.7 * 400.0)
    for operator in range(3):
        course = [row[operator] for row in sizes]
        assert max(course) >= 0.75 * ideal
        assert max(course) <= 2.0 * ideal
        assert course[-1] <= 0.6 * max(course)
    assert system.count("messages") == system.count("messages by the formula")
    assert system.count("stale messages") == system.count("peers lost") == 0


def test_an_instance_that_back_pressure_holds_back_does_not_leave() -> None:
    operators = (
        Operator(name="A", capacity=4000.0, instances=2),
        Operator(name="B", capacity=200.0, instances=1),
    )
    a1 = Address("A", 1)

    async def deed(system: System) -> None:
        for _ in range(15):
            await system.agents[a1].trial()
            await asyncio.sleep(0.2)
        assert system.agents[a1].meter.rate() < 0.1 * 4000.0  # a load that it would leave at
        assert system.agents[a1].membership.me.phase == "active"

    check_exact(played(deed, pipeline(operators=operators, in_flight=0.1, seconds=1.0), at=1.0))


@pytest.mark.parametrize("seed", range(12))
def test_chaos_costs_no_record_and_views_agree_afterwards(seed: int) -> None:
    """Duplications, deletions, broken connections and crashes at random, several at a time."""
    chance = random.Random(seed)

    async def deed(system: System) -> None:
        for _ in range(25):
            await asyncio.sleep(chance.random() * 0.1)
            who = chance.choice([a for name in "ABC" for a in system.living(name)])
            agent = system.agents[who]
            match chance.choice(["duplicate", "duplicate", "leave", "leave", "cut", "kill"]):
                case "duplicate" if agent.membership.free and len(system.agents) < 25:
                    await agent.duplicate(chance.randint(1, 2))
                case "leave" if agent.membership.free:
                    agent.leave()
                case "cut" if agent.membership.neighbours:
                    system.cut(who, chance.choice(sorted(agent.membership.neighbours)))
                case "kill":
                    system.kill(who)
        await asyncio.sleep(12.0)  # longer than anybody waits for anybody
        system.check_views()

    check_exact(played(deed, at=0.5), duplicated=True)
