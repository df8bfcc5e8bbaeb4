"""An Autoscaler beside a query of daily life: what it decided and said, and ordinary queries."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from penstock.core.findings import Finding, FindingKind
from penstock.core.guards import Guards
from penstock.core.loop import Decision
from penstock.core.model import Change, QuerySeen
from penstock.policies import Static
from penstock.spark.autoscaler import Autoscaler
from penstock.spark.engine import SparkEngine
from tests.fakes.waiting import until

RATE = 1000  # records/s of every query here that reads Spark's own rate source
GUARDS = Guards(minimum=1, maximum=3)
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Daily:
    """The session, and what an Autoscaler decided and said since it was started."""

    def __init__(self, spark: Any, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.spark, self.folder = spark, folder
        self.decisions: list[Decision] = []
        self._caplog = caplog
        self._number = 0

    @property
    def executors(self) -> int:
        return int(self.spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1

    @property
    def said(self) -> list[str]:
        return [r.getMessage() for r in self._caplog.records if r.levelno >= logging.INFO]

    @property
    def findings(self) -> list[Finding]:
        return list(self.decisions[-1].seen.findings) if self.decisions else []

    def found(self, kind: FindingKind) -> Finding | None:
        return next((f for f in self.findings if f.kind == kind), None)

    def query(self, name: str) -> QuerySeen:
        """What was last seen of a query."""
        queries = self.decisions[-1].seen.queries if self.decisions else {}
        return queries.get(name, QuerySeen(batches=0, rows=0))

    def held_by(self, guard: str) -> bool:
        """Whether a guard kept three executors where the policy wanted one."""
        return any(
            e.guard == guard and (e.before, e.after) == (1, 3)
            for d in self.decisions
            for e in d.effects
        )

    def checkpoint(self) -> str:
        self._number += 1
        return str(self.folder / f"checkpoint-{self._number}")

    def rows(self, rate: int = RATE) -> DataFrame:
        source = self.spark.readStream.format("rate").option("rowsPerSecond", rate)
        rows: DataFrame = source.option("numPartitions", 2).load()
        return rows

    @contextmanager
    def watched(self, policy: Any = None, **options: Any) -> Iterator[Autoscaler]:
        def record(decision: Decision, _: Any) -> None:
            self.decisions.append(decision)

        with Autoscaler(
            self.spark, policy or Static(slots=1), guards=GUARDS, record=record,
            **{"mode": "act", "period": 0.5, "window": 10.0, **options},
        ) as scaler:  # fmt: skip
            yield scaler


def batches(query: Any) -> int:
    """Batches that have ended."""
    if query.exception() is not None:
        raise AssertionError(query.exception())
    return len(query.recentProgress)


def pausing(seconds: float) -> Callable[[DataFrame, int], None]:
    """A function for foreachBatch that has the driver wait."""

    def write(rows: DataFrame, batch: int) -> None:
        rows.count()
        time.sleep(seconds)

    return write


@contextmanager
def configured(spark: Any, conf: Mapping[str, str]) -> Iterator[None]:
    """A session with other settings for a while."""
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def resize(spark: Any, size: int) -> None:
    """Have a session's executors come or go, and wait for it."""
    engine = SparkEngine(spark)
    alive = [e for e in engine.executors() if e.alive]
    if len(alive) != size:
        change = Change(before=len(alive), slots=size, raw=float(size))
        engine.pool.resize(change, engine.executors(), time.time())
        until(f"{size} executors", lambda: sum(e.alive for e in engine.executors()) == size)
