"""Tasks on executors: closed forms, and a simulation of every task by another library."""

from __future__ import annotations

import math

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from penstock.simulator.microbatch import ExecutorProfile
from penstock.simulator.microbatch.event_queue import EventQueue
from penstock.simulator.microbatch.pool import Pool, StageRun, seconds_after

seconds = st.floats(min_value=0.01, max_value=5.0)


class Stages:
    """Submits stages to a pool and remembers when each ended."""

    def __init__(self, size: int, profile: ExecutorProfile | None = None) -> None:
        self.events = EventQueue()
        self.pool = Pool(profile or ExecutorProfile(), self.events, size=size, seed=1)
        self.ends: dict[int, float] = {}

    def run(self, number: int, tasks: list[float], *, job: int = 0, at: float = 0.0) -> StageRun:
        run = StageRun(job=job, stage=number, seconds=list(tasks), writes=False, done=self._done)
        self.events.at(at, self.pool.submit, run)
        return run

    def _done(self, run: StageRun) -> None:
        self.ends[run.stage] = self.events.now


@given(tasks=st.integers(1, 60), slots=st.integers(1, 20), cores=st.integers(1, 3), cost=seconds)
def test_equal_tasks_take_whole_waves(tasks: int, slots: int, cores: int, cost: float) -> None:
    stages = Stages(slots, ExecutorProfile(cores=cores))
    stages.run(0, [cost] * tasks)
    stages.events.run(1e6)
    assert stages.ends[0] == pytest.approx(math.ceil(tasks / (slots * cores)) * cost)


@given(
    slots=st.integers(1, 6),
    stages=st.lists(
        st.tuples(
            st.integers(0, 3),
            st.floats(min_value=0.0, max_value=6.0),
            st.lists(seconds, min_size=1, max_size=12),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_the_same_as_a_simulation_of_every_task(
    slots: int, stages: list[tuple[int, float, list[float]]]
) -> None:
    """Slots as a priority resource: earlier jobs first, then earlier stages and partitions."""
    ours = Stages(slots)
    for number, (job, at, tasks) in enumerate(stages):
        ours.run(number, tasks, job=job, at=at)
    ours.events.run(1e6)
    world = simpy.Environment()
    cores = simpy.PriorityResource(world, capacity=slots)
    ends: dict[int, float] = {}

    def task(number: int, place: tuple[int, int, int], at: float, cost: float):  # type: ignore[no-untyped-def]
        yield world.timeout(at)
        with cores.request(priority=place) as turn:  # type: ignore[arg-type]
            yield turn
            yield world.timeout(cost)
        ends[number] = max(ends.get(number, 0.0), world.now)

    for number, (job, at, tasks) in enumerate(stages):
        for partition, cost in enumerate(tasks):
            world.process(task(number, (job, number, partition), at, cost))
    world.run()
    assert ours.ends == {n: pytest.approx(end) for n, end in ends.items()}


@given(slots=st.integers(1, 8), tasks=st.lists(seconds, min_size=1, max_size=25))
def test_one_more_executor_never_makes_a_stage_longer(slots: int, tasks: list[float]) -> None:
    ends = []
    for size in (slots, slots + 1):
        stages = Stages(size)
        stages.run(0, tasks)
        stages.events.run(1e6)
        ends.append(stages.ends[0])
    assert ends[1] <= ends[0] + 1e-9


def test_an_executor_that_registers_takes_what_waits_and_is_cold() -> None:
    cold = ExecutorProfile(start=2.0, start_each=1.0, first_task=0.5, slowdown=3.0, warm_up=4.0)
    stages = Stages(1, cold)
    stages.pool.total = 3
    stages.pool.fill()
    run = stages.run(0, [10.0, 1.0, 1.0, 1.0])
    stages.events.run(1e6)
    # At 2 s the first new one begins; at 3 s the second, as cold.
    first = seconds_after(cold, 1.0, 0.0) + 0.5
    assert run.seconds[:3] == [10.0, first, first]
    assert run.seconds[3] == pytest.approx(seconds_after(cold, 1.0, first))
    assert stages.ends[0] == 10.0
    assert [host.added for host in stages.pool.alive.values()] == [0.0, 2.0, 3.0]


def test_a_new_executor_may_be_faster_until_it_has_worked_for_a_while() -> None:
    stages = Stages(1, ExecutorProfile(start=1.0, first_task=0.5, boost=0.25, boost_for=1.0))
    stages.pool.total = 2
    stages.pool.fill()
    run = stages.run(0, [20.0, 1.2, 2.0, 2.0])
    stages.events.run(1e6)
    # 0.25 · 1.2 s + 0.5 s; 0.2 s are left of its second, which do 0.8 s of the next task.
    assert run.seconds == pytest.approx([20.0, 0.8, 0.2 + 1.2, 2.0])


@given(st.floats(1.0, 30.0), st.floats(0.1, 20.0), st.floats(0.01, 30.0), st.floats(0.0, 50.0))
def test_a_task_warms_its_executor_up_itself(
    slowdown: float, warm_up: float, seconds: float, worked: float
) -> None:
    """One task takes as long as the same work in a hundred pieces."""
    cold = ExecutorProfile(slowdown=slowdown, warm_up=warm_up)
    whole = seconds_after(cold, seconds, worked)
    now = worked
    for _ in range(100):
        now += seconds_after(cold, seconds / 100, now)
    assert now - worked == pytest.approx(whole, rel=1e-6)
    assert seconds <= whole * (1 + 1e-9) <= seconds * slowdown * (1 + 1e-6)
    tiny = seconds_after(cold, 1e-6, worked) / 1e-6
    assert tiny == pytest.approx(1 + (slowdown - 1) * math.exp(-worked / warm_up), rel=1e-3)


def test_a_decommissioned_executor_ends_its_task_takes_no_other_and_goes() -> None:
    stages = Stages(2, ExecutorProfile(leave=1.5))
    stages.pool.total = 1
    stages.run(0, [4.0, 4.0, 4.0, 4.0])
    stages.events.at(1.0, stages.pool.decommission, [1])
    stages.events.run(3.0)
    assert sorted(stages.pool.alive) == [0, 1]
    stages.events.run(100.0)
    (gone,) = stages.pool.gone
    assert (gone.number, gone.completed, gone.removed) == (1, 1, 5.5)
    assert stages.ends[0] == 12.0  # three tasks on the other


def test_an_idle_executor_leaves_after_its_delay_and_is_replaced_if_it_is_missed() -> None:
    stages = Stages(2, ExecutorProfile(leave=1.5, start=30.0))
    stages.events.at(1.0, stages.pool.decommission, [0])
    stages.run(0, [1.0, 1.0], at=1.2)
    stages.events.run(100.0)
    assert stages.pool.gone[0].removed == 2.5
    assert stages.ends[0] == pytest.approx(3.2)
    assert [host.added for host in stages.pool.alive.values()] == [0.0, 32.5]


def test_busy_seconds_are_known_within_a_task() -> None:
    stages = Stages(1)
    stages.run(0, [4.0])
    stages.events.run(3.0)
    (host,) = stages.pool.alive.values()
    assert (host.worked, host.busy(3.0)) == (0.0, 3.0)
    stages.events.run(9.0)
    assert (host.worked, host.busy(9.0)) == (4.0, 4.0)


def test_tasks_are_spread_over_executors_at_random() -> None:
    """As in Spark, where few tasks on many executors keep all of them from being idle for long."""
    stages = Stages(10)
    for i in range(40):
        stages.run(i, [0.1], at=float(i))
    stages.events.run(100.0)
    assert all(host.completed for host in stages.pool.alive.values())
