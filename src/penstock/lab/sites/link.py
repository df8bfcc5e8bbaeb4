"""What lies in front of one site: packets on their way to it, in order, until they are due.

Pure: the clock is passed in. Times are seconds, sizes bytes, rates bytes per second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import pi, sin
from random import Random
from typing import Any, Protocol

MOST_HELD = 512 << 20  # bytes on their way; several flows at 100 ms need it
LONGEST_WAIT = 0.1  # seconds of backlog in front of a limited link; what comes then is dropped
BURST_SECONDS, LEAST_BURST = 0.005, 65_536  # what may pass at once after a pause
PERIODS = (11.3, 5.3, 2.3)  # seconds of the waves that jitter is made of


class Sway:
    """A smooth function of time, from −1 to 1 and 0 on average: the sum of slow waves.

    Jitter j makes a delay of d + j·sway(t). Packets keep their order by themselves as long as
    that falls by less than a second per second: |d/dt sway| ≤ ``STEEPEST``, so for every j below
    1 / ``STEEPEST`` (0.67 s). Independent draws would reorder most packets, and holding
    back the early ones would raise the mean.

    >>> calm = Sway(Random(1))
    >>> abs(calm(10.0) - calm(10.01)) < 0.015
    True
    """

    STEEPEST = sum(2 * pi / period for period in PERIODS) / len(PERIODS)

    def __init__(self, draw: Random) -> None:
        self._waves = tuple((2 * pi / period, draw.uniform(0, 2 * pi)) for period in PERIODS)

    def __call__(self, now: float) -> float:
        """Its value at a moment in seconds."""
        return sum(sin(speed * now + phase) for speed, phase in self._waves) / len(self._waves)


class Bucket:
    """A token bucket: at most ``burst`` + ``rate`` · t bytes leave in any t seconds.

    >>> bucket = Bucket(rate=1000.0, burst=1000)
    >>> bucket.leaves(1000, 5.0), bucket.leaves(500, 5.0), bucket.leaves(500, 5.0)
    (5.0, 5.5, None)
    """

    def __init__(self, *, rate: float, burst: float) -> None:
        self._rate, self._credit = rate, burst / rate
        self._free = float("-inf")  # when all that was taken has been earned

    def leaves(self, size: int, now: float) -> float | None:
        """When a packet that comes now may leave; ``None``: dropped, too many wait already."""
        start = max(self._free, now - self._credit)
        if start - now >= LONGEST_WAIT:
            return None
        self._free = start + size / self._rate
        return max(now, self._free)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a link does to packets: ``delay`` and ``jitter`` seconds one way, ``bandwidth`` bytes/s.

    ``bandwidth`` None: as much as the machine can carry.
    """

    delay: float = 0.0
    jitter: float = 0.0
    bandwidth: float | None = None


class Link:
    """The way into one site: first in, first out.

    A packet is due when the bucket lets it go plus the delay at this moment, but never before
    the packet in front of it: so a delay that is lowered while packets are under way reorders
    nothing. Order makes a heap needless: the oldest packet is always the next.
    """

    def __init__(self, conditions: Conditions, *, seed: int = 0) -> None:
        self._sway = Sway(Random(seed))
        self._queue: deque[tuple[float, bytes]] = deque()
        self._held = 0
        self._last = float("-inf")
        self.passed = self.passed_bytes = self.dropped = 0
        self.set(conditions)

    def set(self, conditions: Conditions) -> None:
        """Other conditions, for packets that come from now on."""
        self.conditions = conditions
        self._delay, self._jitter = conditions.delay, conditions.jitter
        rate = conditions.bandwidth
        self._bucket = None
        if rate is not None:
            self._bucket = Bucket(rate=rate, burst=max(LEAST_BURST, rate * BURST_SECONDS))

    @property
    def next_due(self) -> float | None:
        """When the next packet is due; ``None`` if none is under way."""
        return self._queue[0][0] if self._queue else None

    def put(self, packet: bytes, now: float) -> None:
        """A packet sets out, or is dropped."""
        due = now
        if self._held > MOST_HELD:
            self.dropped += 1
            return
        if self._bucket is not None:
            leaves = self._bucket.leaves(len(packet), now)
            if leaves is None:
                self.dropped += 1
                return
            due = leaves
        due += self._delay
        if self._jitter:
            due += self._jitter * self._sway(now)
        if due < self._last:
            due = self._last
        self._last = due
        self._held += len(packet)
        self._queue.append((due, packet))

    def deliver(self, now: float, write: Callable[[bytes], object]) -> None:
        """Hand over everything that is due; what ``write`` refuses is lost."""
        queue = self._queue
        while queue and queue[0][0] <= now:
            packet = queue.popleft()[1]
            self._held -= len(packet)
            try:
                write(packet)
            except OSError:
                self.dropped += 1
            else:
                self.passed += 1
                self.passed_bytes += len(packet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """A site as an emulator sees it; ``namespace`` None is the one we are in."""

    name: str
    address: str
    namespace: int | None
    device: str
    conditions: Conditions


class Emulator(Protocol):
    """Connects stations, and changes what their links do while they are connected."""

    def connect(self, stations: Sequence[Station]) -> None:
        """Give every station its device and its address, and carry packets between them."""
        ...

    def set(self, conditions: Mapping[str, Conditions]) -> None:
        """Other conditions for some stations, for packets from now on."""
        ...

    def state(self) -> Mapping[str, Any]:
        """What is known of links and packets."""
        ...

    def close(self) -> None:
        """Carry nothing any more; the devices go too."""
        ...
