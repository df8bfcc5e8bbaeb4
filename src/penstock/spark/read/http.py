"""One HTTP endpoint of Spark, read and never written, whatever it answers.

A driver may be overloaded, a proxy may hang, and another service may listen at the address. So
all that one observation reads shares one budget of time, bytes and requests, and an answer that
goes beyond it is an error which names the address, the limit and the way out.
"""

from __future__ import annotations

import functools
import http.client
import io
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from penstock.core.errors import EngineError, InputError, PenstockError
from penstock.spark.read import strict_json

# Addresses for tests of networks (RFC 2544), which emulated sites have: only this machine knows
# them, so that a proxy for the world outside must not be asked.
TEST_NETWORKS = ("198.18.", "198.19.")
MIB = 1 << 20
CHUNK = 1 << 16  # bytes read at once
MOST_REDIRECTS = 5
CLOCK_OFF = 2.0  # seconds between two clocks that are not worth a correction
SHOWN = 200  # characters of a foreign text that an error repeats

_REDIRECTS = (301, 302, 303, 307, 308)


class RefusedError(EngineError):
    """Nothing listens at the address."""


class NotSparkError(EngineError):
    """Something answers at the address, but not with what Spark's interface says there."""


class AbsentError(NotSparkError):
    """There is no such document (404): Spark has dropped it, or this is not Spark."""


class LimitError(EngineError):
    """An observation would take more time, bytes or requests than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one observation may take.

    seconds: from its beginning to its end
    bytes: all that is read; also the most that one document may take in memory
    requests: redirects included
    """

    seconds: float = 30.0
    bytes: int = 64 * MIB
    requests: int = 1000

    def __post_init__(self) -> None:
        for name in ("seconds", "bytes", "requests"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} {getattr(self, name)} of an observation must be above 0")


