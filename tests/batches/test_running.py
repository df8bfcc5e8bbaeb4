"""A batch that runs counts before its end: figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.batches.running import NewestLog, RunningBatch, Underway, as_ended
from penstock.batches.values import Batch, Source, Stage
from penstock.batches.window import QueryWindow, query_window

START = 1000.0
READ = Stage(
    id=10, run_id="run-1", batch=5, done=True, tasks=2, run_time=4.0, cpu_time=1.0, fetch_wait=0.0,
    input_records=900, read_records=0, write_records=90, completed=2,
)  # fmt: skip
AGGREGATE = replace(
    READ, id=11, done=False, tasks=200, run_time=36.0, input_records=0, read_records=15,
    write_records=0, completed=34, active=2, submitted=START + 4.0,
)  # fmt: skip


def source(rows: int = 900, *, taken: int = 900, available: int | None = None) -> Source:
    return Source(rows=rows, taken=taken, available=available, name="socket")


def at(
    batch: RunningBatch | None = None, *, newest: int | None = None, trigger: float | None = 0.0
) -> Underway:
    return Underway(query="q", run_id="run-1", batch=batch, newest=(newest,), trigger=trigger)


def running(*, rows: int = 900, taken: int = 900) -> RunningBatch:
    return RunningBatch(id=5, start=START, sources=(source(rows, taken=taken),))


def window(underway: Underway, stages: list[Stage], *, now: float, slots: int = 1) -> QueryWindow:
    found = query_window([], stages, now=now, window=15.0, cores=1, slots=slots, underway=underway)
    assert found is not None
    return found


def test_the_first_batch_of_200_tasks_tells_its_least_duration_while_it_runs() -> None:
    """36 tasks have begun and taken 36 s; the others take a second each at least."""
    found = as_ended(at(running()), [READ, AGGREGATE], [], {}, now=START + 40.0, cores=1)
    assert found is not None
    batch, (_, aggregate) = found
    assert aggregate.busy == pytest.approx(200.0)
    assert batch.duration == pytest.approx(40.0 + 164.0)
    assert batch.rows == 900
    assert aggregate.read_records == round(15 * 200 / 36)


def test_four_executors_have_the_rest_done_in_a_quarter_of_the_time() -> None:
    found = as_ended(at(running()), [READ, AGGREGATE], [], {}, now=START + 40.0, cores=4)
    assert found is not None
    assert found[0].duration == pytest.approx(40.0 + 41.0)


def test_before_any_task_has_begun_there_is_nothing_to_say() -> None:
    pending = replace(AGGREGATE, completed=0, active=0, run_time=0.0)
    assert as_ended(at(running()), [pending], [], {}, now=START + 4.0, cores=1) is None
    assert as_ended(at(None), [READ], [], {}, now=START + 4.0, cores=1) is None


def test_a_task_that_runs_has_taken_the_time_since_it_began() -> None:
    """Spark tells of the metrics of a running task only every ten seconds."""
    slow = replace(READ, done=False, completed=0, active=1, run_time=0.0, submitted=START)
    found = as_ended(at(running()), [slow], [], {}, now=START + 8.0, cores=1)
    assert found is not None
    assert found[1][0].busy == pytest.approx(16.0)  # two tasks
    assert found[0].duration == pytest.approx(16.0)


def test_offsets_that_are_no_records_are_passed_over() -> None:
    """A source whose offsets are seconds plans seven of them."""
    found = as_ended(at(running(rows=7)), [READ, AGGREGATE], [], {}, now=START + 9.0, cores=1)
    assert found is not None
    assert found[0].rows == 900


def test_stages_of_the_last_batch_that_have_not_begun_are_still_to_come() -> None:
    last = Batch(
        query="q", run_id="run-1", id=4, start=900.0, duration=50.0, rows=450, state=("dedupe",)
    )
    before = [replace(READ, id=1, batch=4), replace(AGGREGATE, id=2, batch=4, done=True)]
    found = as_ended(at(running()), [READ], [last], {4: before}, now=START + 5.0, cores=1)
    assert found is not None
    batch, (_, aggregate) = found
    assert aggregate.busy == pytest.approx(36.0)  # more records need not cost more
    assert aggregate.read_records == 30
    assert batch.duration == pytest.approx(5.0 + 36.0)
    assert batch.state == ("dedupe",)


def test_a_stage_that_has_begun_reads_what_those_before_it_wrote() -> None:
    """Of its 200 tasks two run, and Spark has not counted a record of theirs yet."""
    last = Batch(query="q", run_id="run-1", id=4, start=900.0, duration=50.0, rows=450)
    before = [
        replace(READ, id=1, batch=4, write_records=60),
        replace(AGGREGATE, id=2, batch=4, done=True, read_records=60),
    ]
    begun = replace(AGGREGATE, completed=0, run_time=0.0, read_records=0)
    found = as_ended(at(running()), [READ, begun], [last], {4: before}, now=START + 9.0, cores=1)
    assert found is not None
    assert (
        found[1][1].read_records == 90
    )  # not twice the last batch's, though it has twice the rows
    halves = replace(AGGREGATE, read_records=80, completed=98)
    found = as_ended(at(running()), [READ, halves], [last], {4: before}, now=START + 9.0, cores=1)
    assert found is not None
    assert found[1][1].read_records == 160  # what was counted says more


def test_what_has_come_since_the_plan_waits() -> None:
    """900 were taken, the source has 2,900 by now: at 50/s for 40 s."""
    seen = window(at(running(), newest=2900), [READ, AGGREGATE], now=START + 40.0).seen
    assert seen.lag == 2000.0
    assert seen.lag_seconds == pytest.approx(40.0)
    assert seen.offered_rate == pytest.approx(50.0)
    assert (seen.running_for, seen.tasks, seen.tasks_ended) == (40.0, 202, 36)
    assert seen.age == 0.0


def test_a_batch_that_is_in_time_says_nothing_new() -> None:
    last = Batch(
        query="q", run_id="run-1", id=4, start=START - 50.0, duration=50.0, rows=900,
        sources=(Source(rows=900, taken=900),),
    )  # fmt: skip
    plan = RunningBatch(id=5, start=START, sources=(source(900, taken=1800),))
    stages = [replace(READ, id=1, batch=4), READ, AGGREGATE]
    for seconds, counted in ((40.0, 1), (59.0, 1), (61.0, 2)):
        now = START + seconds
        found = query_window([last], stages, now=now, window=90.0, cores=1, underway=at(plan))
        assert found is not None
        assert found.seen.batches == counted
        assert (found.seen.running_for is None) == (counted == 1)


def test_what_a_running_batch_has_taken_does_not_wait_whether_it_is_late_or_not() -> None:
    """900 records an ended batch took, 900 the one that runs; 2,500 are there by now."""
    last = Batch(
        query="q", run_id="run-1", id=4, start=START - 50.0, duration=50.0, rows=900,
        sources=(Source(rows=900, taken=900, available=900),),
    )  # fmt: skip
    plan = RunningBatch(id=5, start=START, sources=(source(900, taken=1800, available=1800),))
    stages = [replace(READ, id=1, batch=4), READ, AGGREGATE]
    for seconds in (40.0, 59.0, 61.0):
        now = START + seconds
        asked = at(plan, newest=2500)
        found = query_window([last], stages, now=now, window=90.0, cores=1, underway=asked)
        assert found is not None
        assert found.seen.lag == 700.0
        assert found.seen.lag_seconds == pytest.approx(seconds)
        rate = found.seen.offered_rate
        assert rate and found.seen.overdue == pytest.approx(max(0.0, 900 / rate - 10.0))


def test_a_batch_that_takes_up_a_backlog_is_overdue() -> None:
    """It has 30,000 records to do where 100 come every second: 300 s of input, 10 s would do."""
    last = Batch(
        query="q", run_id="run-1", id=4, start=START - 50.0, duration=50.0, rows=900,
        sources=(Source(rows=900, taken=900, available=30_900),),
    )  # fmt: skip
    plan = RunningBatch(id=5, start=START, sources=(source(30_000, taken=30_900),))
    asked = replace(at(plan, newest=31_900), rates=(100.0,))
    stages = [replace(READ, id=1, batch=4), READ, AGGREGATE]
    found = query_window([last], stages, now=START + 10.0, window=90.0, cores=1, underway=asked)
    assert found is not None
    assert found.seen.lag == 1000.0
    assert found.seen.overdue == pytest.approx(290.0)
    idle = replace(asked, batch=None)
    found = query_window([last], stages, now=START + 10.0, window=90.0, cores=1, underway=idle)
    assert found is not None and found.seen.overdue is None


def test_a_source_that_cannot_be_asked_goes_on_at_its_rate() -> None:
    """Two plannings with 1,000 records between them, 10 s apart; 30 s since the last."""
    first = Batch(
        query="q", run_id="run-1", id=4, start=START - 10.0, duration=10.0, rows=500,
        sources=(Source(rows=500, taken=500, available=500),),
    )  # fmt: skip
    plan = RunningBatch(id=5, start=START, sources=(source(1000, taken=1500, available=1500),))
    stages = [replace(READ, id=1, batch=4, input_records=500), replace(READ, input_records=1000)]
    found = query_window([first], stages, now=START + 30.0, window=60.0, cores=1, underway=at(plan))
    assert found is not None
    assert found.seen.offered_rate == pytest.approx(100.0)
    assert found.seen.lag == pytest.approx(3000.0)
    assert found.seen.lag_seconds == pytest.approx(30.0)


def test_rates_of_sources_follow_the_newest_looks() -> None:
    log = NewestLog(10.0)
    counts = {0.0: 0, 5.0: 500, 10.0: 1000, 15.0: 11_000, 20.0: 21_000}
    for now, newest in counts.items():
        rated = log.rated({"run-1": at(newest=newest)}, now)
    assert rated["run-1"].rates == (2000.0,)
    assert log.rated({}, 25.0) == {}
    assert log.rated({"run-1": at(newest=7)}, 30.0)["run-1"].rates == (None,)  # forgotten


@pytest.mark.parametrize(
    ("trigger", "seen", "expected"),
    [(0.0, 2.0, 10.0), (0.0, 90.0, 10.0), (5.0, 90.0, 10.0), (5.0, 5.0, 5.0), (60.0, 60.0, 60.0),
     (60.0, 300.0, 60.0), (None, 90.0, 90.0), (30.0, None, 30.0)],
)  # fmt: skip
def test_the_interval_that_executors_are_to_suffice_for(
    trigger: float | None, seen: float | None, expected: float
) -> None:
    assert at(trigger=trigger).interval(seen) == expected


def test_a_query_without_a_trigger_may_be_told_how_long_batches_take() -> None:
    assert replace(at(trigger=0.0), batch_time=30.0).interval(2.0) == 30.0
    assert replace(at(trigger=20.0), batch_time=30.0).interval(90.0) == 30.0
    assert replace(at(trigger=20.0), batch_time=10.0).interval(90.0) == 20.0


def test_a_batch_of_fixed_costs_needs_executors_for_its_interval() -> None:
    """No row yet, 200 s of tasks: ten seconds of what comes keep twenty executors busy."""
    empty = replace(READ, input_records=0, write_records=0)
    costly = replace(AGGREGATE, read_records=0)
    found = window(at(running(rows=0, taken=0), newest=2000), [empty, costly], now=START + 40.0)
    rate = found.works[0].offered_rate
    assert rate == pytest.approx(50.0)
    (service,) = [w.service_rate for w in found.works if w.tasks == 200]
    assert rate is not None and service is not None
    assert rate / service == pytest.approx(20.0)


@given(
    completed=st.integers(0, 200),
    active=st.integers(0, 8),
    seconds=st.floats(0.0, 500.0),
    elapsed=st.floats(0.1, 600.0),
    cores=st.integers(1, 64),
)
def test_it_never_ends_before_now_and_nothing_is_negative(
    completed: int, active: int, seconds: float, elapsed: float, cores: int
) -> None:
    stage = replace(AGGREGATE, completed=completed, active=active, run_time=seconds)
    found = as_ended(at(running()), [READ, stage], [], {}, now=START + elapsed, cores=cores)
    assert found is not None
    batch, stages = found
    assert batch.duration >= elapsed - 1e-9  # START + elapsed is rounded
    assert all(s.busy >= 0 and s.read_records >= 0 for s in stages)
