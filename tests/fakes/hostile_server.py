"""A server on loopback that answers as no good server does, and as a good one when told to."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GOOD = {"id": "app-1", "cores": 4}
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
PACE = 0.02  # seconds between two bytes of a slow answer
LONGEST = 30.0  # seconds after which the patient fail, instead of waiting for ever


class Connection:
    """What a behaviour can do with the client that asked."""

    def __init__(self, handler: BaseHTTPRequestHandler, stopped: threading.Event) -> None:
        self._handler = handler
        self._stopped = stopped

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self._handler.connection.sendall(part)

    def repeat(self, part: bytes, pause: float = 0.0) -> None:
        """Send the same until the client goes away, or for a long time."""
        end = time.monotonic() + LONGEST
        while not self._stopped.wait(pause) and time.monotonic() < end:
            self.send(part)

    def drip(self, text: bytes) -> None:
        """One byte at a time, and the last one again and again."""
        for byte in text:
            if self._stopped.wait(PACE):
                return
            self.send(bytes([byte]))
        self.repeat(text[-1:], PACE)

    def hang(self) -> None:
        self._stopped.wait(LONGEST)

    @property
    def path(self) -> str:
        return self._handler.path


Behaviour = Callable[[Connection], None]


def body(text: str | bytes, *headers: bytes) -> Behaviour:
    """A whole answer with this text."""
    data = text.encode() if isinstance(text, str) else text
    length = b"Content-Length: %d\r\n" % len(data)
    return lambda c: c.send(OK, length, *headers, b"\r\n", data)


def redirect(target: str | None) -> Behaviour:
    def behave(c: Connection) -> None:
        place = c.path if target is None else target
        c.send(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: ", place.encode())
        c.send(b"\r\n\r\n")

    return behave


def endless(head: bytes, part: bytes, pause: float = 0.0) -> Behaviour:
    """An answer that begins like this and goes on like that."""

    def behave(c: Connection) -> None:
        c.send(head)
        c.repeat(part, pause)

    return behave


def announced(size: int) -> Behaviour:
    """An answer that is said to have this size, and never comes."""

    def behave(c: Connection) -> None:
        c.send(OK, b"Content-Length: %d\r\n\r\n[" % size)
        c.hang()

    return behave


# Names of what may go wrong. With one megabyte and a second none of them is over by itself.
HOSTILE: dict[str, Behaviour] = {
    "says nothing": lambda c: c.hang(),
    "hangs up": lambda c: None,
    "one byte now and then": lambda c: c.drip(OK + b'\r\n[1, "and so on'),
    "one byte of a chunk now and then": lambda c: c.drip(CHUNKED + b'fffffff\r\n["and so on'),
    "a status line without end": endless(b"HTTP/1.1 200 ", b"O" * 999),
    "headers without end": endless(OK, b"X-More: again\r\n"),
    "slow headers without end": endless(OK, b"X-More: again\r\n", PACE),
    "one header without end": lambda c: c.drip(OK + b"X-More: and so on"),
    "continue without end": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 99),
    "no HTTP": lambda c: c.send(b"\x00\xff\x15\x03SSH-2.0-OpenSSH\r\n" * 20),
    "announces 300 MB": announced(300 << 20),
    "sends 300 MB": lambda c: c.send(OK, b"\r\n", *[b"[ " * (1 << 15)] * (300 << 4)),
    "sends without end": endless(OK + b"\r\n[", b"1," * 9999),
    "chunks without end": endless(CHUNKED + b"1\r\n[\r\n", b"2710\r\n" + b"1," * 5000 + b"\r\n"),
    "trailers without end": endless(CHUNKED + b"2\r\n[]\r\n0\r\n", b"X-More: again\r\n" * 99),
    "chunks that are none": lambda c: c.send(CHUNKED, b"zz\r\n[]\r\n0\r\n\r\n"),
    "a chunk of less than nothing": lambda c: c.send(CHUNKED, b"-5\r\n[]\r\n0\r\n\r\n"),
    "a chunk of minus one": endless(CHUNKED + b"-1\r\n", b"1," * 9999),
    "a chunk size without end": endless(CHUNKED, b"f" * 999),
    "a gzip bomb": body(gzip.compress(bytes(20 << 20)), b"Content-Encoding: gzip\r\n"),
    "ends early": lambda c: c.send(OK, b'Content-Length: 99\r\n\r\n{"id": '),
    "redirects in a circle": redirect(None),
    "redirects to a file": redirect("file:///etc/hostname"),
    "redirects to nowhere": redirect("http://[:::"),
    "an empty text": body(""),
    "text that is not UTF-8": body(b'{"id": "\xff\xfe"}'),
    "lists inside of each other": body("[" * 100_000 + "]" * 100_000),
    "objects inside of each other": body('{"a":' * 50_000 + "1" + "}" * 50_000),
    "many empty lists": body("[" + "[]," * 100_000 + "0]"),
    "many empty objects": body("[" + "{}," * 100_000 + "0]"),
    "one wide character": body('["' + "a" * 150_000 + "\U0001f600" + '"]'),
    "many keys": body("{" + ",".join(f'"{n}":0' for n in range(30_000)) + "}"),
    "a number without end": body('{"cores": ' + "9" * 100_000 + "}"),
    "a number beyond all": body('{"cores": 1e999}'),
    "NaN": body('{"cores": NaN}'),
    "Infinity": body('{"cores": -Infinity}'),
    "a key twice": body('{"cores": 4, "cores": 4000}'),
    "a web page": body("<html>", b"Content-Type: text/html\r\n"),
    "a server's error": lambda c: c.send(b"HTTP/1.1 500 \x1b[2Jboom\r\nContent-Length: 0\r\n\r\n"),
    "nothing new": lambda c: c.send(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
}


def misbehave(
    behaviour: Behaviour, handler: BaseHTTPRequestHandler, stopped: threading.Event
) -> None:
    """Answer like this until the client goes away."""
    handler.close_connection = True
    with suppress(OSError):
        behaviour(Connection(handler, stopped))


class HostileServer:
    """Answers with ``behaviour``, or ``GOOD`` where that is ``None``; ``asked`` are the headers."""

    def __init__(self) -> None:
        self.behaviour: Behaviour | None = None
        self.asked: list[tuple[str, dict[str, str]]] = []
        stopped = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append((self.path, dict(self.headers)))
                misbehave(server.behaviour or body(json.dumps(GOOD)), self, stopped)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._stopped = stopped
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def hostile_server() -> Iterator[HostileServer]:
    server = HostileServer()
    try:
        yield server
    finally:
        server.close()
