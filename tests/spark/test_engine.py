"""The Spark engine on a driver and a session that only pretend: what it reads, what it keeps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.batches.stages import KEPT_BATCHES, StageLog
from penstock.batches.values import Batch, Stage
from penstock.core.errors import EngineError, NotReady
from penstock.core.model import Change, Snapshot
from penstock.spark.engine import SparkEngine
from penstock.spark.read.progress import MOST_QUERIES, ProgressLog
from penstock.spark.read.rest import Rest
from tests.fakes.driver import FakeDriver, stage, task


class Session:
    """A session whose queries run when told to: every batch has a reading and a later stage."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        self.sparkContext = SimpleNamespace(
            uiWebUrl=driver.url,
            applicationId="app-1",
            master="spark://pretended",
            getConf=dict,
        )
        self.streams = self
        self.active: list[Any] = []
        self.start = time.time() - 100.0
        self.next_stage = 0
        self.listener: Any = None

    def addListener(self, listener: Any) -> None:  # noqa: N802 (Spark's names)
        self.listener = listener

    def removeListener(self, listener: Any) -> None:  # noqa: N802
        self.listener = None

    def batch(self, run: str, i: int, **later: Any) -> None:
        """Batch ``i`` of a query: stages and progress."""
        said = f"{run}\nrunId = {run}\nbatch = {i}"
        read, first = self.next_stage, stage(self.next_stage, description=said)
        self.next_stage += 2
        second = stage(read + 1, description=said, inputRecords=0, shuffleReadRecords=14)
        self.driver.stages[read] = first
        self.driver.stages[read + 1] = {**second, **later}
        self.driver.tasks[read, 0] = [task(0, 500, records=15_000), task(1, 100, records=5000)]
        self.progress(run, i)

    def progress(self, run: str, i: int) -> None:
        at = datetime.fromtimestamp(self.start + i, UTC).isoformat()
        offset = {"offset": 20_000 * (i + 1)}
        document = {
            "runId": run, "name": run, "batchId": i, "timestamp": at, "batchDuration": 500,
            "numInputRows": 20_000, "sources": [{"endOffset": offset, "latestOffset": offset}],
        }  # fmt: skip
        self.listener.callbacks.progress(document)

    def end(self, run: str) -> None:
        self.listener.callbacks.ended(run)


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    fake = FakeDriver()
    yield fake
    fake.close()


@pytest.fixture
def session(driver: FakeDriver) -> Session:
    return Session(driver)


def rest(session: Session) -> Rest:
    return Rest(session.driver.url, "app-1")


@pytest.fixture
def engine(session: Session) -> Iterator[SparkEngine]:
    started = SparkEngine(session, window=50.0, status=rest(session))
    started.attach()
    yield started
    started.detach()


def watched(engine: SparkEngine) -> None:
    """The first look skips the past."""
    with pytest.raises(NotReady):
        engine.observe()


def test_partitions_of_the_busiest_stage_are_read_once_a_batch(
    engine: SparkEngine, session: Session, driver: FakeDriver
) -> None:
    watched(engine)
    for i in range(3):
        session.batch("one", i)
    seen = engine.observe()
    engine.observe()
    assert sum("taskList" in path for path in driver.asked) == 1
    assert seen.queries["one"].partitions == (0.5, 0.1)
    assert seen.queries["one"].skew == pytest.approx(0.5 / (0.370 / 2))


def test_of_many_queries_two_are_looked_at_more_closely(
    engine: SparkEngine, session: Session, driver: FakeDriver
) -> None:
    watched(engine)
    for i in range(2):
        for run in "abcd":
            session.batch(run, i)
    seen = engine.observe()
    assert sum("taskList" in path for path in driver.asked) == 2
    assert sum(q.skew is not None for q in seen.queries.values()) == 2
    assert sum("allexecutors" in path for path in driver.asked) == 2  # once per observation


def test_a_stage_that_went_on_after_it_was_read_is_read_again(
    engine: SparkEngine, session: Session, driver: FakeDriver
) -> None:
    """The second stage loses its input; the first runs again for it, after we had read it."""
    watched(engine)
    session.batch("one", 0)
    session.batch("one", 1)
    said = str(driver.attempts(2)[0]["description"]).replace("batch = 1", "batch = 2")
    driver.stages[4] = stage(4, description=said)
    failed = stage(5, "FAILED", description=said, inputRecords=0)
    driver.stages[5] = failed
    busy = _busy(engine.observe())
    again = stage(4, description=said, attemptId=1, numTasks=1, numCompleteTasks=1)
    driver.stages[4] = [*driver.attempts(4), again]
    driver.stages[5] = [failed, stage(5, description=said, inputRecords=0, attemptId=1)]
    session.progress("one", 2)
    # Two batches of two attempts each, then one of four, all equal; three batches instead of two.
    assert _busy(engine.observe()) == pytest.approx(busy * 2.0)


