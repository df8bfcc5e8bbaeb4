"""What a link between two sites carries, and how long round trips take while it does."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from penstock.core.errors import EngineError
from penstock.lab.sites import namespaces
from penstock.lab.sites.network import Sites

PIECE = 1 << 20  # bytes sent and received at once
CONNECT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLoad:
    """Round trips of a pair in seconds, without and with a TCP flow from ``one`` to ``other``.

    ``throughput`` bytes/s of the flow, in the second half of its time: in the first TCP finds
    its pace.
    """

    one: str
    other: str
    idle: float
    loaded: float
    throughput: float


def loads(sites: Sites, seconds: float) -> list[LinkLoad]:
    """Every pair of sites in turn, for so many seconds each."""
    idle = sites.measure()
    found = []
    for one, other in combinations([site.name for site in sites.spec.sites], 2):
        with _flow(sites, one, other) as received:
            time.sleep(seconds / 2)
            begun, before = time.monotonic(), received[0]
            loaded = sites.ping(one, other, seconds=seconds / 2)
            throughput = (received[0] - before) / (time.monotonic() - begun)
        found.append(
            LinkLoad(
                one=one,
                other=other,
                idle=idle.between(one, other),
                loaded=loaded,
                throughput=throughput,
            )
        )
    return found


@contextlib.contextmanager
def _flow(sites: Sites, one: str, other: str) -> Iterator[list[int]]:
    """Send as much as a link takes; what was received so far, in bytes."""
    received, over = [0], threading.Event()

    def send() -> None:
        piece = bytes(PIECE)
        with contextlib.suppress(OSError):  # the other end was closed
            while not over.is_set():
                source.sendall(piece)

    def receive() -> None:
        piece = bytearray(PIECE)
        with contextlib.suppress(OSError):
            while size := drain.recv_into(piece):
                received[0] += size

    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(
            namespaces.inside(
                sites.namespace(other), lambda: socket.create_server((sites.addresses[other], 0))
            )
        )
        target = listener.getsockname()
        try:
            source = stack.enter_context(
                namespaces.inside(
                    sites.namespace(one), lambda: socket.create_connection(target, CONNECT_SECONDS)
                )
            )
        except OSError as problem:
            raise EngineError(f"{one} cannot connect to {other}: {problem}") from None
        drain, _ = listener.accept()
        stack.enter_context(drain)
        threads = [threading.Thread(target=work, daemon=True) for work in (send, receive)]
        for thread in threads:
            thread.start()
        try:
            yield received
        finally:
            over.set()
            for end in (source, drain):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
