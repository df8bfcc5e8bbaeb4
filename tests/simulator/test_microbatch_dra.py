"""Spark's dynamic allocation inside the simulator: a timeline by hand, and its known faults."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.snapshot import POOL
from penstock.policies import SparkDra
from penstock.simulator.microbatch import ExecutorProfile, MicroBatchEngine, Profile
from penstock.workloads.patterns import Constant, Pattern, Step
from tests.fakes.microbatch_examples import counting, single


def sizes(
    profile: Profile,
    load: Pattern,
    allocation: SparkDra,
    *,
    seconds: float,
    start: int = 1,
    limits: tuple[int, int] = (1, 20),
) -> tuple[list[float], list[int]]:
    """When the number of executors changed, and to how many."""
    engine = MicroBatchEngine(
        profile, load, seconds=seconds, start=start, limits=limits, allocation=allocation
    )
    engine.advance(seconds)
    times, slots = engine.record().slots()
    return times.tolist(), [int(n) for n in slots]


def test_it_doubles_while_tasks_wait_and_lets_idle_executors_go() -> None:
    """Eight tasks of 10 s at 2 s on one executor, once; executors register after 0.25 s.

    Tasks wait from 2 s on. At 3 s one is added, at 4 s two, at 5 s four: as many as tasks. The
    tasks end at 12, 13.25, 14.25 and 15.25 s, each executor goes 5 s after, at the next look (all
    100 ms), but for the last.
    """
    profile = single(
        tasks=8,
        fixed=10.0,
        per_record=0.0,
        trigger=2.0,
        executor=ExecutorProfile(start=0.25),
    )
    load = Step(low=10.0, high=0.0, at=1.0)
    times, slots = sizes(profile, load, SparkDra(idle_timeout=5.0), seconds=60.0)
    assert slots == [1, 2, 4, 8, 7, 6, 4, 1]
    grown, shrunk = times[1:4], times[4:]
    assert grown == pytest.approx([3.25, 4.25, 5.25])
    assert shrunk == pytest.approx([17.0, 18.3, 19.3, 20.3])


@pytest.mark.parametrize(
    ("allocation", "limits", "most"),
    [
        (SparkDra(), (1, 5), 5),
        (SparkDra(allocation_ratio=0.5), (1, 20), 4),
        (SparkDra(backlog_timeout=20.0), (1, 20), 6),  # two of the eight have ended by then
        (SparkDra(sustained_backlog_timeout=100.0), (1, 20), 2),
    ],
)
def test_its_settings_and_limits_hold(
    allocation: SparkDra, limits: tuple[int, int], most: int
) -> None:
    profile = single(tasks=8, fixed=10.0, per_record=0.0, trigger=2.0)
    load = Step(low=10.0, high=0.0, at=1.0)
    _, slots = sizes(profile, load, allocation, seconds=30.0, limits=limits)
    assert max(slots) == most


def test_executors_of_several_cores_are_counted_by_their_tasks() -> None:
    profile = single(
        tasks=8, fixed=10.0, per_record=0.0, trigger=2.0, executor=ExecutorProfile(cores=4)
    )
    _, slots = sizes(profile, Step(low=10.0, high=0.0, at=1.0), SparkDra(), seconds=30.0)
    assert max(slots) == 2


def test_it_grows_to_the_tasks_of_a_stage_and_stays_there_when_the_load_has_gone() -> None:
    """Micro-batches: any stage whose tasks wait for over a second adds executors, and one task
    every idle time-out keeps an executor. So a fiftieth of the load has as many executors.
    """
    profile = single(tasks=8, fixed=0.3, per_record=1e-3, trigger=4.0)
    load = Step(low=3000.0, high=60.0, at=300.0)
    times, slots = sizes(profile, load, SparkDra(), seconds=3600.0, limits=(1, 40))
    assert max(slots) == slots[-1] == 8
    assert times[-1] < 300.0
    # Eight tasks of 0.3 s and 240 records every 4 s: two executors would do.
    assert (8 * 0.3 + 240 * 1e-3) / 4.0 < 1.0


def test_a_shorter_idle_time_out_than_the_trigger_makes_it_breathe() -> None:
    profile = single(tasks=8, fixed=0.5, per_record=0.0, trigger=10.0)
    _, slots = sizes(profile, Constant(rps=10.0), SparkDra(idle_timeout=2.0), seconds=300.0)
    assert slots.count(1) > 10


def test_shuffle_files_keep_idle_executors_until_they_are_collected() -> None:
    load = Step(low=3000.0, high=0.0, at=60.0)
    left = []
    for held, tracked in ((0.0, True), (90.0, False), (90.0, True)):
        profile = Profile(
            version=1,
            queries=(counting(no_data_batch=False),),
            executor=ExecutorProfile(shuffle_held=held),
        )
        allocation = SparkDra(idle_timeout=20.0, shuffle_tracking=tracked)
        times, slots = sizes(profile, load, allocation, seconds=300.0, start=3)
        assert slots[-1] == 1
        left.append(times[-1])
    assert 80.0 < left[0] == left[1] < 95.0
    assert 150.0 < left[2] < 165.0


@given(
    tasks=st.integers(1, 12),
    fixed=st.floats(0.05, 3.0),
    rate=st.floats(1.0, 2000.0),
    idle=st.floats(0.5, 30.0),
    limits=st.tuples(st.integers(1, 4), st.integers(4, 12)),
)
def test_it_never_leaves_its_limits(
    tasks: int, fixed: float, rate: float, idle: float, limits: tuple[int, int]
) -> None:
    profile = single(
        tasks=tasks,
        fixed=fixed,
        trigger=1.0,
        max_rows=2000,
        executor=ExecutorProfile(start=1.0, start_each=0.5, leave=1.0, noise=0.3),
    )
    start = limits[0]
    _, slots = sizes(
        profile, Constant(rps=rate), SparkDra(idle_timeout=idle), seconds=60.0,
        start=start, limits=limits,
    )  # fmt: skip
    assert limits[0] <= min(slots)
    assert max(slots) <= limits[1]


def test_it_is_seen_by_an_observer_that_does_not_act() -> None:
    profile = single(tasks=8, fixed=0.5, trigger=2.0)
    engine = MicroBatchEngine(
        profile, Constant(rps=100.0), seconds=120.0, start=1, limits=(1, 20), allocation=SparkDra()
    )
    engine.advance(60.0)
    seen = engine.observe()
    assert seen.slots(POOL) == engine.executors > 1
    assert seen.rescales == ()
