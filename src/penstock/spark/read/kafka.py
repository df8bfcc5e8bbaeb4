"""What Kafka has by now: the newest offsets of a source, asked beside the query that reads it.

A query asks Kafka once per batch, with a client that is not safe to share and on its own thread.
While a batch runs for minutes nobody asks. So each Kafka source gets a consumer of ours in the
driver's JVM, made from the source's own settings and tokens, that belongs to no group, is given
no partition and reads no record: it only asks where the partitions end. It is used by one thread
of ours, and an observation waits for it a moment, never longer. Where Kafka does not answer,
nothing is known, and what has come is taken as rate × time.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

log = logging.getLogger("penstock")

KAFKA = "KafkaMicroBatchStream"
WAIT = 0.5  # seconds that an observation waits for an answer; a few milliseconds are normal
WAIT_FOR_ALL = 2.0  # seconds that it waits for the answers to all sources
ANSWER_SECONDS = 5  # that Kafka has for one
REST = 60.0  # seconds without asking after a failure
MOST_SOURCES = 20  # that are asked, each with a connection to Kafka of its own
# Ours only asks for offsets, so what is about groups and commits is left out.
LEFT_OUT = ("group.id", "group.instance.id", "group.protocol", "interceptor.classes")
Partitions = Mapping[str, Collection[str]]  # numbers of partitions by topic, as offsets have them
Ask = Callable[[Partitions], int]


class KafkaEnds:
    """The records that Kafka sources have, from the beginning of their partitions.

    ``connect`` makes something that asks for one source; by default a consumer in its JVM.
    """

    def __init__(self, connect: Callable[[Any], Ask] | None = None) -> None:
        self._connect = consumer_for if connect is None else connect
        self._askers: dict[tuple[str, int], _Asker] = {}
        self._waited = 0.0  # seconds since the last look began

    def newest(self, run_id: str, number: int, source: Any, partitions: Partitions) -> int | None:
        """The sum of the newest offsets of some partitions; ``None`` if it is not known in time.

        Of the query ``run_id`` the source with that number.
        """
        if not partitions:
            return None
        asker = self._askers.get((run_id, number))
        if asker is None:
            if len(self._askers) >= MOST_SOURCES:
                return None
            asker = _Asker(f"{run_id[:8]}-{number}", lambda: self._connect(source))
            self._askers[run_id, number] = asker
        begun = time.monotonic()
        try:
            return asker.answer(partitions, max(0.0, min(WAIT, WAIT_FOR_ALL - self._waited)))
        finally:
            self._waited += time.monotonic() - begun

    def retain(self, run_ids: Collection[str]) -> None:
        """End a look: let go of the sources of queries that have ended."""
        self._waited = 0.0
        for key in [k for k in self._askers if k[0] not in run_ids]:
            self._askers.pop(key).stop()

    def close(self) -> None:
        """Let go of all."""
        self.retain(())


class _Asker:
    """One source and the thread that asks for it; at most one question is open at a time."""

    def __init__(self, name: str, connect: Callable[[], Ask]) -> None:
        self._connect = connect
        self._ask: Ask | None = None
        self._changed = threading.Condition()
        self._question: Partitions | None = None
        self._answer: int | None = None
        self._open = self._stopped = self._warned = False
        self._not_before = 0.0
        thread = threading.Thread(target=self._work, name=f"penstock-kafka-{name}", daemon=True)
        thread.start()

    def answer(self, partitions: Partitions, within: float) -> int | None:
        with self._changed:
            if not self._open and time.monotonic() >= self._not_before:
                self._question, self._answer, self._open = partitions, None, True
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._open, within)
                return None if self._open else self._answer
            # A late answer is that of another moment: it counts for nothing.
            return None

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or self._question is not None)
                if self._stopped:
                    break
                question, self._question = self._question, None
            assert question is not None
            answer = self._asked(question)
            with self._changed:
                self._answer, self._open = answer, False
                if answer is None:
                    self._not_before = time.monotonic() + REST
                self._changed.notify_all()
        self._let_go()

    def _asked(self, question: Partitions) -> int | None:
        try:
            if self._ask is None:
                self._ask = self._connect()
            return self._ask(question)
        except Exception as error:  # whatever Kafka, py4j or another version of them says
            self._let_go()
            if not self._warned:
                self._warned = True
                problem = str(error).strip().split("\n", 1)[0]
                log.warning(
                    "Kafka does not tell its newest offsets, what has come is estimated: %s",
                    problem,
                )
            return None

    def _let_go(self) -> None:
        ask, self._ask = self._ask, None
        close = getattr(ask, "close", None)
        if close is not None:
            try:
                close()
            except Exception:  # the JVM may be gone
                log.debug("a Kafka consumer could not be closed", exc_info=True)


def consumer_for(source: Any) -> Ask:
    """A consumer of our own, in the JVM of a ``KafkaMicroBatchStream``, made of its settings."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    return _Consumer(context._jvm, source)


class _Consumer:
    """Asks for the ends of partitions; of one thread."""

    def __init__(self, jvm: Any, source: Any) -> None:
        self._jvm = jvm
        # Kafka's classes may be known to the session only. The JVM has a thread for each of ours.
        loader = source.getClass().getClassLoader()
        jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)
        settings = jvm.java.util.HashMap(source.kafkaOffsetReader().driverKafkaParams())
        for name in LEFT_OUT:
            settings.remove(name)
        settings.put("enable.auto.commit", "false")
        settings.put("client.id", "penstock-newest-offsets")
        settings.put("allow.auto.create.topics", "false")
        self._consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(_with_token(settings))
        self._json = jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
        self._patience = jvm.java.time.Duration.ofSeconds(ANSWER_SECONDS)
        self._asked: Partitions | None = None
        self._places: Any = None

    def __call__(self, partitions: Partitions) -> int:
        if partitions != self._asked:
            self._places = self._jvm.java.util.ArrayList()
            for topic, numbers in partitions.items():
                for number in numbers:
                    self._places.add(
                        self._jvm.org.apache.kafka.common.TopicPartition(topic, int(number))
                    )
            self._asked = partitions
        ends = self._consumer.endOffsets(self._places, self._patience)
        found = json.loads(self._json.writeValueAsString(ends.values()))
        if len(found) != self._places.size():
            raise ValueError(f"{len(found)} of {self._places.size()} partitions were told")
        return sum(map(int, found))

    def close(self) -> None:
        self._consumer.close()


def _with_token(settings: Any) -> Any:
    """The settings with the delegation token that Spark has for this Kafka, if it has one."""
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm
    scala = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(settings)
    updater = jvm.org.apache.spark.kafka010.KafkaConfigUpdater("penstock", scala)
    return updater.setAuthenticationConfigIfNeeded().build()
