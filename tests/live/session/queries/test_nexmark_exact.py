"""Nexmark's queries stay exact while executors come, die and leave, and over a restart."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.batches.values import Executor
from penstock.core.model import Change
from penstock.lab.clusters.standalone.cluster import LocalCluster
from penstock.lab.queries.nexmark import (
    QUERIES,
    Settings,
    compare,
    start,
    stop,
    wait_until_final,
)
from penstock.spark.act.executors import ExecutorPool
from penstock.spark.read.rest import Rest
from penstock.workloads.nexmark import TABLES, NexmarkEvents, NexmarkStream
from penstock.workloads.patterns import Cosine
from tests.fakes.waiting import until

pytestmark = pytest.mark.spark

SETTINGS = Settings(minute=3.0, watermark=1.0)  # Q5 15 s by 3 s, Q8 and Q11 0.5 s
PATIENCE = 240.0  # seconds; three queries begin at the same time, and one executor may have all


@dataclass(frozen=True)
class Run:
    """What ran, and the moment up to which its results are final."""

    names: tuple[str, ...]
    events: NexmarkStream
    folder: Path
    until: float


class Disturbance:
    """Changes the executors of the session under the running queries."""

    def __init__(self, spark: Any, cluster: LocalCluster) -> None:
        context = spark.sparkContext
        self.cluster = cluster
        self.rest = Rest(context.uiWebUrl, context.applicationId, timeout=PATIENCE)
        self.pool = ExecutorPool(context)

    def alive(self) -> list[Executor]:
        return [e for e in self.rest.executors() if e.alive]

    def resize(self, slots: int) -> None:
        now = self.rest.executors()
        change = Change(before=len(self.alive()), slots=slots, raw=float(slots))
        self.pool.resize(change, now, time.time())
        _until(f"{slots} executors", lambda: len(self.alive()) == slots)
        self.pool.track(self.rest.executors(), time.time())
        assert not self.pool.acting

    def kill_one_that_works(self) -> None:
        _until("every executor has worked", lambda: all(e.completed_tasks for e in self.alive()))
        before = self.alive()
        victim = before[-1].id
        os.kill(self.cluster.executors()[victim], signal.SIGKILL)
        _until("it is gone", lambda: victim not in {e.id for e in self.alive()})
        _until("another one took its place", lambda: len(self.alive()) == len(before))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("q3", "q11", "q5"), id="join, sessions, windows of windows"),
        pytest.param(("q1", "q2", "q8"), id="others", marks=pytest.mark.long),
    ],
)
def ran(spark: Any, cluster: LocalCluster, request: pytest.FixtureRequest) -> Iterator[Run]:
    """Queries at the same time, disturbed, and stopped when their results are final.

    The last of them also ends and starts again.
    """
    names: tuple[str, ...] = request.param
    events = NexmarkStream(
        events=NexmarkEvents(disorder=0.5),
        pattern=Cosine(low=500.0, high=1500.0, period=20.0),
        start=float(int(time.time())),
        seconds=3600.0,
        tables=TABLES,
        partitions=3,
    )
    folder = cluster.folder / "nexmark"

    def begin(name: str) -> Any:
        return start(spark, QUERIES[name], events, SETTINGS, folder=folder / name, trigger=3)

    disturbance = Disturbance(spark, cluster)
    with ExitStack() as stack:
        running = {}
        for name in names:
            running[name] = begin(name)
            stack.callback(running[name].stop)
        disturbance.resize(3)
        _each_finishes_a_batch(running)
        disturbance.kill_one_that_works()
        stop(running[names[-1]], within=1)
        running[names[-1]] = begin(names[-1])
        stack.callback(running[names[-1]].stop)
        _each_finishes_a_batch(running)
        disturbance.resize(2)
        end = time.time()
        for name, query in running.items():
            wait_until_final(query, QUERIES[name], events, end, within=PATIENCE)
        for query in running.values():
            stop(query, within=1)
            assert query.exception() is None
        yield Run(names=names, events=events, folder=folder, until=end)
        disturbance.resize(1)


def test_the_streamed_rows_are_those_of_a_batch(spark: Any, ran: Run) -> None:
    for name in ran.names:
        result = compare(
            spark, QUERIES[name], ran.events, SETTINGS, folder=ran.folder / name, until=ran.until
        )
        assert result.exact, f"{name}: {result}"
        assert result.rows > 5
        assert result.events > 1000


def _each_finishes_a_batch(running: dict[str, Any]) -> None:
    before = {name: _batch(query) for name, query in running.items()}
    for name, query in running.items():
        _until(f"a batch of {name}", lambda q=query, b=before[name]: _batch(q) > b)  # type: ignore[misc]


def _until(what: str, holds: Callable[[], bool]) -> None:
    until(what, holds, PATIENCE)


def _batch(query: Any) -> int:
    progress = query.lastProgress
    return int(progress["batchId"]) if progress else -1
