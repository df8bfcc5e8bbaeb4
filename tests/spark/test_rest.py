"""The REST reader against a small server on loopback that answers like Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.core.errors import EngineError
from penstock.spark.read.rest import Rest
from penstock.spark.read.status import MOST_STAGES
from tests.fakes.driver import EXECUTOR, FakeDriver, stage, task


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    fake = FakeDriver()
    yield fake
    fake.close()


def test_each_stage_is_reported_once_when_it_has_ended(driver: FakeDriver) -> None:
    driver.stages = {0: stage(0), 1: stage(1, "ACTIVE")}
    rest = Rest(driver.url, "app-1")
    assert rest.new_stages() == []  # 0 is the past, 1 still runs
    driver.stages |= {1: stage(1), 2: stage(2, "PENDING"), 3: stage(3)}
    assert [s.id for s in rest.new_stages()] == [1, 3]
    assert rest.new_stages() == []
    driver.stages[2] = stage(2, "SKIPPED")
    driver.stages[5] = stage(5)  # a gap
    found = rest.new_stages()
    assert [s.id for s in found] == [2, 5]
    assert found[0].tasks == 0


def test_the_long_list_of_stages_is_read_only_once(driver: FakeDriver) -> None:
    driver.stages = {i: stage(i) for i in range(5)}
    rest = Rest(driver.url, "app-1")
    for _ in range(3):
        rest.new_stages()
    driver.stages[5] = stage(5)
    rest.new_stages()
    assert sum(path.endswith("/stages") for path in driver.asked) == 1


def test_stages_that_run_are_seen_with_their_tasks(driver: FakeDriver) -> None:
    rest = Rest(driver.url, "app-1")
    rest.new_stages()
    driver.stages[0] = stage(0)
    driver.stages[1] = stage(
        1, "ACTIVE", numTasks=200, numCompleteTasks=34, numActiveTasks=2,
        submissionTime="2026-11-15T20:33:19.424GMT",
    )  # fmt: skip
    assert [s.id for s in rest.new_stages()] == [0]
    (seen,) = rest.running
    assert (seen.id, seen.tasks, seen.completed, seen.active) == (1, 200, 34, 2)
    assert seen.submitted is not None and not seen.done
    before = len(driver.asked)
    rest.new_stages()
    assert not [p for p in driver.asked[before:] if "/stages/1?" in p]  # its document came already


@pytest.mark.parametrize("retained", [10, 1000])
def test_after_evictions_it_goes_on_at_the_newest_stage(driver: FakeDriver, retained: int) -> None:
    """A pause in which more stages ran than Spark keeps: those are lost, later ones are not."""
    rest = Rest(driver.url, "app-1")
    driver.stages = {i: stage(i) for i in range(5)}
    rest.new_stages()
    last = 5 + 3 * retained
    driver.stages = {i: stage(i) for i in range(last - retained, last)}
    driver.stages[last] = stage(last, "ACTIVE")
    rest.new_stages()
    assert rest.resynchronised == 1
    driver.stages = {last: stage(last), last + 1: stage(last + 1)}
    assert [s.id for s in rest.new_stages()] == [last, last + 1]
    assert rest.resynchronised == 1


def test_evictions_are_noticed_though_nothing_runs_when_we_look(driver: FakeDriver) -> None:
    rest = Rest(driver.url, "app-1")
    driver.stages = {0: stage(0)}
    rest.new_stages()
    driver.stages = {80: stage(80)}
    looks = 0
    while not rest.resynchronised:
        assert rest.new_stages() == []
        looks += 1
        assert looks < 10
    driver.stages[81] = stage(81)
    assert [s.id for s in rest.new_stages()] == [81]


def test_an_idle_application_is_no_gap(driver: FakeDriver) -> None:
    rest = Rest(driver.url, "app-1")
    driver.stages = {0: stage(0)}
    for _ in range(20):
        assert rest.new_stages() == []
    assert rest.resynchronised == 0


def test_a_stage_that_begins_while_we_doubt_is_no_gap(driver: FakeDriver) -> None:
    class Busy(Rest):
        def newest_stage(self) -> int:
            driver.stages[max(driver.stages) + 1] = stage(max(driver.stages) + 1)
            return super().newest_stage()

    rest = Busy(driver.url, "app-1")
    driver.stages = {0: stage(0)}
    found = [s.id for _ in range(20) for s in rest.new_stages()]
    assert len(driver.stages) > 2  # it has doubted
    assert found == list(range(2, len(found) + 2)) and rest.resynchronised == 0


def test_one_look_asks_for_a_bounded_number_of_stages(driver: FakeDriver) -> None:
    rest = Rest(driver.url, "app-1")
    rest.new_stages()
    driver.stages = {i: stage(i) for i in range(1000)}
    driver.asked.clear()
    found = rest.new_stages()
    assert len(driver.asked) <= MOST_STAGES + 2
    assert [s.id for s in found] == list(range(len(found)))
    while len(found) < 1000:
        found += rest.new_stages()
    assert len(found) == 1000 and rest.resynchronised == 0


def test_times_are_seconds_and_the_description_is_understood(driver: FakeDriver) -> None:
    rest = Rest(driver.url, "app-1")
    rest.new_stages()
    driver.stages[0] = stage(0)
    (s,) = rest.new_stages()
    assert s.run_time == pytest.approx(0.375)
    assert s.cpu_time == pytest.approx(0.057832323)
    assert s.fetch_wait == pytest.approx(0.005)
    assert (s.run_id, s.batch, s.input_records, s.write_records) == ("0cda", 0, 20_000, 14)


def test_executors_without_the_driver(driver: FakeDriver) -> None:
    gone = {**EXECUTOR, "id": "4", "isActive": False, "removeTime": "2026-11-15T20:34:19.424GMT"}
    driver.executors.append(gone)
    alive, dead = Rest(driver.url, "app-1").executors()
    assert (alive.id, alive.host, alive.alive, alive.removed) == ("3", "10.0.0.7", True, None)
    assert dead.removed is not None
    assert dead.removed - dead.added == 60.0
    assert alive.task_seconds == pytest.approx(23.227)


def test_a_dead_endpoint_is_an_engine_error_with_a_hint() -> None:
    driver = FakeDriver()
    driver.close()
    with pytest.raises(EngineError, match=r"did not answer at .*spark.ui.enabled"):
        Rest(driver.url, "app-1").executors()


def test_an_unknown_application_is_an_engine_error(driver: FakeDriver) -> None:
    driver.executors = None  # type: ignore[assignment]
    with pytest.raises(EngineError, match="answered 404"):
        Rest(driver.url, "app-1").executors()


def test_a_stage_that_was_tried_again_did_its_work_once_and_cost_all_of_it(
    driver: FakeDriver,
) -> None:
    """Eight partitions, six of which ended before a fetch failed; then the other two."""
    rest = Rest(driver.url, "app-1")
    rest.new_stages()
    first = stage(0, "FAILED", numTasks=8, numCompleteTasks=6, inputRecords=600)
    again = stage(0, numTasks=2, numCompleteTasks=2, inputRecords=200, attemptId=1)
    driver.stages[0] = [again, first]  # Spark promises no order
    (s,) = rest.new_stages()
    assert (s.tasks, s.input_records, s.attempt, s.failed, s.retried) == (8, 800, 1, False, True)
    assert s.run_time == pytest.approx(2 * 0.375)


def test_records_that_were_read_twice_count_once(driver: FakeDriver) -> None:
    """All eight had ended when two results were lost with their executor."""
    rest = Rest(driver.url, "app-1")
    rest.new_stages()
    first = stage(0, numTasks=8, numCompleteTasks=8, inputRecords=800)
    again = stage(0, numTasks=2, numCompleteTasks=2, inputRecords=200, attemptId=1)
    driver.stages[0] = [first, again]
    (s,) = rest.new_stages()
    assert (s.tasks, s.input_records) == (8, 800)


def test_tasks_by_partition_and_executor(driver: FakeDriver) -> None:
    rest = Rest(driver.url, "app-1")
    rest.new_stages()
    driver.stages[0] = stage(0)
    (s,) = rest.new_stages()
    running = {"index": 2, "partitionId": 2, "executorId": "3"}  # no metrics yet
    driver.tasks[0, 0] = [task(1, 300, records=70), task(0, 100, executor="4"), running]
    slow, quick = rest.tasks(s)
    assert (slow.partition, slow.executor, slow.records) == (1, "3", 70)
    assert (slow.busy, quick.busy) == (0.3, 0.1)
    driver.tasks.clear()  # Spark keeps the tasks of old stages only for a while
    assert rest.tasks(s) == []
