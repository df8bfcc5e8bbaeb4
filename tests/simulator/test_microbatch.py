"""The micro-batch simulator against what can be worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from penstock.batches.snapshot import POOL
from penstock.batches.values import Batch
from penstock.core.errors import EngineError, InputError, NotReady
from penstock.core.model import Change, Snapshot
from penstock.policies import SparkDra
from penstock.simulator.microbatch import (
    ExecutorProfile,
    MicroBatchEngine,
    Profile,
    SourceProfile,
    StateProfile,
)
from penstock.simulator.microbatch import engine as engine_module
from penstock.simulator.microbatch.curve import Curve
from penstock.workloads.patterns import Constant, Cosine, Pattern, Step
from penstock.workloads.release import releases
from tests.fakes.microbatch_examples import counting, joining, pair, single

LOADS: dict[str, Pattern] = {
    "bids": Cosine(low=500.0, high=4000.0, period=120.0),
    "people": Constant(rps=40.0),
}


def run(
    profile: Profile, load: Pattern, *, seconds: float = 100.0, start: int = 2
) -> tuple[Batch, ...]:
    """The batches of the only query, all that were planned in time."""
    engine = MicroBatchEngine(profile, load, seconds=seconds, start=start)
    engine.advance(seconds)
    engine.finish()
    (batches,) = engine.record().batches.values()
    return batches


def change(before: int, slots: int) -> dict[str, Change]:
    return {POOL: Change(before=before, slots=slots, raw=float(slots))}


@pytest.mark.parametrize(
    ("planning", "starts"),
    [
        (0.4, [1.0, 2.0, 3.0, 4.0]),
        (1.3, [1.0, 2.3, 3.6, 4.9]),  # late: the next begins at once
        (1.0, [1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_the_trigger_keeps_to_its_multiples_until_a_batch_is_late(
    planning: float, starts: list[float]
) -> None:
    profile = single(fixed=0.0, per_record=0.0, trigger=1.0, planning=planning)
    batches = run(profile, Constant(rps=10.0), seconds=4.95)
    assert [b.start for b in batches] == pytest.approx(starts)


def test_after_a_late_batch_the_multiples_are_kept_again() -> None:
    """One batch of 3.5 triggers, then short ones."""
    profile = single(fixed=0.0, per_record=1e-3, tasks=1, trigger=1.0)
    burst = Step(low=3500.0, high=1.0, at=1.0)
    batches = run(profile, burst, seconds=8.0, start=1)
    assert [b.start for b in batches] == pytest.approx([1.0, 4.5, 5.0, 6.0, 7.0, 8.0])


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("trigger", [0.0, 2.0])
def test_a_constant_rate_settles_where_a_batch_takes_as_long_as_its_records_took_to_come(
    slots: int, trigger: float
) -> None:
    """d = max(trigger, f + w·(c₀ + c₁·λ·d/p)), w = ⌈p/n⌉ waves."""
    rate, tasks, fixed, per_record, planning = 1000.0, 6, 0.05, 5e-4, 0.3
    profile = single(
        tasks=tasks, fixed=fixed, per_record=per_record, planning=planning, trigger=trigger
    )
    last = run(profile, Constant(rps=rate), seconds=300.0, start=slots)[-1]
    waves = math.ceil(tasks / slots)
    alone = (planning + waves * fixed) / (1.0 - waves * per_record * rate / tasks)
    interval = max(trigger, alone)
    assert last.rows == pytest.approx(rate * interval, abs=2)
    took = planning + waves * (fixed + per_record * rate * interval / tasks)
    assert last.duration == pytest.approx(took, rel=1e-3)


def test_the_admission_limit_sets_the_capacity_and_lag_grows_by_the_rest() -> None:
    profile = single(tasks=4, fixed=0.1, per_record=1e-3, max_rows=2000, commit=0.2)
    # A batch of 2,000 rows: 2 waves of 0.1 + 0.5 s, and 0.2 s.
    capacity = 2000 / 1.4
    batches = run(profile, Constant(rps=2000.0), seconds=140.0)[5:]
    assert {b.rows for b in batches} == {2000}
    lags = np.array([b.lag for b in batches], dtype=float)
    slope = np.polyfit([b.start for b in batches], lags, 1)[0]
    assert slope == pytest.approx(2000.0 - capacity, rel=1e-3)


def test_skew_makes_the_fullest_partition_set_the_pace() -> None:
    even = single(tasks=4, fixed=0.0, trigger=1.0)
    skewed = single(tasks=4, fixed=0.0, trigger=1.0, shares=(0.7, 0.1, 0.1, 0.1))
    load = Constant(rps=1000.0)
    assert run(even, load, start=4)[-1].duration == pytest.approx(0.25)
    assert run(skewed, load, start=4)[-1].duration == pytest.approx(0.7)


def test_a_slower_share_of_the_cpu_makes_tasks_longer() -> None:
    slow = single(tasks=1, fixed=0.1, trigger=5.0, executor=ExecutorProfile(share=0.25))
    assert run(slow, Constant(rps=100.0))[-1].duration == pytest.approx(4 * (0.1 + 0.5))


def test_stages_wait_for_those_they_read_and_reading_ones_run_side_by_side() -> None:
    query = joining(task_noise=0.0, planning=0.0, commit=0.0, trigger=10.0)
    profile = Profile(version=1, queries=(query,))
    loads = {"bids": Constant(rps=1000.0), "people": Constant(rps=100.0)}
    engine = MicroBatchEngine(profile, loads, seconds=20.0, start=4)
    engine.advance(19.0)
    (batch, *_) = [b for b in engine.record().batches["joins"] if b.rows]
    # 10,000 bids and 1,000 people, two tasks each, on four executors; then 11,000 in four tasks.
    read = max(0.04 + 5000 * 2e-4, 0.04 + 500 * 1e-3)
    assert batch.duration == pytest.approx(read + 0.05 + 11_000 / 4 * 3e-4)
    assert batch.written == 3300


def test_records_are_conserved_at_every_moment() -> None:
    """Released = committed + in the batch under way + waiting."""
    engine = MicroBatchEngine(pair(), LOADS, seconds=200.0, start=3, seed=5)
    seen: list[tuple[float, dict[str, int]]] = []
    for _ in range(400):
        engine.advance(0.5)
        record = engine.record()
        open_rows = {
            name: sum(
                record.releases[s.name].count(engine.now)
                for s in next(q for q in engine.profile.queries if q.name == name).sources
            )
            - sum(b.rows for b in batches)
            - engine.waiting[name]
            for name, batches in record.batches.items()
        }
        seen.append((engine.now, open_rows))
    engine.finish()
    for name, batches in engine.record().batches.items():
        assert all(b.rows >= 0 and (b.lag or 0) >= 0 for b in batches)
        for moment, rows in seen:
            under_way = [b for b in batches if b.start <= moment < b.end]
            assert rows[name] == sum(b.rows for b in under_way)


def test_without_data_there_is_no_batch_but_a_word_every_ten_seconds() -> None:
    load = Step(low=100.0, high=0.0, at=5.0)
    batches = run(single(trigger=1.0), load, seconds=40.0)
    assert [b.idle for b in batches] == [False] * 5 + [True] * 3
    assert [b.start for b in batches[5:]] == pytest.approx([16.0, 26.0, 36.0])
    assert [b.rows for b in batches] == [100] * 5 + [0] * 3
    alone = run(single(trigger=1.0, no_data_batch=True), load, seconds=12.0)
    assert [(b.rows, b.idle) for b in alone[4:]] == [(100, False), (0, False)]


def test_a_query_without_interval_begins_as_soon_as_there_is_something() -> None:
    load = Step(low=0.0, high=10.0, at=25.0)
    profile = single(fixed=0.0, per_record=0.0, planning=0.05)
    batches = run(profile, load, seconds=26.0)
    first = next(b for b in batches if b.rows)
    assert first.start == pytest.approx(25.1, abs=0.011)
    assert first.rows == 1


@pytest.mark.parametrize(
    ("state", "rows"),
    [
        (StateProfile(operator="dedupe", rows_per_record=0.5), 0.5 * 100_000),
        (StateProfile(operator="dedupe", rows_per_record=0.5, most_rows=500.0), 500.0),
        (StateProfile(operator="dedupe", rows_per_record=0.5, seconds=20.0), 0.5 * 1000 * 20),
    ],
)
def test_state_grows_to_where_it_must(state: StateProfile, rows: float) -> None:
    profile = single(tasks=2, fixed=0.01, per_record=1e-5, trigger=1.0)
    (query,) = profile.queries
    stage = replace(query.stages[0], state=replace(state, bytes_per_row=8.0))
    query = replace(query, stages=(stage,))
    last = run(replace(profile, queries=(query,)), Constant(rps=1000.0), seconds=100.0)[-1]
    assert last.state == ("dedupe",)
    assert last.state_rows == pytest.approx(rows, rel=0.03)
    assert last.state_bytes == pytest.approx(8 * last.state_rows, rel=1e-3)


def test_state_costs_what_it_says() -> None:
    stage = counting().stages[1]
    assert stage.state is not None
    busy = replace(stage, state=replace(stage.state, per_row=1e-3), shares=())
    query = counting(
        stages=(counting().stages[0], busy), task_noise=0.0, batch_noise=0.0, no_data_batch=False
    )
    profile = Profile(version=1, queries=(query,))
    last = run(profile, Constant(rps=1000.0), seconds=600.0, start=12)[-1]
    read = 0.03 + 2000 / 6 * 4e-4
    count = 0.06 + (1000 * 1e-3 + 5000 * 1e-3) / 4
    assert last.duration == pytest.approx(0.25 + read + count, rel=1e-3)


def test_an_earlier_batch_of_another_query_goes_first() -> None:
    """FIFO between jobs: the small query waits for the tasks of the large one."""
    (large,) = single(tasks=4, fixed=1.0, per_record=0.0, trigger=10.0).queries
    (small,) = single(tasks=1, fixed=0.1, per_record=0.0, trigger=10.0, planning=0.01).queries
    profile = Profile(version=1, queries=(large, replace(small, name="small")))
    engine = MicroBatchEngine(profile, Constant(rps=10.0), seconds=19.0, start=1)
    engine.advance(19.0)
    batches = engine.record().batches
    assert batches["q"][-1].duration == pytest.approx(4.0)
    assert batches["small"][-1].duration == pytest.approx(4.1)


def test_latency_of_a_steady_query_is_uniform_over_its_interval() -> None:
    """Records of (t − 2, t] are committed at t + 0.5: latencies from 0.5 to 2.5 s."""
    profile = single(tasks=1, fixed=0.5, per_record=0.0, trigger=2.0)
    engine = MicroBatchEngine(profile, Constant(rps=1000.0), seconds=100.0, start=1)
    engine.advance(100.0)
    engine.finish()
    latency = engine.record().latency("q")
    assert latency is not None
    assert latency.mean == pytest.approx(1.5, abs=1e-3)
    found = (latency.p50, latency.p95, latency.p99)
    assert found == pytest.approx((1.5, 2.4, 2.48), abs=2e-3)


def test_latency_over_a_pause_in_the_load_counts_no_record_twice() -> None:
    """Against every single record, released one by one."""
    load = Step(low=200.0, high=0.0, at=10.0, hold=7.0)
    engine = MicroBatchEngine(counting_alone(), load, seconds=40.0, start=1, seed=3)
    engine.advance(40.0)
    engine.finish()
    record = engine.record()
    latency = record.latency("counts")
    assert latency is not None
    curve = record.releases["bids"]
    waits, taken = [], 0
    for batch in record.batches["counts"]:
        for n in range(taken, taken + batch.rows):
            moment = curve.moment(n + 0.5)
            assert moment is not None
            waits.append(batch.end - moment)
        taken += batch.rows
    assert latency.mean == pytest.approx(np.mean(waits), rel=1e-3)
    found = (latency.p50, latency.p95, latency.p99)
    assert found == pytest.approx(np.percentile(waits, [50, 95, 99]), rel=5e-3)


def counting_alone() -> Profile:
    return Profile(version=1, queries=(counting(),))


@pytest.mark.parametrize("pattern", [*LOADS.values(), Step(low=7.0, high=0.0, at=3.3, hold=9.9)])
def test_records_are_released_as_the_embedded_source_releases_them(pattern: Pattern) -> None:
    """But for the microsecond that its release times are rounded to."""
    curve, events = Curve(pattern, 60.05), releases(pattern, 60.05)  # type: ignore[arg-type]
    for moment in np.linspace(0.0, 60.05, 997):
        assert abs(curve.count(float(moment)) - events.count(round(moment * 1e6))) <= 1
    assert curve.count(60.05) == events.total
    for n in (1, 5, 20):
        first = curve.moment(n)
        assert first is not None
        assert curve.count(first) == n > curve.count(first - 1e-6)
    assert curve.moment(events.total + 1) is None


def test_growing_takes_effect_later_and_is_timed() -> None:
    executor = ExecutorProfile(start=3.0, start_each=1.0, first_task=0.4, leave=2.0)
    profile = single(tasks=4, fixed=0.2, per_record=0.0, trigger=1.0, executor=executor)
    engine = MicroBatchEngine(profile, Constant(rps=10.0), seconds=60.0, start=1)
    engine.advance(10.0)
    engine.apply(change(1, 3))
    assert (engine.executors, engine.observe().acting) == (1, True)
    with pytest.raises(EngineError, match="still in flight"):
        engine.apply(change(1, 2))
    engine.advance(10.0)
    (cost,) = engine.observe().rescales
    assert (cost.time, cost.before, cost.after) == (10.0, 1, 3)
    assert cost.registered == pytest.approx(4.0)  # 3 s, and 1 s more for the second
    assert cost.first_task == pytest.approx(4.0)  # at 13.6 s, seen when all are there
    # The first whole batch begins at 14 s; the last executor's first task takes 0.6 s.
    assert cost.steady == pytest.approx(4.6)
    assert cost.downtime == 0.0
    assert engine.executors == 3
    engine.apply(change(3, 1))  # a batch has just begun: 0.2 s until its tasks end, and 2 s
    engine.advance(10.0)
    assert engine.executors == 1
    times, slots = engine.record().slots()
    assert times.tolist() == pytest.approx([0.0, 13.0, 14.0, 22.2])
    assert slots.tolist() == [1, 2, 3, 1]
    engine.advance(30.0)
    assert engine.record().slot_seconds() == pytest.approx(60 + 9.2 + 8.2)


def test_the_newest_executors_leave_unless_others_are_named() -> None:
    profile = single(tasks=4, executor=ExecutorProfile(leave=1.0), trigger=1.0)
    engine = MicroBatchEngine(profile, Constant(rps=10.0), seconds=60.0, start=3)
    engine.advance(20.0)
    named = Change(before=3, slots=2, raw=2.0, remove=("0",))
    engine.apply({POOL: named})
    engine.advance(5.0)
    engine.apply(change(2, 3))
    engine.advance(15.0)
    engine.apply(change(3, 2))
    engine.advance(10.0)
    removed = [(e.id, e.alive) for e in engine.record().executors]
    assert removed == [("0", False), ("1", True), ("2", True), ("3", False)]


def test_what_cannot_be_is_refused() -> None:
    load = Constant(rps=10.0)

    def engine(**options: object) -> MicroBatchEngine:
        given = {"seconds": 60.0, "start": 2, "limits": (1, 4), **options}
        return MicroBatchEngine(single(), load, **given)  # type: ignore[arg-type]

    for slots in (0, 5):
        with pytest.raises(
            EngineError, match=f"{slots} executors are outside the limits of 1 to 4"
        ):
            engine().apply(change(2, slots))
    with pytest.raises(InputError, match="two auto-scalers"):
        engine(allocation=SparkDra()).apply(change(2, 3))
    with pytest.raises(InputError, match="start = 9 executors must be within"):
        engine(start=9)
    with pytest.raises(InputError, match="limits 3 to 2"):
        engine(limits=(3, 2))
    with pytest.raises(InputError, match="seconds = -1"):
        engine(seconds=-1.0)
    with pytest.raises(InputError, match="seed = -1"):
        engine(seed=-1)
    with pytest.raises(InputError, match="cannot advance by nan"):
        engine().advance(math.nan)
    with pytest.raises(InputError, match="one load for the sources bids, people"):
        MicroBatchEngine(pair(), load, seconds=10.0, start=1)
    with pytest.raises(InputError, match="no load for the source people"):
        MicroBatchEngine(pair(), {"bids": load}, seconds=10.0, start=1)
    with pytest.raises(InputError, match="unknown source 'bid'"):
        MicroBatchEngine(single(), {"bids": load, "bid": load}, seconds=10.0, start=1)
    with pytest.raises(NotReady, match="no streaming query has finished a batch"):
        engine().observe()


def test_a_run_ends_when_its_seconds_are_over() -> None:
    engine = MicroBatchEngine(single(), Constant(rps=10.0), seconds=40.0, start=1)
    assert engine.advance(15.0) and engine.advance(15.0)
    assert not engine.advance(15.0)
    assert engine.now == 40.0


def test_the_same_seed_is_the_same_run_however_time_is_cut() -> None:
    records = []
    for seed, step in ((7, 30.0), (7, 0.75), (8, 30.0)):
        engine = MicroBatchEngine(pair(), LOADS, seconds=240.0, start=2, seed=seed)
        for _ in range(int(90 / step)):
            engine.advance(step)
        engine.apply(change(2, 4))
        for _ in range(int(150 / step)):
            engine.advance(step)
        record = engine.record()
        records.append((record.batches, record.executors, record.rescales))
    assert records[0] == records[1]
    assert records[0] != records[2]


def test_the_noise_of_a_batch_does_not_depend_on_the_executors() -> None:
    """The n-th batch costs the same for whoever has enough of them for one wave."""
    profile = single(max_rows=500, task_noise=0.4, batch_noise=0.2)
    four, nine = (
        [b.duration for b in run(profile, Constant(rps=9000.0), seconds=60.0, start=slots)]
        for slots in (4, 9)
    )
    assert four == nine
    assert len(set(four)) > 50


def test_noise_has_mean_one() -> None:
    quiet, noisy = (
        run(single(max_rows=500, tasks=1, task_noise=n, batch_noise=n), Constant(rps=5000.0),
            seconds=2000.0, start=1)
        for n in (0.0, 0.3)
    )  # fmt: skip
    assert len({round(b.duration, 9) for b in quiet[1:]}) == 1
    durations = [b.duration for b in noisy[1:]]
    assert np.mean(durations) == pytest.approx(quiet[-1].duration, rel=0.03)
    assert np.std(np.log(durations)) == pytest.approx(math.hypot(0.3, 0.3), rel=0.05)


def test_starts_keep_to_the_order_of_time() -> None:
    for batches in (run(counting_alone(), LOADS["bids"], seconds=300.0, start=s) for s in (1, 6)):
        assert all(b.end <= c.start + 1e-9 for b, c in pairwise(batches))


@pytest.mark.parametrize("trigger", [0.0, 2.0])
@pytest.mark.parametrize("capacity", [1500, 6000])
def test_the_newest_batches_tell_the_same_as_all(
    trigger: float, capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a backlog that grows, one that is worked off, and a long time without data."""
    query = counting(trigger=trigger, sources=(SourceProfile(name="bids", max_rows=capacity),))
    load = Step(low=2000.0, high=0.0, at=900.0)

    def looks() -> list[Snapshot | None]:
        profile = Profile(version=1, queries=(query,))
        engine = MicroBatchEngine(profile, load, seconds=4000.0, start=3, seed=5)
        found: list[Snapshot | None] = []
        while engine.advance(23.0):
            try:
                found.append(engine.observe())
            except NotReady:
                found.append(None)
        return found

    short = looks()
    assert sum(seen is not None for seen in short) > 50
    monkeypatch.setattr(engine_module, "_newest", lambda batches, since: list(batches))
    assert short == looks()
