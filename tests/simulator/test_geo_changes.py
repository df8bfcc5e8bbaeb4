"""The geo simulator: changes of a running job, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.core.errors import EngineError, InputError
from penstock.core.model import Change
from penstock.simulator import LIVE, RescaleProfile
from penstock.simulator.geo import GeoEngine, Job, Keys, Windows
from penstock.workloads.patterns import Constant
from tests.fakes.geo_runs import OP, change, quiet


def test_a_change_stops_the_job_and_the_backlog_is_worked_off() -> None:
    spec = quiet(OP, profile=RescaleProfile(name="stop", downtime=30.0))
    engine = GeoEngine(spec, Constant(rps=80.0), seconds=300)
    engine.advance(60)
    engine.observe()
    change(engine, 2)
    engine.advance(29)
    seen = engine.observe()
    assert seen.acting and seen.slots("op") == 1
    assert seen.operators["op"].arrival_rate is None and seen.operators["op"].cpu is None
    assert seen.operators["source"].offered_rate == pytest.approx(80.0)
    engine.advance(1)
    assert engine.nodes == ("a", "b")
    engine.advance(5)
    seen = engine.observe()
    assert not seen.acting and seen.slots("op") == 2
    assert seen.operators["source"].lag == pytest.approx(30 * 80 - 5 * 120)
    assert seen.operators["source"].backpressured == pytest.approx(1.0)
    cost = seen.rescales[-1]
    assert (cost.before, cost.after, cost.downtime, cost.steady) == (1, 2, 30.0, 31.0)
    engine.advance(100)
    assert engine.series.lag[-1] == 0.0
    assert engine.series.slots["op"][[59, 89, 90]].tolist() == [1, 1, 2]


def test_named_nodes_and_slots_are_used_and_others_chosen_in_order() -> None:
    engine = GeoEngine(quiet(OP, start=2), Constant(rps=1.0), seconds=100)
    wishes: list[tuple[int, dict[str, Any], str]] = [
        (3, {"add_on": ("e",)}, "abe"),
        (5, {}, "abecd"),  # the first that are free
        (4, {"remove": ("op-b",)}, "aecd"),
        (2, {}, "ae"),  # the last go
        (2, {"add_on": ("f",), "remove": ("op-a",)}, "ef"),  # a move
        (1, {"add_on": ("b",)}, "b"),  # a named node wins over those there
    ]
    for slots, named, expected in wishes:
        change(engine, slots, **named)
        assert "".join(engine.nodes) == expected
    assert engine.observe().free_nodes == ("a", "c", "d", "e", "f")


def test_the_source_goes_beside_the_instance_that_is_there_for_longest() -> None:
    job = Job(name="op", work=1e-2, source_cost=2e-3)
    engine = GeoEngine(quiet(job, start=2), Constant(rps=1e4), seconds=100)
    engine.advance(10)
    engine.observe()
    change(engine, 2, add_on=("f",), remove=("op-a",))
    engine.advance(10)
    seen = engine.observe()
    assert [slot.node for slot in seen.pools["source"]] == ["b"]
    loads = {slot.node: slot.load for slot in seen.pools["op"]}
    assert loads["b"] == pytest.approx(1.0) and (loads["f"] or 1.0) < 0.8


def test_moving_an_instance_stops_the_job_though_their_number_stays() -> None:
    spec = quiet(OP, profile=RescaleProfile(name="stop", downtime=10.0))
    engine = GeoEngine(spec, Constant(rps=50.0), seconds=60)
    engine.advance(20)
    change(engine, 1)  # nothing asked for
    engine.advance(1)
    assert engine.series.down.sum() == 0.0
    change(engine, 1, add_on=("c",), remove=("op-a",))
    engine.advance(20)
    assert engine.series.down.sum() == 10.0 and engine.nodes == ("c",)


def test_instances_may_join_one_after_the_other() -> None:
    engine = GeoEngine(quiet(OP, profile=replace(LIVE, jitter=0.0)), Constant(rps=1e4), seconds=30)
    change(engine, 3)
    engine.advance(30)
    assert engine.series.slots["op"].tolist() == [1.0] * 3 + [2.0] * 2 + [3.0] * 25
    assert engine.series.down.sum() == 0.0


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"op": {"slots": 7}}, "possible are 1 to 6"),
        ({"op": {"slots": 2, "add_on": ("x",)}}, "unknown node 'x'"),
        ({"op": {"slots": 2, "add_on": ("a",)}}, "node a has an instance"),
        ({"op": {"slots": 3, "add_on": ("b", "b")}}, "stands twice in b, b"),
        ({"op": {"slots": 1, "remove": ("op-c",)}}, "unknown slot of op 'op-c'"),
        ({"op": {"slots": 1, "cpu_share": 0.5}}, "whole nodes only"),
        ({"source": {"slots": 2}}, "pool source has one slot"),
        ({"other": {"slots": 2}}, "unknown pool 'other'"),
    ],
)
def test_changes_that_cannot_be(wish: dict[str, Any], words: str) -> None:
    engine = GeoEngine(quiet(OP), Constant(rps=1.0), seconds=10)
    changes = {pool: Change(before=1, raw=1.0, **more) for pool, more in wish.items()}
    with pytest.raises((InputError, EngineError), match=words):
        engine.apply(changes)
    assert engine.nodes == ("a",)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Job(name="op", work=0.0), "work = 0.0 must be a finite number above 0"),
        (lambda: Job(name="sink", work=1.0), "cannot call its operator 'sink'"),
        (lambda: Job(name="op", work=1.0, credit=0.5), "credit = 0.5"),
        (lambda: Job(name="op", work=1.0, cpu_base=0.5, cpu_ceiling=0.4), "cpu_ceiling"),
        (lambda: Keys(groups=4, hot=(4,)), "hot group 4"),
        (lambda: Keys(hot=(1, 1)), "must be different"),
        (lambda: Keys(hot_work=1.0), "name some"),
        (lambda: Windows(every=0.5, rounds=1.0, part=1.0), "every = 0.5"),
        (lambda: quiet(OP, start=7), "start 7 must be 1 to 6"),
        (lambda: quiet(OP, prices={"x": 1.0}), "name in prices"),
        (lambda: quiet(replace(OP, channel_cost=0.2)), "at most 5 nodes"),
        (lambda: quiet(OP).capacity(["a", "a"]), "one each"),
        (lambda: GeoEngine(quiet(OP), Constant(rps=1.0), seconds=0), "seconds 0"),
        (lambda: GeoEngine(quiet(OP), Constant(rps=1.0), seconds=1, seed=-1), "seed -1"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
