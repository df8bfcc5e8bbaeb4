"""The cluster of a Spark bench: started when it is first needed, kept warm between runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from penstock.batches.values import Executor
from penstock.core.errors import InputError, PenstockError
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.queries.nexmark_queries import NexmarkQuery
from penstock.lab.rig.allocation import Allocation
from penstock.lab.rig.saturation import fresh_folder, resize
from penstock.lab.rig.settings import KAFKA, SparkSettings
from penstock.spark.read.rest import Rest
from penstock.workloads.nexmark import NexmarkStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.lab.kafka.broker import LocalBroker
    from penstock.lab.sources.kafka import KafkaTopics


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

    def __exit__(self, *_: object) -> None:
        try:
            self.renew()
        finally:
            self.feed.close()


PROCESSES = 2  # of a producer; at most one per partition
WRITING = 300.0  # seconds for a backlog


class Feed:
    """The embedded source, or a Kafka cluster: one of ours, or that of ``servers``.

    A broker of ours is started when it is first needed, and again if it has died.
    """

    def __init__(
        self,
        settings: SparkSettings,
        *,
        servers: str | None = None,
        say: Callable[[str], None],
    ) -> None:
        self._settings, self._given, self._say = settings, servers, say
        self._broker: LocalBroker | None = None

    def conf(self) -> dict[str, str]:
        """What a session needs to read it."""
        if self._settings.source != KAFKA:
            return {}
        from penstock.lab.kafka.jars import connector_conf

        return connector_conf(self._say)

    @contextmanager
    def topics(
        self, query: NexmarkQuery, events: NexmarkStream, *, backlog: bool = False
    ) -> Iterator[KafkaTopics | None]:
        """Topics of its own for the events of a run, while they are written.

        ``None`` for the embedded source. ``backlog`` waits until what is released is written. The
        topics are gone afterwards.
        """
        if self._settings.source != KAFKA:
            yield None
            return
        from penstock.lab.kafka.cluster import KafkaCluster
        from penstock.lab.kafka.producer import NexmarkProducer
        from penstock.lab.sources.kafka import KafkaTopics

        servers = self._servers()
        producer = NexmarkProducer(
            events,
            bootstrap_servers=servers,
            prefix=f"penstock-{query.name}-{time.time_ns()}",
            columns=dict(query.tables),
            processes=min(PROCESSES, events.partitions),
        )
        try:
            with producer:
                if backlog:
                    producer.catch_up(within=WRITING)
                yield KafkaTopics(bootstrap_servers=servers, prefix=producer.prefix)
        finally:
            with contextlib.suppress(PenstockError):  # the broker may be gone
                cluster = KafkaCluster(servers)
                for topic in producer.topics.values():
                    cluster.delete_topic(topic)

    def close(self) -> None:
        """Stop a broker of ours."""
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.stop()

    def _servers(self) -> str:
        if self._given is not None:
            return self._given
        if self._broker is not None and not self._broker.alive:
            self.close()
        if self._broker is None:
            from penstock.lab.kafka.broker import LocalBroker

            self._broker = LocalBroker(say=self._say).start()
        return self._broker.bootstrap_servers
