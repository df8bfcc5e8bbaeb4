"""Reaching a Kafka cluster: is it there, its topics and how far they are.

Every client is made here, quiet: librdkafka would write its troubles to the terminal; they are
collected instead and become part of the error that is raised.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.core.errors import EngineError, InputError, MissingError
from penstock.lab.kafka.jars import GET_CLIENT

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient

START_ONE = "start one with `penstock lab kafka broker`, or check the address"
ANSWER_SECONDS = 10.0
ADMIN_SECONDS = 30.0  # to make or remove a topic
SETTLE = 0.2  # seconds in which end offsets may not move before they count
# Offsets name rows: nothing may be deleted, however old the events are.
TOPIC = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
LOOK = 0.05
Client = Mapping[str, Any]
T = TypeVar("T")


def client(bootstrap_servers: str, extra: Client | None = None) -> dict[str, Any]:
    """The settings of a quiet client; ``extra`` are librdkafka's own, for TLS and passwords."""
    addresses(bootstrap_servers)
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise MissingError(f"confluent-kafka is not installed. {GET_CLIENT}") from None
    quiet = {"log_level": 0, "log.connection.close": False}
    return {"bootstrap.servers": bootstrap_servers, **quiet, **(extra or {})}


def addresses(bootstrap_servers: str) -> list[tuple[str, int]]:
    """Hosts and ports of a list such as ``a:9092,b:9092``.

    >>> addresses("127.0.0.1:9092, [::1]:9093")
    [('127.0.0.1', 9092), ('::1', 9093)]
    """
    found = []
    for text in bootstrap_servers.split(","):
        host, colon, port = text.strip().rpartition(":")
        if not (colon and host and port.isdigit() and 0 < int(port) < 65536):
            raise InputError(
                f"bootstrap servers {bootstrap_servers!r}: {text.strip()!r} must look like "
                "HOST:PORT, several with commas, such as 127.0.0.1:9092"
            )
        found.append((host.strip("[]"), int(port)))
    return found


