"""Questions to an application and its answers: one JSON document each, over a socket.

An address is a path (a Unix socket, for whoever may open it) or ``host:port`` with a key that both
sides know; the key itself is never sent. Every question opens a connection of its own, so either
side may be restarted at any time.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

from penstock.core.errors import EngineError, InputError, NotReady, PenstockError

WITHIN = 10.0  # seconds for an answer
MOST_BYTES = 16 << 20
KEY_VARIABLE = "PENSTOCK_KEY"
ADD, REMOVE, ROSTER = "add", "remove", "roster"  # what agents ask for, and who watches them
Document = dict[str, Any]
_RAISED: Mapping[str, type[PenstockError]] = {
    kind.__name__: kind for kind in (EngineError, InputError, NotReady)
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where an application listens.

    >>> Address.parse("127.0.0.1:7071").place
    ('127.0.0.1', 7071)
    >>> str(Address.parse("/run/penstock/map.sock"))
    '/run/penstock/map.sock'
    """

    place: str | tuple[str, int]

    @classmethod
    def parse(cls, text: str | Path) -> Address:
        """A path, or host:port."""
        host, colon, port = str(text).rpartition(":")
        if isinstance(text, Path) or "/" in str(text) or not colon:
            return cls(str(text))
        if not (host and port.isdigit() and 0 < int(port) < 65536):
            raise InputError(f"{text!r} is no address: give host:port, or the path of a socket")
        return cls((host.strip("[]"), int(port)))

    @property
    def open_to_others(self) -> bool:
        """Whether anyone who can reach the host can connect."""
        return not isinstance(self.place, str)

    def __str__(self) -> str:
        return self.place if isinstance(self.place, str) else f"{self.place[0]}:{self.place[1]}"


def key_for(address: Address, key: str | None) -> bytes | None:
    """The key of a connection, from ``key`` or the environment; paths need none."""
    found = key or os.environ.get(KEY_VARIABLE)
    if found:
        return found.encode()
    if address.open_to_others:
        raise InputError(
            f"{address} can be reached by others: set the same {KEY_VARIABLE} for the controller "
            "and the applications, or listen at the path of a socket"
        )
    return None


def ask(
    address: Address, question: Document, *, key: str | None = None, within: float = WITHIN
) -> Document:
    """The answer; what the other side raised is raised here."""
    secret = key_for(address, key)
    try:
        with _connected(address, within) as connection:
            if secret is not None:
                answer_challenge(connection, secret)
                deliver_challenge(connection, secret)
            connection.send_bytes(json.dumps(question).encode())
            answer: Document = json.loads(connection.recv_bytes(MOST_BYTES))
    except AuthenticationError:
        raise InputError(
            f"{address} has another key: set the same {KEY_VARIABLE} on both sides"
        ) from None
    except BlockingIOError:
        raise EngineError(f"{address} gave no answer within {within:g} s") from None
    except (OSError, EOFError, ValueError) as error:
        raise EngineError(f"{address} cannot be reached: {error or 'it hung up'}") from error
    if (problem := answer.get("error")) is not None:
        raise _RAISED.get(problem["kind"], EngineError)(problem["text"])
    return answer


class Server:
    """Answers questions in a thread of its own, one after the other, until it is closed."""

    def __init__(
        self, address: Address, answer: Callable[[Document], Document], *, key: str | None = None
    ) -> None:
        self.address = address
        self._answer = answer
        self._key = key_for(address, key)
        self._socket = _listening(address)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="penstock-member", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        if self._closed.is_set():
            return
        self._closed.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join(2 * WITHIN)
        self._socket.close()
        if isinstance(self.address.place, str):
            Path(self.address.place).unlink(missing_ok=True)

    def _serve(self) -> None:
        while not self._closed.is_set():
            # Whoever hangs up, is too slow, has another key or talks nonsense gets no answer.
            with contextlib.suppress(OSError, EOFError, AuthenticationError, ValueError):
                self._converse(self._socket.accept()[0])

    def _converse(self, opened: socket.socket) -> None:
        with _timed(opened, WITHIN) as connection:
            if self._key is not None:
                deliver_challenge(connection, self._key)
                answer_challenge(connection, self._key)
            question = json.loads(connection.recv_bytes(MOST_BYTES))
            connection.send_bytes(json.dumps(self._answered(question)).encode())

    def _answered(self, question: Document) -> Document:
        try:
            return self._answer(question)
        except Exception as error:  # whatever it is, the query of this application goes on
            return {"error": {"kind": type(error).__name__, "text": str(error)}}


def _listening(address: Address) -> socket.socket:
    place = address.place
    try:
        if isinstance(place, str):
            Path(place).unlink(missing_ok=True)  # of one that was killed
            opened = socket.socket(socket.AF_UNIX)
            opened.bind(place)
            Path(place).chmod(0o600)
            opened.listen()
            return opened
        return socket.create_server(place, family=_family(place))
    except OSError as error:
        raise InputError(f"cannot listen at {address}: {error}. Choose another") from None


def _connected(address: Address, within: float) -> Connection:
    place = address.place
    if isinstance(place, str):
        opened = socket.socket(socket.AF_UNIX)
        opened.connect(place)
    else:
        opened = socket.create_connection(place, timeout=within)
    return _timed(opened, within)


def _timed(opened: socket.socket, within: float) -> Connection:
    """A connection on which no read or write takes longer than so many seconds."""
    opened.settimeout(None)
    limit = struct.pack("ll", int(within), int(within % 1.0 * 1e6))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        opened.setsockopt(socket.SOL_SOCKET, option, limit)
    return Connection(opened.detach())


def _family(place: tuple[str, int]) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in place[0] else socket.AF_INET
