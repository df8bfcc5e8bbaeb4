"""Round trips between sites, measured with ICMP echoes from inside them.

No program is needed: a raw socket that was opened inside a site sends from there wherever it is
used. The kernel stamps each answer when it arrives, so a busy machine that lets this program wait
does not make the network look slow.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import median

from penstock.core.errors import EngineError
from penstock.lab.sites import namespaces

_STAMP = 35  # SO_TIMESTAMPNS: the moment of arrival comes with each packet
_REQUEST, _ANSWER = 8, 0  # types of ICMP messages
_ICMP_LEVEL, _FILTER = 255, 1  # SOL_RAW, ICMP_FILTER
ROUNDS = 5
SLACK = 1.0  # seconds that an answer may be late until it counts as lost
TOLERANCE, LEAST_TOLERANCE = 0.05, 0.002  # a share, and seconds

Pair = tuple[str, str]


def tolerance(expected: float) -> float:
    """Seconds that a round trip may be off: 2 ms, or 5 % if that is more.

    >>> [f"{tolerance(seconds):g}" for seconds in (0.0, 0.05, 0.2)]
    ['0.002', '0.0025', '0.01']
    """
    return max(LEAST_TOLERANCE, TOLERANCE * expected)


def open_socket(namespace: int | None) -> socket.socket:
    """A socket for echoes that belongs to a namespace; ``None``: our own."""

    def here() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, _STAMP, 1)
        made.setsockopt(_ICMP_LEVEL, _FILTER, struct.pack("=I", ~(1 << _ANSWER) & 0xFFFFFFFF))
        return made

    return namespaces.inside(namespace, here)


class Mesh:
    """Pings between all pairs of sites.

    ``sockets`` and ``addresses`` by site. Of a pair, the one that comes first there asks.
    """

    def __init__(self, sockets: Mapping[str, socket.socket], addresses: Mapping[str, str]) -> None:
        self._sockets, self._addresses = sockets, addresses
        self._pairs = list(combinations(sockets, 2))
        self._mark = int.from_bytes(os.urandom(2), "big")
        self._number = 0

    @property
    def pairs(self) -> list[Pair]:
        """All pairs, the one that asks first."""
        return list(self._pairs)

    def measure(
        self, longest: float, *, pairs: Sequence[Pair] | None = None, seconds: float = 0.0
    ) -> dict[Pair, float]:
        """Median round trip of each pair in seconds.

        ``longest`` is the longest expected · ``pairs`` only of some · at least ``ROUNDS`` times,
        and for at least so many ``seconds``.
        """
        wanted = self._pairs if pairs is None else list(pairs)
        seen: dict[Pair, list[float]] = {pair: [] for pair in wanted}
        begun, rounds = time.monotonic(), 0
        while rounds < ROUNDS or time.monotonic() - begun < seconds:
            rounds += 1
            for pair, took in self._round(wanted, longest + SLACK).items():
                seen[pair].append(took)
        if silent := [pair for pair, times in seen.items() if not times]:
            (asks, answers), more = silent[0], len(silent) - 1
            raise EngineError(
                f"{answers} did not answer {asks} in {rounds} tries"
                + (f", nor did {more} more of {len(wanted)} pairs" if more else "")
                + ". Does a firewall drop ICMP?"
            )
        return {pair: median(times) for pair, times in seen.items()}

    def _round(self, pairs: Sequence[Pair], within: float) -> dict[Pair, float]:
        """Ask some pairs once, all at the same time."""
        sent: dict[int, tuple[Pair, int]] = {}
        for pair in pairs:
            self._number = (self._number + 1) & 0xFFFF
            sent[self._number] = (pair, time.time_ns())
            asks, answers = pair
            target = (self._addresses[answers], 0)
            self._sockets[asks].sendto(_echo(self._mark, self._number), target)
        found: dict[Pair, float] = {}
        deadline = time.monotonic() + within
        askers = {self._sockets[asks] for asks, _ in pairs}
        while len(found) < len(sent) and (left := deadline - time.monotonic()) > 0:
            for ready in select.select(askers, (), (), left)[0]:
                number, arrived = self._answer(ready)
                if number in sent:
                    pair, begun = sent[number]
                    found[pair] = max(0, arrived - begun) / 1e9
        return found

    def _answer(self, ready: socket.socket) -> tuple[int | None, int]:
        """The number of an echo that came back, and when it did in ns; None: it is not ours."""
        packet, extra, _, _ = ready.recvmsg(1500, 64)
        arrived = time.time_ns()
        for _, kind, stamp in extra:
            if kind == _STAMP and len(stamp) >= 16:
                seconds, fraction = struct.unpack("=qq", stamp[:16])
                arrived = seconds * 1_000_000_000 + fraction
        body = packet[(packet[0] & 0xF) * 4 :]
        kind, _, _, mark, number = struct.unpack("!BBHHH", body[:8])
        return (number if (kind, mark) == (_ANSWER, self._mark) else None), arrived


def _echo(mark: int, number: int) -> bytes:
    """An ICMP echo request."""
    head = struct.pack("!BBHHH", _REQUEST, 0, 0, mark, number)
    return struct.pack("!BBHHH", _REQUEST, 0, checksum(head), mark, number)


def checksum(message: bytes) -> int:
    """The checksum of the Internet: the ones' complement of the sum of 16-bit words.

    >>> checksum(bytes.fromhex("0800 0000 1234 0001"))
    58826
    """
    if len(message) % 2:
        message += b"\0"
    total: int = sum(struct.unpack(f"!{len(message) // 2}H", message))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
