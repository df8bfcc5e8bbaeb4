"""The cluster of a Spark bench: started when it is first needed, kept warm between runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from penstock.bench.calibrate import resize
from penstock.bench.spark.settings import SparkSettings
from penstock.spark.local.cluster import ClusterSpec, LocalCluster
from penstock.spark.measure.rest import Executor, Rest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL_SPEED = 1.0  # of a core


class Rig:
    """One cluster and one session for all runs; a context manager that leaves nothing behind.

    ``say`` gets one line per step of progress.
    """

    def __init__(self, settings: SparkSettings, *, say: Callable[[str], None]) -> None:
        self.settings = settings
        self.say = say
        self.warmed: set[str] = set()
        self._cluster: LocalCluster | None = None
        self._session: Any = None

    @property
    def cluster(self) -> LocalCluster:
        """The running cluster."""
        self.session()
        assert self._cluster is not None
        return self._cluster

    def session(self) -> SparkSession:
        """The session, on a new cluster if there is none."""
        if self._session is None:
            settings = self.settings
            spec = ClusterSpec(slots=settings.slots, cpu_share=settings.cpu_share)
            self._cluster = LocalCluster(spec, say=self.say).start()
            conf = {
                "spark.sql.shuffle.partitions": str(settings.partitions),
                "spark.ui.retainedDeadExecutors": "1000",  # their times are read after a run
            }
            self._session = self._cluster.session("penstock bench", start_with=1, conf=conf)
        session: SparkSession = self._session
        return session

    def resize(self, executors: int) -> None:
        """Wait until there are so many executors."""
        resize(self.session(), executors)

    def executors(self) -> list[Executor]:
        """All executors that this session ever had."""
        context: Any = self.session().sparkContext
        return Rest(context.uiWebUrl, context.applicationId).executors()

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A fresh folder for a query's checkpoint and result; it is gone afterwards."""
        path = self.cluster.folder / f"query-{time.monotonic_ns()}"
        path.mkdir()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def full_speed(self) -> Iterator[None]:
        """Let the executors use whole cores for a while: what is measured has been measured."""
        cluster, share = self.cluster, self.settings.cpu_share
        if not cluster.limited or share is None:
            yield
            return
        here = list(cluster.executors())
        for executor in here:
            cluster.set_share(executor, FULL_SPEED)
        try:
            yield
        finally:
            for executor in set(here) & set(cluster.executors()):
                cluster.set_share(executor, share)

    def renew(self) -> None:
        """Give the cluster up; the next use starts a new one."""
        cluster, self._cluster, self._session = self._cluster, None, None
        self.warmed.clear()
        if cluster is not None:
            cluster.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.renew()