class Endpoint:
    """GETs of JSON documents below one address.

    base: the address, without a slash at its end
    timeout: seconds that the server may be silent
    limits: what one observation may take; a document that is read outside of ``budget`` is one
    token: a bearer token for the server, or for a proxy in front of it
    headers: more headers for it; neither they nor the token go to another host by a redirect
    """

    def __init__(
        self,
        base: str,
        *,
        timeout: float = 20.0,
        limits: Limits | None = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.base = base.rstrip("/")
        self._timeout = timeout
        # Who has the patience for one slow answer has it for one observation.
        self._limits = limits or Limits(seconds=max(timeout, Limits().seconds))
        self._headers = {**(headers or {})}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        for name, value in self._headers.items():
            if not (value.isascii() and value.isprintable()):  # a secret, so it is not repeated
                raise InputError(f"the HTTP header {name} may hold printable ASCII only")
        self._budgets = threading.local()
        self._ahead = 0.0

    @contextmanager
    def budget(
        self,
        *,
        seconds: float | None = None,
        bytes: int | None = None,
        requests: int | None = None,
    ) -> Iterator[None]:
        """One observation: all that this thread reads inside shares these limits.

        What is left out is as the endpoint has it. Inside of another one it changes nothing.
        """
        if self._budget() is not None:
            yield
            return
        limits = Limits(
            seconds=self._limits.seconds if seconds is None else seconds,
            bytes=self._limits.bytes if bytes is None else bytes,
            requests=self._limits.requests if requests is None else requests,
        )
        self._budgets.current = _Budget(limits, self._timeout)
        try:
            yield
        finally:
            self._budgets.current = None

    @property
    def left(self) -> float:
        """The share of the budget that is left, from 1 to 0; 1 outside of one."""
        budget = self._budget()
        return 1.0 if budget is None else budget.left()

    def now(self) -> float:
        """The time on the server's clock, seconds since the epoch.

        All times of batches and executors are the driver's; an ``HTTP Date`` of every answer
        tells how far its clock is from ours. It counts whole seconds, so less is not corrected.
        """
        return time.time() + self._ahead

    def get(self, path: str) -> Any:
        """The JSON document at a path."""
        with self.budget():
            budget = cast(_Budget, self._budget())
            url = self.base + path
            try:
                text = self._read(url, budget)
            except EngineError:
                raise
            except (OSError, http.client.HTTPException, ValueError) as error:
                budget.check_time(url)
                reason = getattr(error, "reason", error)
                if isinstance(reason, ConnectionRefusedError | socket.gaierror):
                    raise RefusedError(f"nothing listens at {url} ({reason})") from error
                raise EngineError(f"no answer at {url}: {shortened(reason)}") from error
            budget.check_weight(url, text)
            try:
                return strict_json.parsed(text)
            except ValueError as error:
                raise EngineError(f"malformed JSON at {url}: {shortened(error)}") from error

    def _budget(self) -> _Budget | None:
        return getattr(self._budgets, "current", None)

    def _read(self, url: str, budget: _Budget) -> bytearray:
        target = url
        for _ in range(MOST_REDIRECTS + 1):
            with self._open(target, budget) as answer:
                if answer.status not in _REDIRECTS or answer.headers["Location"] is None:
                    return self._body(url, answer, budget)
                target = urljoin(target, answer.headers["Location"])
            if urlsplit(target).scheme not in ("http", "https"):
                raise EngineError(f"{url} leads elsewhere: {shortened(target)}")
        raise EngineError(
            f"more than {MOST_REDIRECTS} redirects at {url}, the last to {shortened(target)}; "
            "is it behind a login? Give the driver's own address"
        )

    def _open(self, url: str, budget: _Budget) -> http.client.HTTPResponse:
        budget.ask(url)
        same = urlsplit(url)[:2] == urlsplit(self.base)[:2]
        request = urllib.request.Request(url, headers=self._headers if same else {})
        # Only these: others would follow redirects, or read files, outside of the budget.
        opener = urllib.request.OpenerDirector()
        direct = (urlsplit(url).hostname or "").startswith(TEST_NETWORKS)
        opener.add_handler(urllib.request.ProxyHandler({} if direct else None))
        opener.add_handler(_Http(budget))
        opener.add_handler(_Https(budget))
        return cast(http.client.HTTPResponse, opener.open(request, timeout=budget.patience()))

    def _body(self, url: str, answer: http.client.HTTPResponse, budget: _Budget) -> bytearray:
        if answer.status == 404:
            raise AbsentError(f"404 at {url}")
        if answer.status != 200:
            phrase = http.client.responses.get(answer.status, "")
            raise EngineError(f"{answer.status} {phrase}".rstrip() + f" at {url}")
        if answer.headers.get_content_type() == "text/html":
            raise NotSparkError(f"a web page instead of JSON at {url}")
        encoding = answer.headers.get("Content-Encoding", "identity")
        if encoding.strip().lower() != "identity":
            raise EngineError(
                f"the answer at {url} is compressed ({shortened(encoding)}), which was not asked "
                "for; switch that off in the proxy, or give the driver's own address"
            )
        self._set_clock(answer.headers.get("Date"))
        budget.check_document(url, answer.length or 0)
        text = bytearray()
        while chunk := answer.read(CHUNK):
            text += chunk
            budget.check_document(url, len(text))
        return text

    def _set_clock(self, date: str | None) -> None:
        try:
            ahead = parsedate_to_datetime(date or "").timestamp() + 0.5 - time.time()
        except (ValueError, TypeError, LookupError, ArithmeticError):
            return
        if abs(ahead - self._ahead) > CLOCK_OFF:
            self._ahead = ahead if abs(ahead) > CLOCK_OFF else 0.0


class _Budget:
    """What is left of one observation. ``_url`` is what is read at the moment."""

    def __init__(self, limits: Limits, timeout: float) -> None:
        self._limits = limits
        self._timeout = timeout
        self._deadline = time.monotonic() + limits.seconds
        self._bytes = limits.bytes
        self._requests = limits.requests
        self._url = ""

    def left(self) -> float:
        """The share of the scarcest of the three, 0 to 1."""
        limits, seconds = self._limits, self._deadline - time.monotonic()
        shares = (
            seconds / limits.seconds,
            self._bytes / limits.bytes,
            self._requests / limits.requests,
        )
        return max(0.0, min(shares))

    def ask(self, url: str) -> None:
        """Take one request from what is left."""
        self._url = url
        self.check_time(url)
        if self._requests == 0:
            raise LimitError(
                f"one observation may ask for {self._limits.requests} documents, and {url} would "
                "be one more; shorten the period, so that each has less to read"
            )
        self._requests -= 1

    def patience(self) -> float:
        """Seconds that the server may be silent now; above 0."""
        self.check_time(self._url)
        return max(1e-3, min(self._timeout, self._deadline - time.monotonic()))

    def check_time(self, url: str) -> None:
        """Refuse to go on after the deadline."""
        if time.monotonic() >= self._deadline:
            raise LimitError(
                f"one observation may take {self._limits.seconds:g} s, and they were over at "
                f"{url}; the driver or a proxy before it is overloaded, or it is not Spark"
            )

    def take(self, count: int) -> None:
        """Take so many bytes from what is left."""
        self._bytes -= count
        if self._bytes < 0:
            raise self._too_much(self._url)

    def check_document(self, url: str, length: int) -> None:
        """Refuse a text that is, or is announced to be, too long to be kept and decoded."""
        if 3 * length > self._limits.bytes:
            raise self._too_much(url)

    def check_weight(self, url: str, text: bytearray) -> None:
        """Refuse a text whose values would not fit: two bytes can become an object of sixty."""
        if strict_json.weight(text) > self._limits.bytes:
            raise self._too_much(url)

    def connect(
        self,
        address: tuple[str, int],
        timeout: float | None = None,
        source: tuple[str, int] | None = None,
    ) -> socket.socket:
        """A connection to the first address of a host that takes it, all tried in the time left."""
        problem: OSError | None = None
        for family, kind, protocol, _, found in socket.getaddrinfo(*address, 0, socket.SOCK_STREAM):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(self.patience())
                sock.connect(found)
                sock.settimeout(self.patience())
                return sock
            except OSError as error:
                problem = error
                sock.close()
            except EngineError:
                sock.close()
                raise
        raise problem or OSError("no address")

    def _too_much(self, url: str) -> LimitError:
        return LimitError(
            f"one observation may take {_size(self._limits.bytes)}, and {url} has more; is it a "
            "Spark UI? If so, lower spark.ui.retainedStages and spark.sql.ui.retainedExecutions "
            "in the application"
        )


def shortened(what: object) -> str:
    """A text that somebody else wrote, fit for one line of a message."""
    text = re.sub(r"[^ -~\u00a1-\uffff]+", " ", str(what)[: 2 * SHOWN])
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


@contextmanager
def strange_answers() -> Iterator[None]:
    """An answer of another shape than Spark's is an ``EngineError``, not a crash."""
    try:
        yield
    except PenstockError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        StopIteration,
        RecursionError,
    ) as error:
        problem = shortened(repr(error))
        raise EngineError(f"Spark's REST interface answered strangely: {problem}") from error


