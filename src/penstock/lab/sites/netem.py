"""Emulation by the kernel, where it has netem."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from math import ceil
from typing import Any

from penstock.core.errors import EngineError
from penstock.lab.sites import namespaces
from penstock.lab.sites.link import LONGEST_WAIT, Conditions, Station

COMMAND_SECONDS = 30.0
PACKET = 1500  # bytes
MOST_PACKETS = 1_000_000  # that netem holds; its default of 1000 is 6 ms at 2 Gbit/s


class Netem:
    """Emulation by the kernel: a bridge in a namespace of its own, one port per station.

    Netem delays what leaves the bridge by a port, so what goes into that station. Needs the
    programs ``ip`` and ``tc``; only in namespaces of ours, and one end of a pair of devices at
    home, that goes with the other.
    """

    def __init__(self) -> None:
        self._hub: int | None = None
        self._ports: dict[str, str] = {}
        self._conditions: dict[str, Conditions] = {}

    def connect(self, stations: Sequence[Station]) -> None:
        """Make the bridge, a pair of devices for every station, and its delay."""
        hub = self._hub = namespaces.make()
        _run(hub, "ip link add hub type bridge")
        _run(hub, "ip link set hub up")
        for number, station in enumerate(stations):
            port = self._ports[station.name] = f"port{number}"
            where = "ns/net" if station.namespace is None else f"fd/{station.namespace}"
            there = f"netns /proc/{os.getpid()}/{where}"
            _run(hub, f"ip link add {port} type veth peer name {station.device} {there}")
            _run(hub, f"ip link set {port} master hub up")
            self._delay(station.name, station.conditions, "add")
            up = partial(namespaces.bring_up, station.device, station.address)
            namespaces.inside(station.namespace, up)

    def set(self, conditions: Mapping[str, Conditions]) -> None:
        """Change what links do to packets, while they run."""
        for name, value in conditions.items():
            self._delay(name, value, "change")

    def state(self) -> Mapping[str, Any]:
        """The conditions; netem needs no real-time priority."""
        links = {name: asdict(value) for name, value in self._conditions.items()}
        return {"realtime": True, "links": links}

    def close(self) -> None:
        """Remove the bridge; the devices at both ends of each pair go with it."""
        if self._hub is not None:
            for port in self._ports.values():
                with contextlib.suppress(EngineError):
                    _run(self._hub, f"ip link del {port}")  # at once, not when the kernel likes
            os.close(self._hub)
        self._hub = None

    def _delay(self, name: str, conditions: Conditions, verb: str) -> None:
        assert self._hub is not None
        _run(self._hub, f"tc qdisc {verb} dev {self._ports[name]} root {netem(conditions)}")
        self._conditions[name] = conditions


def netem(conditions: Conditions) -> str:
    """Conditions as netem is told them.

    >>> netem(Conditions(delay=0.025))
    'netem delay 25000us limit 1000000'
    >>> netem(Conditions(delay=0.1, bandwidth=12.5e6))
    'netem delay 100000us limit 1667 rate 100000000bit'
    """
    words = f"netem delay {conditions.delay * 1e6:.0f}us"
    rate = conditions.bandwidth
    if rate is None:
        return f"{words} limit {MOST_PACKETS}"
    held = ceil(rate * (conditions.delay + LONGEST_WAIT) / PACKET)
    return f"{words} limit {max(100, held)} rate {rate * 8:.0f}bit"


def _run(namespace: int, command: str) -> None:
    def there() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command.split(), capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS
        )

    done = namespaces.inside(namespace, there)
    if done.returncode:
        raise EngineError(f"`{command}` failed: {done.stderr.strip()}")
