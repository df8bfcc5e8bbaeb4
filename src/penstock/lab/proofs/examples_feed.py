"""Lines of words at a rate that is changed while they flow, and how many were fed by when."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from penstock.lab.kafka.broker import LocalBroker
from penstock.lab.kafka.cluster import KafkaCluster, client

TICK = 0.05  # seconds between two portions
KEPT_EVERY = 0.5  # seconds between two counts that are kept
LINES = 4096  # different ones, over and over
JOIN_SECONDS = 5.0


def lines_of(vocabulary: int, words: int, seed: int) -> list[bytes]:
    """Lines of ``words`` words each, out of so many different ones, with their line ends."""
    chosen = np.random.default_rng(seed).integers(vocabulary, size=(LINES, words))
    return [b" ".join(b"word%d" % w for w in line) + b"\n" for line in chosen.tolist()]


class Feed(ABC):
    """Feeds lines from a thread of its own; a context manager.

    rate: lines per second, which may be changed at any time
    counts: moments (epoch seconds) and the lines that had been fed by then
    """

    def __init__(self, lines: Sequence[bytes], rate: float) -> None:
        self.rate = rate
        self.counts: list[tuple[float, int]] = []
        self._lines = itertools.cycle(lines)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-feed", daemon=True)

    @abstractmethod
    def _ready(self) -> bool:
        """Wait a moment for whoever reads; whether there is one."""

    @abstractmethod
    def _send(self, lines: list[bytes]) -> None:
        """Hand lines over."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(JOIN_SECONDS)

    @property
    def begun(self) -> bool:
        """Whether anything was fed."""
        return len(self.counts) > 1

    def _run(self) -> None:
        while not self._ready():
            if self._stopped.is_set():
                return
        fed, due, last = 0, 0.0, time.time()
        self.counts.append((last, 0))
        with contextlib.suppress(OSError):  # whoever reads has gone
            while not self._stopped.wait(TICK):
                now = time.time()
                due += self.rate * (now - last)
                last = now
                portion = list(itertools.islice(self._lines, int(due) - fed))
                self._send(portion)
                fed += len(portion)
                if now - self.counts[-1][0] >= KEPT_EVERY:
                    self.counts.append((time.time(), fed))


class SocketFeed(Feed):
    """A server on loopback that feeds the first client."""

    def __init__(self, lines: Sequence[bytes], rate: float) -> None:
        super().__init__(lines, rate)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(0.2)
        self._client: socket.socket | None = None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.getsockname()[1])

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self._client is not None:
            self._client.close()
        self._server.close()

    def _ready(self) -> bool:
        try:
            self._client, _ = self._server.accept()
        except TimeoutError:
            return False
        return True

    def _send(self, lines: list[bytes]) -> None:
        assert self._client is not None
        self._client.sendall(b"".join(lines))


class KafkaFeed(Feed):
    """Writes to a topic of a broker; begins when it is told to."""

    def __init__(
        self, lines: Sequence[bytes], rate: float, *, broker: LocalBroker, topic: str, parts: int
    ) -> None:
        super().__init__([line.rstrip() for line in lines], rate)
        KafkaCluster(broker.bootstrap_servers).create_topic(topic, parts)
        from confluent_kafka import Producer

        settings = {**client(broker.bootstrap_servers), "linger.ms": 5}
        self._producer: Any = Producer(settings)
        self._topic, self._parts = topic, itertools.cycle(range(parts))
        self.may_begin = threading.Event()

    def _ready(self) -> bool:
        return self.may_begin.wait(0.2)

    def _send(self, lines: list[bytes]) -> None:
        for line in lines:
            self._producer.produce(self._topic, line, partition=next(self._parts))
        if self._producer.flush(JOIN_SECONDS):
            raise OSError("the broker does not take records any more")
