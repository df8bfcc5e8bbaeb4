"""What the simulator shows is what the Spark engine shows of the same batches.

Everything that a simulated application does is told to a real ``SparkEngine`` the way Spark tells
it: progress documents to its listener, stages, tasks and executors through the REST interface of
a pretended driver. Both engines are asked at the same moments.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest

from penstock.batches.running import BATCH_TIME, Underway
from penstock.batches.snapshot import POOL
from penstock.batches.values import Batch, Executor, Stage, Task
from penstock.core.codec import to_json
from penstock.core.errors import NotReady
from penstock.core.model import Change, Snapshot
from penstock.simulator.microbatch import MicroBatchEngine, Profile
from penstock.simulator.microbatch.query import SimulatedQuery
from penstock.spark.engine import SparkEngine
from penstock.spark.read.rest import Rest
from penstock.workloads.patterns import Constant, Cosine, Pattern, Step
from tests.fakes.driver import FakeDriver
from tests.fakes.microbatch_examples import EXECUTOR, counting, pair
from tests.fakes.spark import FakeSpark

START = 1_800_000_000.0  # when the simulated time 0 is on Spark's clock
LOADS: dict[str, Pattern] = {
    "bids": Cosine(low=300.0, high=5000.0, period=100.0),
    "people": Constant(rps=80.0),
}


class Telling:
    """Tells a Spark engine what a simulated one does."""

    def __init__(self, simulated: MicroBatchEngine, driver: FakeDriver) -> None:
        self.simulated, self.driver = simulated, driver
        self.sparkContext = FakeSpark()
        self.sparkContext.uiWebUrl = driver.url
        self.streams = self
        self.active: list[Any] = []
        self.told = {query.name: 0 for query in simulated.profile.queries}
        self.listener: Any = None

    @property
    def without_trigger(self) -> list[SimulatedQuery]:
        """The queries of which both engines also tell what they are at."""
        return [q for q in self.simulated._queries if not q.profile.trigger]

    def underway(self, *_: Any) -> dict[str, Underway]:
        """What a query is at, as a real one tells by its Java object."""
        found = {}
        for query in self.without_trigger:
            at = query.underway(BATCH_TIME)
            batch = None if at.batch is None else replace(at.batch, start=START + at.batch.start)
            found[query.profile.name] = replace(at, batch=batch)
        return found

    def addListener(self, listener: Any) -> None:  # noqa: N802
        self.listener = listener

    def removeListener(self, listener: Any) -> None:  # noqa: N802
        pass

    def tell(self) -> None:
        """All that happened since the last time."""
        record = self.simulated.record()
        for query in self.without_trigger:
            query.tell_running()
            for some in self.simulated._stages.of(query.profile.name).values():
                for stage in (s for s in some if not s.done):
                    self.driver.stages[stage.id] = running_document(stage)
        self.driver.executors = [executor_document(e) for e in record.executors]
        for by_batch in record.stages.values():
            for stage in (s for stages in by_batch.values() for s in stages):
                self.driver.stages[stage.id] = stage_document(stage)
                if tasks := self.simulated.tasks(stage):
                    self.driver.tasks[stage.id, 0] = [task_document(t) for t in tasks]
        for id in range(max(self.driver.stages, default=0)):
            if id not in self.driver.stages:  # begun before one that has ended
                self.driver.stages[id] = {"status": "ACTIVE", "stageId": id, "numTasks": 1}
        for name, batches in record.batches.items():
            for batch in batches[self.told[name] :]:
                if batch.idle:
                    self.listener.callbacks.idle(name, moment(batch.start))
                else:
                    self.listener.callbacks.progress(progress(batch))
            self.told[name] = len(batches)


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(START + seconds, UTC).isoformat()


def progress(batch: Batch) -> dict[str, Any]:
    size = batch.state_bytes, batch.state_rows
    operators = [
        {"operatorName": name, "memoryUsedBytes": size[0], "numRowsTotal": size[1]}
        for name in batch.state
    ]
    return {
        "runId": batch.run_id, "name": batch.query, "batchId": batch.id,
        "timestamp": moment(batch.start), "batchDuration": batch.duration * 1e3,
        "numInputRows": batch.rows, "stateOperators": operators[::-1],
        "sources": [
            {"description": s.name, "numInputRows": s.rows,
             "endOffset": {"offset": s.taken}, "latestOffset": {"offset": s.available}}
            for s in batch.sources
        ],
        "sink": {"numOutputRows": batch.written},
    }  # fmt: skip


def stage_document(s: Stage) -> dict[str, Any]:
    return {
        "status": "COMPLETE", "stageId": s.id, "attemptId": 0, "numTasks": s.tasks,
        "numCompleteTasks": s.tasks, "executorRunTime": round(s.run_time * 1e3),
        "executorDeserializeTime": 0, "executorCpuTime": round(s.cpu_time * 1e9),
        "inputRecords": s.input_records, "shuffleReadRecords": s.read_records,
        "shuffleWriteRecords": s.write_records,
        "description": f"{s.run_id}\nrunId = {s.run_id}\nbatch = {s.batch}",
        "submissionTime": clock(s.submitted), "completionTime": clock(s.ended),
    }  # fmt: skip


def running_document(s: Stage) -> dict[str, Any]:
    document = stage_document(replace(s, ended=s.submitted))
    return document | {
        "status": "ACTIVE", "numCompleteTasks": s.completed, "numActiveTasks": s.active
    }  # fmt: skip


def clock(seconds: float | None) -> str:
    """A moment of the simulation as Spark writes it, to the millisecond."""
    assert seconds is not None
    text = datetime.fromtimestamp(START + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return f"{text[:-3]}GMT"


def task_document(t: Task) -> dict[str, Any]:
    metrics = {"executorRunTime": round(t.busy * 1e3), "executorDeserializeTime": 0}
    return {"index": t.partition, "executorId": t.executor, "taskMetrics": metrics}


def executor_document(e: Executor) -> dict[str, Any]:
    gone = {} if e.removed is None else {"removeTime": clock(e.removed)}
    return {
        "id": e.id, "hostPort": f"{e.host}:1", "totalCores": e.cores, "isActive": e.alive,
        "addTime": clock(e.added), "totalDuration": round(e.task_seconds * 1e3),
        "completedTasks": e.completed_tasks, "activeTasks": e.active_tasks, **gone,
    }  # fmt: skip


@contextmanager
def both(
    profile: Profile, loads: Pattern | dict[str, Pattern], *, start: int, seed: int = 1
) -> Iterator[tuple[MicroBatchEngine, SparkEngine, Telling]]:
    driver = FakeDriver()
    try:
        simulated = MicroBatchEngine(profile, loads, seconds=600.0, start=start, seed=seed)
        telling = Telling(simulated, driver)
        with (
            patch.object(time, "time", lambda: START + simulated.now),
            patch("penstock.spark.engine.underway_of", telling.underway),
        ):
            spark = SparkEngine(telling, window=15.0, status=Rest(driver.url, "app-1"))
            spark.attach()
            telling.tell()
            for engine in (simulated, spark):
                with pytest.raises(NotReady):
                    engine.observe()  # a first look: loads are measured from here on
            yield simulated, spark, telling
    finally:
        driver.close()


def comparable(seen: Snapshot, start: float) -> Any:
    """Without CPU: a Spark engine measures it only on executors of its own.

    And without what a running query is asked for, which is not pretended here.
    """
    document = to_json(seen)
    document["time"] -= start
    document.pop("findings", None)
    for rescale in document.get("rescales", ()):
        rescale["time"] -= start
    for o in document["operators"].values():
        o.pop("cpu", None)
    for slot in document["pools"][POOL]:
        slot.pop("cpu", None)
        slot.pop("node", None)
    for query in document["queries"].values():
        query.pop("trigger", None)
        query.pop("admission_limit", None)
        for source in query["sources"]:
            source.pop("most_rows", None)
    if document["facts"][POOL]["join"]["origin"] == "assumed":
        del document["facts"][POOL]["join"]
    return document


def same(ours: Any, theirs: Any, where: str = "") -> None:
    """Equal but for the milliseconds that Spark rounds to."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for key in ours:
            same(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            same(a, b, f"{where}[{i}]")
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, rel=5e-3, abs=2e-3), where
    else:
        assert ours == theirs, where


