"""Thesis time: an engine on the clock, seen by a policy as if nothing were compressed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.snapshot import POOL
from penstock.bench.compressed.thesis_time import UNITS, Scale, ThesisTime
from penstock.core.facts import JoinTime, PoolFacts
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.model import (
    Change,
    OperatorSeen,
    QuerySeen,
    Rescale,
    Slot,
    Snapshot,
    SourceSeen,
    lag_seconds,
)
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies import Static

PIPELINE = Pipeline(operators={"read": Operator(pool=POOL)})
SCALE = Scale(start=1000.0, speed=20.0, rate=0.01)


def snapshot(now: float = 1003.0, **given: Any) -> Snapshot:
    fields: dict[str, Any] = {
        "offered_rate": 500.0, "arrival_rate": 400.0, "service_rate": 200.0, "lag": 1000.0,
        "latency": 1.5, "busy": 0.7, "cpu": 0.9,
    }  # fmt: skip
    return Snapshot(
        time=now,
        window=3.0,
        age=0.5,
        pipeline=PIPELINE,
        operators={"read": OperatorSeen(parallelism=1.0, **fields)},
        pools={POOL: (Slot(id="0", cpu=0.9),)},
        **given,
    )


def test_an_observation_in_thesis_time() -> None:
    source = SourceSeen(name="t", lag=5.0, partitions={"t-0": 5.0})
    query = QuerySeen(
        batches=3, rows=100, batch_duration=1.0, cost_per_record=0.001, busy=0.7, sources=(source,)
    )
    rescale = Rescale(time=1001.0, pool=POOL, before=1, after=2, registered=4.0)
    seen = SCALE.view(snapshot(rescales=(rescale,), queries={"q": query}))
    assert (seen.time, seen.window, seen.age) == (60.0, 60.0, 10.0)
    o = seen.operators["read"]
    assert (o.offered_rate, o.arrival_rate, o.service_rate) == (50_000.0, 40_000.0, 20_000.0)
    assert (o.lag, o.latency, o.busy, o.cpu) == (2_000_000.0, 30.0, 0.7, 0.9)
    assert (seen.rescales[0].time, seen.rescales[0].registered) == (20.0, 80.0)
    q = seen.queries["q"]
    assert (q.batches, q.rows, q.batch_duration, q.busy) == (3, 200_000, 20.0, 0.7)
    assert q.cost_per_record == pytest.approx(0.001 / 100)  # 20 s for 2,000 times the records
    assert q.sources == (SourceSeen(name="t", lag=10_000.0, partitions={"t-0": 10_000.0}),)
    assert seen.pools == {POOL: (Slot(id="0", cpu=0.9),)}


def test_what_a_policy_is_told_in_thesis_time() -> None:
    source = SourceSeen(name="t", most_rows=50.0, most_files=3.0)
    query = QuerySeen(
        batches=3, rows=100, busy_per_record=0.002, trigger=2.0, admission_limit=50.0,
        sources=(source,),
    )  # fmt: skip
    facts = PoolFacts(
        cores=4.0, minimum=1, maximum=8, join=JoinTime(seconds=5.0, origin="measured")
    )
    seen = SCALE.view(snapshot(queries={"q": query}, facts={POOL: facts}))
    q = seen.queries["q"]
    assert (q.trigger, q.admission_limit) == (40.0, 100_000.0)
    assert q.busy_per_record == pytest.approx(0.002 / 100)
    assert (q.sources[0].most_rows, q.sources[0].most_files) == (100_000.0, 3.0)
    longer = JoinTime(seconds=100.0, origin="measured")
    assert seen.facts == {POOL: dataclasses.replace(facts, join=longer)}


RATES = st.floats(0.001, 1e6)


@given(speed=st.floats(1.0, 120.0), rate=RATES, offered=RATES, service=RATES, lag=st.floats(0, 1e9))
def test_what_a_policy_works_out_does_not_depend_on_the_scale(
    speed: float, rate: float, offered: float, service: float, lag: float
) -> None:
    """λ/μ is the same; the seconds that a lag is worth are stretched like all other seconds."""
    seen = snapshot()
    o = OperatorSeen(parallelism=1.0, offered_rate=offered, service_rate=service, lag=lag)
    seen = dataclasses.replace(seen, operators={"read": o})
    after = Scale(start=0.0, speed=speed, rate=rate).view(seen)
    scaled = after.operators["read"]
    assert scaled.offered_rate and scaled.service_rate
    assert scaled.offered_rate / scaled.service_rate == pytest.approx(offered / service)
    worth, before = lag_seconds(after), lag_seconds(seen)
    assert worth is not None and before is not None
    assert worth == pytest.approx(before * speed)


PLAIN = {
    Snapshot: {
        *(
            "pipeline",
            "operators",
            "pools",
            "acting",
            "execution",
            "free_nodes",
            "rescales",
            "queries",
            "facts",
        ),
        *("rtt", "prices"),  # a network is as slow as it is, whatever the load is taken for
        *("groups", "execution"),
        *("unmeasured", "findings"),  # for a person, who lives on the clock
    },
    OperatorSeen: {"parallelism", "busy", "idle", "backpressured", "cpu", "buffer", "arrivals"},
    Rescale: {"pool", "before", "after"},
    QuerySeen: {
        *("batches", "state_rows", "state_bytes", "skew", "busy", "backpressured"),
        *("tasks", "tasks_ended"),
        *("trigger_kind", "held_slots"),
    },
    SourceSeen: {"name", "most_files", "most_bytes"},
    PoolFacts: {"cores", "minimum", "maximum"},
    JoinTime: {"origin"},
}


@pytest.mark.parametrize("kind", UNITS, ids=lambda kind: kind.__name__)
def test_no_reading_is_forgotten(kind: type) -> None:
    """A field that is added to an observation has to be given a unit, or be known to have none."""
    names = {f.name for f in dataclasses.fields(kind)}
    assert set(UNITS[kind]) | PLAIN[kind] == names
    assert not set(UNITS[kind]) & PLAIN[kind]


class Clocked:
    """An engine on the clock whose waits take as long as they say, and observations a while."""

    def __init__(self, costs: float = 0.0) -> None:
        self.now = 999.0
        self.costs = costs
        self.asked: list[tuple[float, int]] = []

    def observe(self) -> Snapshot:
        self.now += self.costs
        return snapshot(self.now)

    def apply(self, changes: Mapping[str, Change]) -> None:
        self.asked.append((self.now, changes[POOL].slots))

    def advance(self, seconds: float) -> bool:
        self.now += seconds
        return True


def test_waiting_is_until_a_moment_so_slow_observations_do_not_add_up() -> None:
    clock = Clocked(costs=0.5)
    engine = ThesisTime(clock, SCALE, now=lambda: clock.now)
    times = []
    for _ in range(4):
        engine.advance(15.0)
        times.append(engine.observe().time)
    assert clock.now == pytest.approx(1000.0 + 4 * 0.75 + 0.5)
    assert times == pytest.approx([25.0, 40.0, 55.0, 70.0])  # each 15 s, and 10 s to look
    clock.now += 3.0
    assert engine.late == pytest.approx(70.0)  # several decisions have been missed
    assert engine.advance(15.0) and clock.now == pytest.approx(1000.0 + 3.5 + 3.0)


def test_a_cool_down_of_300_s_is_15_s_on_a_clock_that_runs_at_20() -> None:
    clock = Clocked()
    engine = ThesisTime(clock, SCALE, now=lambda: clock.now)
    guards = Guards(step_up=1, cool_down=300.0)
    Loop(engine, Static(slots=9), guards, mode="act").run(period=15.0, ticks=100)
    moments = [moment for moment, _ in clock.asked]
    assert np.diff(moments) == pytest.approx([15.0] * (len(moments) - 1)) and len(moments) == 5