class _Http(urllib.request.HTTPHandler):
    def __init__(self, budget: _Budget) -> None:
        super().__init__()
        self._within = budget

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_limited(http.client.HTTPConnection, self._within), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, budget: _Budget) -> None:
        super().__init__()
        self._within = budget

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_limited(http.client.HTTPSConnection, self._within), req)


def _limited(kind: type[http.client.HTTPConnection], budget: _Budget) -> Callable[..., Any]:
    """Makes connections that read within a budget: headers, chunks and what a proxy says too."""

    def connection(host: str, **options: Any) -> http.client.HTTPConnection:
        made: Any = kind(host, **options)
        made.response_class = functools.partial(_Answer, budget)
        made._create_connection = budget.connect
        return cast(http.client.HTTPConnection, made)

    return connection


class _Answer(http.client.HTTPResponse):
    """An answer every byte of which is read within a budget."""

    def __init__(self, budget: _Budget, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        raw = self.fp.detach()
        self.fp = io.BufferedReader(_Metered(cast(socket.SocketIO, raw), sock, budget))


class _Metered(io.RawIOBase):
    """A socket's bytes: none after the deadline, and each of them counted."""

    def __init__(self, raw: socket.SocketIO, sock: socket.socket, budget: _Budget) -> None:
        super().__init__()
        self._raw = raw
        self._sock = sock
        self._budget = budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._budget.patience())
        count = self._raw.readinto(buffer)
        self._budget.take(count or 0)
        return count

    def readall(self) -> bytes:
        # Only a chunk of length −1 asks for this, and would have it all in memory.
        raise http.client.HTTPException("a chunk of negative length")

    def close(self) -> None:
        self._raw.close()
        super().close()


def _size(count: int) -> str:
    """``64 MB`` for so many bytes.

    >>> _size(64 * 1024 * 1024), _size(1000)
    ('64 MB', '1000 bytes')
    """
    return f"{count / MIB:.3g} MB" if count >= MIB / 10 else f"{count} bytes"