@pytest.mark.parametrize(
    ("profile", "loads", "start"),
    [
        (pair(), LOADS, 4),
        (pair(), LOADS, 1),
        (Profile(version=1, queries=(counting(),)), Step(low=3000.0, high=0.0, at=60.0), 3),
    ],
    ids=["two queries", "overloaded", "data end"],
)
def test_both_engines_see_the_same(
    profile: Profile, loads: Pattern | dict[str, Pattern], start: int
) -> None:
    with both(profile, loads, start=start) as (simulated, spark, telling):
        looks = 0
        for _ in range(10):
            simulated.advance(13.0)
            telling.tell()
            try:
                ours = simulated.observe()
            except NotReady:
                with pytest.raises(NotReady):
                    spark.observe()
                continue
            same(comparable(ours, 0.0), comparable(spark.observe(), START))
            looks += 1
        assert looks >= 7


def test_both_engines_act_and_time_it_the_same() -> None:
    profile = Profile(version=1, queries=(counting(),), executor=EXECUTOR)
    with both(profile, LOADS["bids"], start=2) as (simulated, spark, telling):
        for before, after in ((2, 4), (4, 3), (3, 6), (6, 2)):
            simulated.advance(20.0)
            telling.tell()
            simulated.observe()
            spark.observe()
            ask = {POOL: Change(before=before, slots=after, raw=float(after))}
            spark.apply(ask)
            simulated.apply(ask)
            for _ in range(50):
                simulated.advance(0.5)
                telling.tell()
                spark.pool.track(spark.executors(), time.time())
            same(comparable(simulated.observe(), 0.0), comparable(spark.observe(), START))
        asked = {call[1] for call in telling.sparkContext.calls if call[0] == "decommission"}
        assert {e.id for e in simulated.record().executors if not e.alive} == asked
        costs = simulated.record().rescales
        assert [(c.before, c.after) for c in costs] == [(2, 4), (4, 3), (3, 6), (6, 2)]
        assert all(c.registered and c.steady and c.downtime == 0.0 for c in costs)
        assert [c.first_task is not None for c in costs] == [True, False, True, False]


def test_load_and_cpu_are_those_of_the_time_between_two_looks() -> None:
    """Independent of batches: from the seconds that each executor had tasks."""
    profile = Profile(version=1, queries=(counting(),), executor=EXECUTOR)
    engine = MicroBatchEngine(profile, LOADS["bids"], seconds=200.0, start=3)
    engine.advance(30.0)
    engine.observe()
    then = {e.id: e.task_seconds for e in engine.record().executors}
    engine.advance(40.0)
    slots = engine.observe().pools[POOL]
    now = {e.id: e.task_seconds for e in engine.record().executors}
    for slot in slots:
        assert slot.load == pytest.approx((now[slot.id] - then[slot.id]) / 40.0)
        assert slot.cpu == pytest.approx(0.03 + 0.87 * (slot.load or 0.0), abs=0.05)
