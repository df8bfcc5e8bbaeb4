"""Where the events of a run come from: made where they are read, or written to Kafka."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.core.errors import PenstockError
from penstock.lab.queries.nexmark_queries import NexmarkQuery
from penstock.lab.rig.settings import KAFKA, SparkSettings
from penstock.workloads.nexmark import NexmarkStream

if TYPE_CHECKING:
    from penstock.lab.kafka.broker import LocalBroker
    from penstock.lab.sources.kafka import KafkaTopics

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