def _busy(seen: Snapshot) -> float:
    """Busy executor-seconds of the window of the only query."""
    (query,) = seen.queries.values()
    assert query.busy_per_record is not None
    return query.busy_per_record * query.rows


@pytest.mark.parametrize(("cores", "at_once"), [(1, 1), (2, 2), (4, 4), (8, 8), (8, 2)])
def test_executors_of_several_cores(
    engine: SparkEngine, session: Session, driver: FakeDriver, cores: int, at_once: int
) -> None:
    """The last case: ``spark.task.cpus`` is 4."""
    driver.executors = [{**e, "totalCores": cores, "maxTasks": at_once} for e in driver.executors]
    watched(engine)
    for i in range(3):
        session.batch("one", i)
    seen = engine.observe()
    assert seen.facts["executors"].cores == cores
    assert seen.pipeline.slot_tasks.get("executors", 1) == at_once
    assert seen.pipeline.useful_slots("executors") == -(-2 // at_once)
    # Two stages a batch, each of 346 + 29 − 5 ms in tasks.
    batches = seen.queries["one"].batches
    assert _busy(seen) == pytest.approx(batches * 2 * 0.370 / at_once)


def test_what_a_policy_is_told_of_a_pool(
    engine: SparkEngine, session: Session, driver: FakeDriver
) -> None:
    executor = driver.executors[1]
    driver.executors = [driver.executors[0], executor, {**executor, "id": "4", "totalDuration": 90}]
    watched(engine)
    session.batch("one", 0)
    session.batch("one", 1)
    seen = engine.observe()
    assert {slot.id: slot.cold for slot in seen.pools["executors"]} == {"3": False, "4": True}
    join = seen.facts["executors"].join
    assert join is not None and join.origin == "assumed"
    assert seen.queries["one"].trigger is None  # nobody was asked


def test_a_query_that_has_ended_is_gone_and_one_of_its_name_begins_anew(
    engine: SparkEngine, session: Session
) -> None:
    watched(engine)
    for i in range(3):
        session.batch("one", i)
        session.batch("two", i)
    assert set(engine.observe().queries) == {"one", "two"}
    session.end("one")
    seen = engine.observe()
    assert set(seen.queries) == {"two"}
    assert set(seen.operators) == {"read", "stage-2"}


def test_what_is_kept_of_queries_is_bounded_and_goes_with_them() -> None:
    log, stages = ProgressLog(), StageLog()
    for query in range(1000):
        run = f"run-{query}"
        for i in range(10):
            log.add(Batch(query="q", run_id=run, id=i, start=query + i / 10, duration=0.1, rows=1))
        stages.add([_ended(run, i) for i in range(10)])
        stages.retain(log.queries())
        log.forget(run)
        stages.retain(log.queries())
    assert log.queries() == {}
    assert len(stages) == 0


def test_what_is_kept_of_one_query_is_bounded_and_so_are_queries_nobody_ended() -> None:
    log, stages = ProgressLog(), StageLog()
    for i in range(5000):
        log.add(Batch(query="q", run_id="run", id=i, start=float(i), duration=0.1, rows=1))
        stages.add([_ended("run", i)])
    assert len(log.queries()["run"]) <= KEPT_BATCHES
    assert len(stages) <= KEPT_BATCHES
    for query in range(1000):
        run = f"run-{query}"
        log.add(Batch(query="q", run_id=run, id=0, start=1e4 + query, duration=0.1, rows=1))
        stages.add([_ended(run, 0)])
    assert len(log.queries()) == MOST_QUERIES
    assert len(stages) <= MOST_QUERIES * KEPT_BATCHES


def _ended(run: str, batch: int) -> Stage:
    return Stage(
        id=batch, run_id=run, batch=batch, done=True, tasks=1, run_time=1.0, cpu_time=1.0,
        fetch_wait=0.0, input_records=1, read_records=0, write_records=0,
    )  # fmt: skip


class Quotas:
    """A cluster of one executor whose quota can be set."""

    limited = True
    spec = SimpleNamespace(cpu_share=0.5)

    def __init__(self) -> None:
        self.quota = 0.5

    def executors(self, app: str) -> dict[str, int]:
        return {"0": 1}

    def share(self, executor: str, app: str) -> float:
        return self.quota

    def nominal_share(self, executor: str, app: str) -> float:
        return 0.5

    def set_share(self, executor: str, share: float, app: str) -> None:
        self.quota = share

    def cpu_seconds(self, app: str) -> dict[str, float]:
        return {"0": 1.0}


def test_a_cpu_share_is_set_at_once_and_work_counts_as_at_full_cpu(session: Session) -> None:
    cluster: Any = Quotas()
    engine = SparkEngine(
        session, window=1000.0, cluster=cluster, arrivals=True, status=rest(session)
    )
    engine.attach()
    watched(engine)
    for i in range(4):
        session.batch("q", i)
    before = engine.observe()
    share = {"executors": Change(before=1, slots=1, raw=1.0, cpu_share=0.5)}
    engine.apply(share)
    assert cluster.quota == 0.25
    for i in range(4, 8):
        session.batch("q", i)
    after = engine.observe()
    assert {slot.cpu_share for slot in after.pools["executors"]} == {0.5}
    half, full = after.queries["q"].busy_per_record, before.queries["q"].busy_per_record
    assert half is not None and full is not None and half < full
    engine.detach()


def test_arrivals_are_kept_only_when_asked_for(session: Session) -> None:
    for asked in (True, False):
        engine = SparkEngine(session, window=1000.0, arrivals=asked, status=rest(session))
        engine.attach()
        watched(engine)
        for i in range(3):
            session.batch(f"q{asked}", i)
        (first, *others) = engine.observe().operators.values()
        assert (first.arrivals is not None) == asked
        assert all(o.arrivals is None for o in others)
        if first.arrivals is not None:
            assert first.arrivals.each * len(first.arrivals) == pytest.approx(40_000, rel=0.01)
        engine.detach()


@pytest.mark.parametrize("retained", [10, 1000])
def test_after_evictions_decisions_come_again_at_the_second_look(
    engine: SparkEngine, session: Session, driver: FakeDriver, retained: int
) -> None:
    """A pause in which more stages ran than Spark keeps is an error once, and then forgotten."""
    watched(engine)
    session.batch("one", 0)
    engine.observe()
    session.next_stage = first = 3 * retained
    driver.stages = {first - 1: stage(first - 1)}
    session.batch("one", 1)
    driver.stages[first + 2] = stage(first + 2, "ACTIVE", description="one\nrunId = one\nbatch = 2")
    with pytest.raises(EngineError, match=r"forgot stages.*spark.ui.retainedStages"):
        engine.observe()
    session.next_stage = first + 2
    session.batch("one", 2)
    assert engine.observe().queries["one"].batches >= 1


def query(run: str, *, id: str = "") -> SimpleNamespace:
    """An active query that tells nothing but that it runs."""
    return SimpleNamespace(runId=run, name=run, id=id or run)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The engine's time, which stands still until it is moved."""
    now = SimpleNamespace(time=time.time())
    monkeypatch.setattr("penstock.spark.engine.time.time", lambda: now.time)
    return now


def test_a_session_without_a_query_is_a_finding_after_a_minute(
    engine: SparkEngine, session: Session, clock: SimpleNamespace
) -> None:
    found = []
    for seconds in (0.0, 59.0, 2.0):
        clock.time += seconds
        with pytest.raises(NotReady) as told:
            engine.observe()
        found.append([(f.kind, f.seconds) for f in told.value.findings])
    assert found == [[], [], [("no-query", 61.0)]]
    session.active = [query("one")]
    with pytest.raises(NotReady) as told:
        engine.observe()
    assert told.value.findings == ()


def test_a_query_of_which_nothing_is_known_is_named_for_a_minute(
    engine: SparkEngine, session: Session, clock: SimpleNamespace
) -> None:
    session.active = [query("one"), query("new")]
    watched(engine)
    session.batch("one", 0)
    assert engine.observe().unmeasured == ("new",)
    clock.time += 61.0
    assert engine.observe().unmeasured == ()


def test_a_query_that_is_started_again_is_a_finding(engine: SparkEngine, session: Session) -> None:
    session.active = [query("one"), query("first", id="same")]
    watched(engine)
    session.batch("one", 0)
    assert engine.observe().findings == ()
    session.active[1] = query("second", id="same")
    (found,) = engine.observe().findings
    assert (found.kind, found.query) == ("restarted", "second")
