"""Executors of 1, 2, 4 and 8 cores: the same work, the same cores, the same figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.batches.snapshot import POOL, query_window, snapshot
from penstock.batches.values import Executor, Stage, tasks_at_once
from penstock.core.guards import Guards
from penstock.core.loop import State, plan
from penstock.core.model import Change, Proposal, Slot, Snapshot
from penstock.policies import DS2, Static
from penstock.policies.gesscale.layouts import Layouts
from penstock.policies.gesscale.units import units_of
from penstock.simulator.microbatch import ExecutorProfile, MicroBatchEngine
from penstock.workloads.patterns import Constant
from tests.batches.test_batch_cost import batches_of, stages_of
from tests.fakes.microbatch_examples import single
from tests.fakes.spark import executor

ALL = 16  # cores of the pool
CORES = [1, 2, 4, 8]


def executors(cores: int, **kw: int) -> list[Executor]:
    return [executor(i, added=0.0, cores=cores, **kw) for i in range(ALL // cores)]


def seen_on(here: list[Executor], *, tasks: int = 16) -> Snapshot:
    batches = batches_of([1000] * 20, [1000 * (i + 1) for i in range(20)])
    stages = [_wider(s, tasks) for s in stages_of(batches)]
    now = batches[-1].end
    found = query_window(batches, stages, now=now, window=10.0, cores=tasks_at_once(here))
    assert found is not None
    return snapshot([found], here, now=now, slots={e.id: Slot(id=e.id) for e in here})


def _wider(stage: Stage, tasks: int) -> Stage:
    return replace(stage, tasks=tasks, cpu_time=stage.run_time / 2)


def proposed(seen: Snapshot) -> Proposal:
    return DS2(over_provisioning=1.0).decide(seen, None)[0]


@pytest.mark.parametrize("cores", CORES)
def test_capacity_is_that_of_all_cores(cores: int) -> None:
    one, seen = seen_on(executors(1)), seen_on(executors(cores))
    for name, o in seen.operators.items():
        alone = one.operators[name]
        assert o.service_rate == pytest.approx((alone.service_rate or 0.0) * cores)
        assert o.busy == pytest.approx(alone.busy)
        assert o.cpu == pytest.approx(alone.cpu)
        assert o.parallelism * cores == pytest.approx(alone.parallelism)
        need = proposed(seen).needs[name].slots
        assert need * cores == pytest.approx(proposed(one).needs[name].slots)
    (query,), (before,) = seen.queries.values(), one.queries.values()
    assert query.busy_per_record == pytest.approx((before.busy_per_record or 0.0) / cores)
    assert seen.facts[POOL].cores == cores


@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize("tasks", [1, 5, 8, 200])
def test_no_more_executors_than_work_on_all_partitions_at_once(cores: int, tasks: int) -> None:
    seen = seen_on(executors(cores), tasks=tasks)
    useful = -(-tasks // cores)
    assert seen.pipeline.useful_slots(POOL) == useful
    decision, _ = plan(Static(slots=1000), Guards(maximum=1000), seen, State())
    assert decision.targets[POOL].slots == useful
    (effect,) = decision.effects
    assert effect.guard == "useful-parallelism"
    assert str(useful) in effect.why


def test_tasks_that_take_several_cores_leave_room_for_fewer() -> None:
    """``spark.task.cpus`` = 2 on four cores: two tasks at once."""
    here = executors(4, max_tasks=2)
    assert tasks_at_once(here) == 2.0
    seen, two = seen_on(here), seen_on(executors(2)[: len(here)])
    assert seen.facts[POOL].cores == 4
    assert seen.pipeline.useful_slots(POOL) == 8
    rates = [s.operators["read"].service_rate for s in (seen, two)]
    assert rates[0] == pytest.approx(rates[1])


def test_executors_of_different_sizes_do_together_what_they_can() -> None:
    here = [executor(0, cores=2), executor(1, cores=4), executor(2, cores=6)]
    gone = executor(3, cores=64, alive=False, removed=1.0)
    assert tasks_at_once([*here, gone]) == 4.0
    assert tasks_at_once([gone]) == 64.0
    assert tasks_at_once([]) == 1.0


@pytest.mark.parametrize("cores", CORES)
def test_waves_are_of_cores(cores: int) -> None:
    """10 partitions on 8 cores take two waves, however the cores lie on executors."""
    seen = seen_on(executors(cores)[: 8 // cores], tasks=10)
    (unit,) = units_of(seen.pipeline)
    # Of all the work one core does 2/10; an executor of several is as busy as its busiest core.
    assert Layouts(seen, unit).here().rest == pytest.approx(cores * 2 / 10)


def played(cores: int, executors: int, tasks: int) -> MicroBatchEngine:
    profile = single(
        tasks=tasks, fixed=0.05, per_record=2e-3, trigger=2.0, max_rows=5000,
        executor=ExecutorProfile(cores=cores, start=3.0),
    )  # fmt: skip
    engine = MicroBatchEngine(profile, Constant(rps=800.0), seconds=300.0, start=executors)
    engine.advance(120.0)
    return engine


@pytest.mark.parametrize("cores", CORES)
def test_a_simulated_pool_does_the_same_on_the_same_cores(cores: int) -> None:
    seen = played(cores, 8 // cores, 16).observe()
    one = played(1, 8, 16).observe()
    (query,), (alone,) = seen.queries.values(), one.queries.values()
    assert query.batch_duration == pytest.approx(alone.batch_duration, rel=1e-6)
    assert query.busy == pytest.approx(alone.busy, rel=1e-6)
    assert [s.load for s in seen.pools[POOL]] != []
    need = sum(n.slots for n in proposed(seen).needs.values())
    assert need * cores == pytest.approx(
        sum(n.slots for n in proposed(one).needs.values()), rel=1e-6
    )


def test_a_simulated_application_tells_what_a_policy_is_told_on_spark() -> None:
    engine = played(4, 1, 16)
    seen = engine.observe()
    (query,) = seen.queries.values()
    assert (query.trigger, query.admission_limit) == (2.0, 5000)
    assert [s.most_rows for s in query.sources] == [5000]
    facts = seen.facts[POOL]
    assert facts.cores == 4
    assert facts.join is not None
    assert (facts.join.seconds, facts.join.origin) == (3.0, "assumed")
    assert not seen.pools[POOL][0].cold
    engine.apply({POOL: Change(before=1, slots=2, raw=2.0)})
    engine.advance(5.0)
    later = engine.observe()
    assert [s.cold for s in later.pools[POOL]] == [False, True]
    join = later.facts[POOL].join
    assert join is not None
    assert join.origin == "measured"
    assert join.seconds == pytest.approx(3.0, abs=0.01)
