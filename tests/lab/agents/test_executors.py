"""Agents beside executors, with a pretended Spark, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.core.errors import EngineError
from penstock.decentralized.messages import Address
from penstock.lab.agents.executors.host import MOST_LIVES, Assignments
from tests.fakes.agents_memory import run
from tests.fakes.executor_agents import AGENT_SETTINGS, Crew

KEEPER = Address("map", 0)


def play(story: Callable[[Crew], Awaitable[None]]) -> Crew:
    """A crew that has settled, to which something happens."""
    crews = []

    async def work() -> None:
        crew = Crew()
        crews.append(crew)
        await crew.until(lambda: len(crew.agents) == 3 and crew.views_agree())
        await story(crew)
        await crew.stop()

    run(work())
    return crews[0]


async def grown(crew: Crew, to: int = 2) -> None:
    """The map gets an executor by a wish of its keeper."""
    while len(crew.of("map")) < to:
        size = len(crew.of("map"))
        assert await crew.agents[KEEPER].duplicate(1) == 1
        await crew.until(lambda size=size: len(crew.of("map")) > size and crew.views_agree())


def test_a_load_above_the_threshold_becomes_an_executor_and_a_low_one_ends_it() -> None:
    async def story(crew: Crew) -> None:
        spark = crew.spark["map"]
        spark.load = 1.0
        await crew.until(lambda: len(crew.of("map")) >= 2, 200.0)
        spark.load = 0.05
        await crew.until(lambda: crew.of("map") == [KEEPER] and spark.executors == {"0"}, 200.0)
        spark.load = 0.7
        await crew.until(crew.views_agree)
        assert [wish[0] for wish in spark.wishes].count("add") == len(spark.wishes) / 2

    crew = play(story)
    assert crew.spark["source"].wishes == crew.spark["sink"].wishes == []  # at 0.7 nobody acts
    assert crew.count("messages") == crew.count("messages by the formula") > 0


def test_without_a_load_nothing_is_decided() -> None:
    async def story(crew: Crew) -> None:
        for spark in crew.spark.values():
            spark.load = None
        await asyncio.sleep(6 * AGENT_SETTINGS.period)

    crew = play(story)
    assert all(spark.wishes == [] for spark in crew.spark.values())
    assert crew.count("trials without a load") == crew.count("trials") >= 12


def test_a_refused_wish_is_no_sibling_and_the_agent_goes_on() -> None:
    async def story(crew: Crew) -> None:
        crew.spark["map"].most = 2
        assert await crew.agents[KEEPER].duplicate(3) == 1
        await crew.until(lambda: len(crew.of("map")) == 2 and crew.views_agree())
        assert crew.agents[KEEPER].free

    crew = play(story)
    assert crew.count("refused additions") == 2
    assert "outside the limits" in next(w["why"] for _, w in crew.told if w["event"] == "refused")


def test_several_siblings_are_announced_together() -> None:
    async def story(crew: Crew) -> None:
        assert await crew.agents[KEEPER].duplicate(2) == 2
        assert not crew.agents[KEEPER].free  # nothing else is begun until they have come
        await crew.until(lambda: len(crew.of("map")) == 3 and crew.views_agree())

    crew = play(story)
    assert crew.count("messages") == 2 * 2 + 2  # two neighbours, two new ones: the formula


def test_the_executor_that_leaves_is_the_agents_own() -> None:
    async def story(crew: Crew) -> None:
        await grown(crew, to=3)
        leaving = Address("map", 1)
        executor = crew.agents[leaving].setup.executor
        crew.agents[leaving].leave()
        await crew.until(lambda: executor not in crew.spark["map"].executors)
        assert crew.spark["map"].wishes[-1] == ("remove", str(leaving), executor)
        assert crew.views_agree() and leaving not in crew.agents
        await asyncio.sleep(5.0)
        assert len(crew.of("map")) == len(crew.spark["map"].executors) == 2

    play(story)


def test_a_keeper_never_leaves() -> None:
    async def story(crew: Crew) -> None:
        crew.spark["map"].load = 0.0
        await asyncio.sleep(5 * AGENT_SETTINGS.period)
        crew.agents[KEEPER].leave()
        await asyncio.sleep(1.0)
        assert crew.agents[KEEPER].free

    assert play(story).spark["map"].wishes == []


def test_an_executor_that_dies_is_given_up_and_its_replacement_announced_by_the_keeper() -> None:
    async def story(crew: Crew) -> None:
        await grown(crew)
        (dying,) = [a for a in crew.of("map") if not a.keeper]
        crew.spark["map"].crash(crew.agents[dying].setup.executor)
        await crew.until(lambda: dying not in crew.agents)
        await crew.until(lambda: crew.of("map") == [KEEPER] and crew.views_agree())
        await crew.until(lambda: len(crew.of("map")) == 2 and crew.views_agree())
        assert crew.of("map")[1].serial > dying.serial

    crew = play(story)
    assert [wish[0] for wish in crew.spark["map"].wishes] == ["add"]


def test_the_executor_that_replaces_a_keepers_gets_its_role() -> None:
    async def story(crew: Crew) -> None:
        await grown(crew)
        crew.spark["map"].crash("0")
        await crew.until(lambda: KEEPER not in crew.agents)
        await crew.until(lambda: KEEPER in crew.agents and crew.views_agree())
        back = crew.agents[KEEPER].setup
        assert (back.me.life, back.executor) == (2, "2")
        await grown(crew, to=3)

    play(story)


def test_an_agent_that_crashes_is_replaced_beside_the_same_executor() -> None:
    async def story(crew: Crew) -> None:
        await grown(crew)
        for who in crew.of("map"):
            executor = crew.agents[who].setup.executor
            crew.kill(who)
            await crew.until(lambda who=who: (who, "killed") in crew.ends)
            await crew.until(lambda: len(crew.of("map")) == 2 and crew.views_agree())
            assert executor in {a.setup.executor for a in crew.agents.values()}

    assert len(play(story).spark["map"].wishes) == 1


def test_executors_come_although_who_asked_for_them_is_gone() -> None:
    async def story(crew: Crew) -> None:
        await grown(crew)
        (asking,) = [a for a in crew.of("map") if not a.keeper]
        assert await crew.agents[asking].duplicate(1) == 1
        crew.spark["map"].crash(crew.agents[asking].setup.executor)
        await crew.until(lambda: len(crew.of("map")) == 3 and crew.views_agree())

    play(story)


def test_a_new_agent_ends_when_its_creator_is_another_process_and_the_keeper_takes_it_in() -> None:
    async def story(crew: Crew) -> None:
        crew.agents[KEEPER]._announce = lambda: None  # type: ignore[method-assign]
        assert await crew.agents[KEEPER].duplicate(1) == 1
        await crew.until(lambda: len(crew.of("map")) == 2)
        crew.kill(KEEPER)  # before it has announced it
        await crew.until(lambda: len(crew.of("map")) == 2 and crew.views_agree())
        assert (Address("map", 1), "its creator is gone") in crew.ends

    play(story)


def test_an_executor_that_may_not_leave_gets_another_agent() -> None:
    async def story(crew: Crew) -> None:
        await grown(crew)
        (leaving,) = [a for a in crew.of("map") if not a.keeper]

        async def refuse(who: str, executor: str) -> None:
            raise EngineError("0 executors are outside the limits of 1 to 4")

        crew.spark["map"].remove = refuse  # type: ignore[method-assign]
        crew.agents[leaving].leave()
        await crew.until(lambda: (leaving, "its executor stays") in crew.ends)
        await crew.until(lambda: len(crew.of("map")) == 2 and crew.views_agree())

    assert play(story).count("refused departures") == 1


def test_who_does_not_know_the_secret_takes_no_part() -> None:
    async def work() -> None:
        crew = Crew(secrets={"map": b"another secret"})
        await asyncio.sleep(15.0)
        source = next(agent for agent in crew.all if agent.setup.me.address == Address("source", 0))
        assert source.counts["messages"] == 0
        assert crew.count("refused connections") > 0
        assert (Address("source", 0), "cut off") in crew.ends
        await crew.stop()

    run(work())


# ---- who sits where --------------------------------------------------------------------------


def test_seats() -> None:
    now = [0.0]
    assignments = Assignments("map", arrival=10.0, clock=lambda: now[0])
    over, (first,) = assignments.look({"0"})
    assert (over, first.address, first.life, first.creator) == ([], KEEPER, 1, None)
    assignments.expect(KEEPER)
    _, (second,) = assignments.look({"0", "7"})
    assert (second.address, second.executor, second.creator, second.asked) == (
        Address("map", 1), "7", KEEPER, True,
    )  # fmt: skip
    _, (stray,) = assignments.look({"0", "7", "8"})
    assert (stray.creator, stray.asked) == (KEEPER, False)
    assignments.expect(second.address)
    now[0] = 11.0
    _, (late,) = assignments.look({"0", "7", "8", "9"})
    assert (late.creator, late.asked) == (KEEPER, False)
    assignments.ended(second.address, left=True)
    assert assignments.look({"0", "7", "8", "9"}) == ([], [])  # 7 is on its way out
    over, (keeper,) = assignments.look({"8", "9", "10"})
    assert (over, keeper.address, keeper.executor, keeper.life) == ([KEEPER], KEEPER, "10", 2)


def test_an_agent_that_always_crashes_is_not_started_for_ever() -> None:
    assignments = Assignments("map", arrival=10.0, clock=lambda: 0.0)
    for _ in range(MOST_LIVES):
        _, (assignment,) = assignments.look({"0"})
        assignments.ended(assignment.address, left=False)
    assert assignments.look({"0"}) == ([], [])
