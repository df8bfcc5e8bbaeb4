"""The two ways to put delays between sites: a switch of ours over TUN devices, and netem."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, Protocol

from penstock.core.errors import EngineError
from penstock.spark.local import processes, remains
from penstock.spark.local.daemons import tail
from penstock.spark.sites import namespaces, tun
from penstock.spark.sites.link import LONGEST_WAIT, Conditions
from penstock.spark.sites.switch import Port

ANSWER_SECONDS = 10.0  # for the switch to start or to obey; 0.2 s is normal
COMMAND_SECONDS = 30.0
PACKET = 1500  # bytes
MOST_PACKETS = 1_000_000  # that netem holds; its default of 1000 is 6 ms at 2 Gbit/s


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


class TunSwitch:
    """Emulation by a process of ours; it dies with the nursery's owner.

    ``folder`` is that of the ``run`` which the process belongs to.
    """

    def __init__(self, nursery: processes.Nursery, run: remains.Run) -> None:
        self._nursery, self._run = nursery, run
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()  # an answer belongs to the order before it

    @property
    def _log(self) -> Path:
        return self._run.folder / "switch.log"

    def connect(self, stations: Sequence[Station]) -> None:
        """Start the switch; returns when it carries packets."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(ANSWER_SECONDS)
        ports: list[Port] = []
        try:
            for station in stations:
                device = namespaces.inside(station.namespace, partial(_tun, station))
                ports.append(
                    Port(
                        name=station.name,
                        address=station.address,
                        device=device,
                        conditions=station.conditions,
                    )
                )
            orders = json.dumps([port.to_json() for port in ports])
            self._process = self._nursery.start(
                [sys.executable, "-m", "penstock.spark.sites.switch", str(theirs.fileno()), orders],
                env=dict(os.environ) | {remains.RUN_VARIABLE: self._run.id},
                cwd=self._run.folder,
                log=self._log,
                keep=[theirs.fileno(), *(port.device for port in ports)],
            )
        finally:
            theirs.close()
            for port in ports:
                os.close(port.device)
        self.state()

    def set(self, conditions: Mapping[str, Conditions]) -> None:
        """Tell the switch."""
        self._ask({"set": {name: asdict(value) for name, value in conditions.items()}})

    def state(self) -> Mapping[str, Any]:
        """What the switch answers: whether it runs in real time, and counts by link."""
        return self._ask({})

    def close(self) -> None:
        """End the switch."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            processes.terminate(self._process, within=1.0)
        self._control = self._process = None

    def _ask(self, order: dict[str, Any]) -> Mapping[str, Any]:
        try:
            with self._lock:
                if self._control is None:
                    raise OSError("it was closed")
                self._control.send(json.dumps(order).encode())
                answer = self._control.recv(1 << 20)
            if not answer:
                raise OSError("it has ended")
        except OSError as problem:
            said = tail(self._log) if self._log.exists() else ""
            raise EngineError(f"the switch does not answer: {problem}\n{said}".rstrip()) from None
        found = json.loads(answer)
        assert isinstance(found, dict)
        return found


def _tun(station: Station) -> int:
    device = tun.open_device(station.device)
    try:
        namespaces.bring_up(station.device, station.address)
    except BaseException:
        os.close(device)
        raise
    return device


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
        """Change the delays."""
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
