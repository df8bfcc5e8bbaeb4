"""The cluster of a Spark bench: started when it is first needed, kept warm between runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from penstock.batches.values import Executor
from penstock.core.errors import InputError
from penstock.lab.calibrate.saturation import fresh_folder, resize
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.rig.allocation import Allocation
from penstock.lab.rig.feed import Feed
from penstock.lab.rig.settings import SparkSettings
from penstock.spark.read.rest import Rest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Rig:
    """One cluster and one session for all runs; a context manager that leaves nothing behind.

    Only a run under Spark's own allocation needs another kind of session, see ``use``.
    ``servers`` of Kafka, if the events come from there and not from a broker of ours · ``say``
    gets one line per step of progress · ``feed`` where the events come from.
    """

    def __init__(
        self,
        settings: SparkSettings,
        *,
        servers: str | None = None,
        say: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.say = say
        self.feed = Feed(settings, servers=servers, say=say)
        self.warmed: set[str] = set()
        self._cluster: LocalCluster | None = None
        self._session: Any = None
        self._allocation: Allocation | None = None

    def use(self, allocation: Allocation | None) -> None:
        """Have this kind of session from now on; one of another kind ends, the cluster stays.

        A new session has a new driver, which has to warm up again.
        """
        if allocation == self._allocation:
            return
        self._allocation = allocation
        session, self._session = self._session, None
        self.warmed.clear()
        if session is not None:
            session.stop()

    @property
    def cluster(self) -> LocalCluster:
        """The running cluster."""
        self.session()
        assert self._cluster is not None
        return self._cluster

    @property
    def warm(self) -> bool:
        """Whether all executors are past their time at full speed; not while one leaves."""
        try:
            return self.cluster.warm
        except InputError:
            return False

    def session(self) -> SparkSession:
        """The session, on a new cluster if there is none."""
        settings, allocation = self.settings, self._allocation
        if self._cluster is None:
            spec = ClusterSpec(slots=settings.slots, cpu_share=settings.cpu_share)
            self._cluster = LocalCluster(spec, say=self.say).start()
        if self._session is None:
            conf = {
                "spark.sql.shuffle.partitions": str(settings.partitions),
                "spark.ui.retainedDeadExecutors": "1000",  # their times are read after a run
            }
            first = 1 if allocation is None else allocation.start
            conf |= self.feed.conf()
            conf |= {} if allocation is None else allocation.conf()
            self._session = self._cluster.session("penstock bench", start_with=first, conf=conf)
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
        with fresh_folder(self.cluster.folder) as path:
            yield path

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
        try:
            self.renew()
        finally:
            self.feed.close()
