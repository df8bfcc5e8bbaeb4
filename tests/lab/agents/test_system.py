"""Agents that really talk, in memory and virtual time, while nothing goes wrong."""

from __future__ import annotations

import asyncio

import pytest

from penstock.decentralized import Address
from penstock.lab.agents.pipeline.operators import Operator
from tests.fakes.agents_memory import System
from tests.fakes.agents_runs import check_exact, pipeline, played

A0, B0, B1, B2, C0, C1 = (
    Address(name, serial)
    for name, serial in (("A", 0), ("B", 0), ("B", 1), ("B", 2), ("C", 0), ("C", 1))
)
SINK, SOURCE = Address("sink", 0), Address("source", 0)


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
    async def action(system: System) -> None:
        await system.agents[B0].duplicate(2)
        await asyncio.sleep(1.0)
        system.check_views()
        assert system.living("B") == [B0, B1, B2, Address("B", 3)]
        assert all(system.agents[b].stage.processed > 0 for b in system.living("B"))
        system.agents[B1].leave()
        await asyncio.sleep(1.0)
        assert B1 not in system.agents
        system.check_views()

    system = played(action)
    check_exact(system)
    # 2 · (|succs| + |preds|) + k, with one predecessor and two successors
    assert system.count("messages") == (2 * 3 + 2) + 2 * 3
    assert system.count("messages by the formula") == system.count("messages")
    assert system.count("peers lost") == 0


def test_all_operators_act_at_once_and_still_every_record_arrives_once() -> None:
    async def action(system: System) -> None:
        names = ("A", "B", "C")
        for _ in range(3):
            free = [a for n in names for a in system.living(n) if system.agents[a].membership.free]
            await asyncio.gather(*(system.agents[a].duplicate(1) for a in free))
            await asyncio.sleep(0.001)
            for address in free:
                if address in system.agents and system.agents[address].membership.free:
                    system.agents[address].leave()
            await asyncio.sleep(0.3)

    system = played(action, at=1.0)
    check_exact(system)
    assert system.count("messages") == system.count("messages by the formula") > 50
    assert system.count("stale messages") == system.count("peers lost") == 0


def test_a_slow_receiver_is_passed_over_and_buffers_stay_bounded() -> None:
    operators = (
        Operator(name="A", capacity=4000.0, instances=1),
        Operator(name="B", capacity=100.0, instances=1),
    )
    most = 0

    async def action(system: System) -> None:
        nonlocal most
        while system.agents[SOURCE].stage.processed < 1000:
            await asyncio.sleep(0.1)
            most = max(most, system.agents[B0].stage.waiting)
        assert system.agents[SOURCE].outbox.blocked > 1.0

    system = played(action, pipeline(operators=operators, in_flight=0.5), at=0.1)
    check_exact(system)
    assert 100 < most <= 0.5 * 4000 + 200  # a window and a batch


def test_agents_follow_a_load_that_rises_fourfold_and_falls_again() -> None:
    operators = tuple(Operator(name=name, capacity=400.0, instances=2) for name in "ABC")
    setup = pipeline(operators=operators, low=500.0, high=2000.0, seconds=60.0, period=3.0)
    sizes: list[list[int]] = []

    async def action(system: System) -> None:
        for _ in range(29):
            await asyncio.sleep(2.0)
            sizes.append([len(system.living(name)) for name in "ABC"])

    system = played(action, setup, at=0.5)
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

    async def action(system: System) -> None:
        for _ in range(15):
            await system.agents[a1].trials.once()
            await asyncio.sleep(0.2)
        assert system.agents[a1].meter.rate() < 0.1 * 4000.0  # a load that it would leave at
        assert system.agents[a1].membership.me.phase == "active"

    check_exact(played(action, pipeline(operators=operators, in_flight=0.1, seconds=1.0), at=1.0))
