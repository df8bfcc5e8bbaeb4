"""Agents in memory and virtual time when something goes wrong: what is promised then."""

from __future__ import annotations

import asyncio
import random

import pytest

from penstock.decentralized import Address
from tests.fakes.agents_memory import System
from tests.fakes.agents_runs import check_exact, pipeline, played

A0, B0, B1, B2, C0, C1 = (
    Address(name, serial)
    for name, serial in (("A", 0), ("B", 0), ("B", 1), ("B", 2), ("C", 0), ("C", 1))
)
SINK, SOURCE = Address("sink", 0), Address("source", 0)


def test_a_broken_connection_loses_nothing_and_repeats_nothing_at_the_sink() -> None:
    async def action(system: System) -> None:
        for _ in range(5):
            system.cut(A0, B0)
            system.cut(B1, C0)
            system.cut(C0, SINK)
            await asyncio.sleep(0.2123)

    system = played(action)
    check_exact(system)
    assert system.count("connections lost") >= 15
    assert system.count("frames sent again") > 0
    assert system.count("frames had before") > 0
    assert system.count("peers lost") == 0


@pytest.mark.parametrize("who", [B1, C1])
def test_a_killed_instance_costs_no_record(who: Address) -> None:
    async def action(system: System) -> None:
        await system.in_flight(who)
        system.kill(who)
        await asyncio.sleep(1.0)
        system.check_views()

    system = played(action)
    check_exact(system, duplicated=True)
    assert system.count("records rerouted") > 0
    assert system.count("peers lost") >= 2


def test_a_killed_keeper_comes_back_and_learns_its_neighbours() -> None:
    async def action(system: System) -> None:
        system.kill(B0)
        await asyncio.sleep(1.0)
        system.check_views()
        await system.agents[B0].duplicate(1)
        await asyncio.sleep(0.5)
        system.check_views()

    system = played(action)
    check_exact(system, duplicated=True)
    assert system.count("peers lost") == 0


def test_the_only_instance_of_an_operator_may_die() -> None:
    async def action(system: System) -> None:
        system.kill(A0)
        await asyncio.sleep(1.0)
        system.check_views()

    check_exact(played(action), duplicated=True)


def test_an_operator_that_has_lost_its_keeper_for_good_goes_on_with_what_it_has() -> None:
    async def action(system: System) -> None:
        await system.in_flight(B0)
        system.kill(B0, host=True)
        system.kill(C0, host=True)
        await asyncio.sleep(0.5)
        assert system.living("B") == [B1] and system.living("C") == [C1]
        system.check_views()
        await system.agents[B1].duplicate(1)
        await asyncio.sleep(0.5)
        system.agents[B1].leave()  # there is no keeper that could get its last records
        await asyncio.sleep(3.0)
        assert system.living("B") == [B2]
        for _ in range(20):
            await system.agents[B2].trials.once()
            await asyncio.sleep(0.2)
        assert system.agents[B2].meter.rate() < 100.0  # a load that it would leave at
        system.check_views()

    check_exact(played(action, pipeline(seconds=2.0), at=0.5), duplicated=True)


def test_a_neighbour_that_dies_does_not_hold_up_an_action() -> None:
    async def action(system: System) -> None:
        system.freeze(C1)  # it will never acknowledge
        await system.agents[B0].duplicate(1)
        await asyncio.sleep(0.2)
        assert system.agents[B0].membership.me.phase == "duplicating"
        system.kill(C1)
        await asyncio.sleep(0.5)
        system.check_views()

    check_exact(played(action), duplicated=True)


def test_a_keeper_that_dies_while_it_is_asked_is_asked_again() -> None:
    async def action(system: System) -> None:
        system.freeze(C0)
        system.agents[B1].leave()
        await asyncio.sleep(0.2)
        assert system.agents[B1].membership.me.phase == "leaving"
        system.kill(C0)
        await asyncio.sleep(1.0)
        assert B1 not in system.agents
        system.check_views()

    system = played(action)
    check_exact(system, duplicated=True)
    assert system.count("messages repeated") == 1


def test_new_instances_end_when_their_creator_dies_before_it_has_started_them() -> None:
    async def action(system: System) -> None:
        system.freeze(C1)  # so that the start waits
        await system.agents[B1].duplicate(2)
        await asyncio.sleep(0.2)
        assert len(system.living("B")) == 4
        system.kill(B1)
        await asyncio.sleep(0.5)
        assert system.living("B") == [B0]
        system.kill(C1)

    check_exact(played(action), duplicated=True)


def test_silent_connections_are_replaced_before_anybody_is_given_up() -> None:
    async def action(system: System) -> None:
        await system.in_flight(B1)
        system.freeze(B1)
        await asyncio.sleep(4.0)
        system.check_views()

    system = played(action)
    check_exact(system)
    assert system.count("connections lost") >= 6
    assert system.count("peers lost") == 0


def test_an_instance_that_nobody_hears_is_given_up_and_ends() -> None:
    async def action(system: System) -> None:
        await system.in_flight(B1)
        system.freeze(B1, for_good=True)
        await asyncio.sleep(5.0)  # longer than twice the patience
        assert B1 not in system.agents
        system.check_views()

    system = played(action)
    check_exact(system, duplicated=True)
    assert system.count("records rerouted") > 0


def test_an_instance_that_was_given_up_by_one_peer_learns_it_and_ends() -> None:
    async def action(system: System) -> None:
        await system.in_flight(B1)
        system.freeze_way(A0, B1)
        await asyncio.sleep(1.0)
        assert B1 in system.agents
        await asyncio.sleep(4.0)
        assert B1 not in system.agents
        system.check_views()

    check_exact(played(action), duplicated=True)


@pytest.mark.parametrize("seed", range(6))
def test_chaos_costs_no_record_and_views_agree_afterwards(seed: int) -> None:
    """Duplications, deletions, broken connections and crashes at random, several at a time."""
    chance = random.Random(seed)

    async def action(system: System) -> None:
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

    check_exact(played(action, at=0.5), duplicated=True)