class KafkaCluster:
    """A Kafka cluster that answered when this was made.

    ``extra`` are librdkafka's settings for TLS and passwords. Raises MissingError if no server
    answers ``within`` seconds; at once if all of them refuse.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        extra: Client | None = None,
        within: float = ANSWER_SECONDS,
    ) -> None:
        self.bootstrap_servers, self.extra = bootstrap_servers, dict(extra or {})
        self._admin = _reached(bootstrap_servers, self.extra, within)

    def topics(self) -> dict[str, int]:
        """Every topic and its number of partitions."""
        with _kafka("list the topics"):
            listed = self._admin.list_topics(timeout=ANSWER_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in listed.items() if not topic.error}

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic that keeps its records for ever, on as many replicas as there are brokers.

        At most three replicas. One that exists already with as many partitions is left as it is.
        """
        from confluent_kafka.cimpl import NewTopic

        if partitions < 1:
            raise InputError(f"partitions {partitions} of topic {name} must be ≥ 1")
        have = self.topics().get(name)
        if have is not None:
            if have != partitions:
                raise InputError(
                    f"topic {name} has {have} partitions, not {partitions}: ask for {have}, use "
                    "another name, or delete it"
                )
            return
        with _kafka(f"make topic {name}"):
            brokers = len(self._admin.list_topics(timeout=ANSWER_SECONDS).brokers)
            new = NewTopic(name, partitions, min(brokers, 3), config=TOPIC)
            _wait(self._admin.create_topics([new], operation_timeout=ADMIN_SECONDS))
        _until(lambda: self.topics().get(name) == partitions, f"topic {name} to be known")

    def delete_topic(self, name: str) -> None:
        """Delete a topic; one that does not exist is an error."""
        if name not in self.topics():
            known = ", ".join(sorted(self.topics())) or "none"
            raise InputError(f"there is no topic {name}; topics: {known}")
        with _kafka(f"delete topic {name}"):
            _wait(self._admin.delete_topics([name], operation_timeout=ADMIN_SECONDS))
        _until(lambda: name not in self.topics(), f"topic {name} to be gone")

    def end_offsets(self, name: str) -> dict[int, int]:
        """The end offset of every partition of a topic."""
        from confluent_kafka import TopicPartition, admin

        count = self.topics().get(name)
        if count is None:
            raise InputError(f"there is no topic {name}")
        spec: Any = admin.OffsetSpec  # type: ignore[attr-defined]
        asked = {TopicPartition(name, p): spec.latest() for p in range(count)}

        def ask() -> dict[int, int]:
            answers = self._admin.list_offsets(asked, request_timeout=ANSWER_SECONDS)
            return {place.partition: f.result().offset for place, f in answers.items()}

        return _patiently(f"ask for the offsets of topic {name}", ask)

    def settled_offsets(self, name: str) -> dict[int, int]:
        """The end offsets once they stand still: a killed producer's last may be under way."""
        before = self.end_offsets(name)
        while True:
            time.sleep(SETTLE)
            now = self.end_offsets(name)
            if now == before:
                return now
            before = now

    def first_value(self, name: str) -> bytes | None:
        """The value of the first record of partition 0, or None if that is empty."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        if self.end_offsets(name)[0] == 0:
            return None
        settings = client(self.bootstrap_servers, self.extra)
        consumer = Consumer(settings | {"group.id": "penstock", "enable.auto.commit": False})
        try:
            with _kafka(f"read topic {name}"):
                consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
                message = consumer.poll(ANSWER_SECONDS)
        finally:
            consumer.close()
        if message is None or message.error() is not None:
            why = "no answer" if message is None else message.error()
            raise EngineError(f"cannot read the first record of topic {name}: {why}")
        if message.offset() != 0:
            raise InputError(
                f"topic {name} begins at offset {message.offset()}, not 0: records were deleted. "
                "Use another topic, or delete it"
            )
        value = message.value()
        return value if isinstance(value, bytes) else str(value).encode()


def producer(bootstrap_servers: str, settings: Client, extra: Client | None = None) -> Producer:
    """A quiet producer."""
    from confluent_kafka import Producer

    return Producer(client(bootstrap_servers, extra) | dict(settings))


def _reached(bootstrap_servers: str, extra: Client, within: float) -> AdminClient:
    settings = client(bootstrap_servers, extra)
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    begun = time.monotonic()
    said = {f"{h}:{p}": _connect(h, p, within) for h, p in addresses(bootstrap_servers)}
    why = "no server accepts a connection"
    if not all(said.values()):
        troubles: list[Any] = []
        admin = AdminClient(settings | {"error_cb": troubles.append})
        try:
            admin.list_topics(timeout=max(within - (time.monotonic() - begun), 1.0))
            return admin
        except KafkaException as problem:
            why = "it accepts connections, but does not answer as Kafka does (TLS, a password?)"
            last = troubles[-1] if troubles else problem.args[0]
            said = {address: text or str(last.str()) for address, text in said.items()}
    tried = "; ".join(f"{address}: {text}" for address, text in said.items())
    raise MissingError(
        f"cannot reach Kafka at {bootstrap_servers} after {time.monotonic() - begun:.1f} s of "
        f"{within:g}: {why}. Tried {tried}. To get on, {START_ONE}"
    )


def _connect(host: str, port: int, within: float) -> str | None:
    """What is wrong with an address, or None if it accepts connections."""
    try:
        with socket.create_connection((host, port), timeout=within):
            return None
    except TimeoutError:
        return f"no answer within {within:g} s"
    except OSError as problem:
        return problem.strerror or str(problem)


@contextlib.contextmanager
def _kafka(what: str) -> Iterator[None]:
    """Kafka's errors as ours."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as problem:
        raise EngineError(f"Kafka could not {what}: {problem.args[0].str()}") from None
    except TimeoutError:
        raise EngineError(f"Kafka did not {what} within {ADMIN_SECONDS:g} s") from None


def _patiently(what: str, ask: Callable[[], T]) -> T:
    """Ask again while the cluster is busy with itself: a new topic, a broker that came back."""
    from confluent_kafka import KafkaError, KafkaException

    passing = {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
    }
    deadline = time.monotonic() + ADMIN_SECONDS
    with _kafka(what):
        while True:
            try:
                return ask()
            except KafkaException as problem:
                if problem.args[0].code() not in passing or time.monotonic() > deadline:
                    raise
                time.sleep(LOOK)


def _wait(answers: Mapping[str, Future[Any]]) -> None:
    for answer in answers.values():
        answer.result(ADMIN_SECONDS)


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + ADMIN_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise EngineError(f"Kafka took more than {ADMIN_SECONDS:g} s for {what}")
        time.sleep(LOOK)
