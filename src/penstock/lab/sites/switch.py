"""The switch: a process that carries packets between the TUN devices of sites, and delays them.

Only packets from the address of the device they came by to the address of another device are
carried; everything else is dropped, so nothing leaves the sites. It runs at real-time priority
where that is permitted: at 100 ms under load, round trips deviate by 0.1 ms with it and by
several without.

It is told its ports on the command line (a JSON list of :class:`Port`) and takes orders on a
socket: ``{"set": {"paris": {"delay": 0.08, "jitter": 0.0, "bandwidth": null}}}`` or ``{}``; it
answers each with its state. When the other end of that socket closes, it ends.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.lab.sites.link import Conditions, Link

DEVICE = Path("/dev/net/tun")

# ioctl(2) requests and flags of linux/if_tun.h and linux/virtio_net.h
_SET_DEVICE, _SET_OFFLOAD = 0x400454CA, 0x400454D0
_TUN, _NO_INFORMATION, _OFFLOAD_HEADER = 0x1, 0x1000, 0x4000
_CHECKSUMS, _TCP4, _TCP6, _ECN = 0x1, 0x2, 0x4, 0x8

HEADER = 10  # bytes before each packet: struct virtio_net_hdr
LARGEST = HEADER + 65_535 + 20  # bytes of one read


def open_device(name: str) -> int:
    """Make a TUN device in the namespace of the calling thread; its descriptor, which owns it.

    The kernel may hand over up to 64 KB at once that it would have cut into packets itself, and
    leaves checksums out (both are told by a header that is passed on as it is): that makes
    throughput five times what single packets allow.
    """
    descriptor = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK)
    try:
        flags = _TUN | _NO_INFORMATION | _OFFLOAD_HEADER
        fcntl.ioctl(descriptor, _SET_DEVICE, struct.pack("=16sH22x", name.encode(), flags))
        fcntl.ioctl(descriptor, _SET_OFFLOAD, _CHECKSUMS | _TCP4 | _TCP6 | _ECN)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


PRIORITY = 10
BURST = 16  # packets read from one device before the due ones of all are handed over
_SOURCE, _TARGET, _END = HEADER + 12, HEADER + 16, HEADER + 20  # in an IPv4 packet


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One site as the switch sees it; ``device`` is the descriptor of its TUN device."""

    name: str
    address: str
    device: int
    conditions: Conditions

    @staticmethod
    def from_json(value: dict[str, Any]) -> Port:
        """The port that a plain value stands for."""
        return Port(**(value | {"conditions": Conditions(**value["conditions"])}))


class Switch:
    """Links by address; ``control`` is where orders come from."""

    def __init__(self, ports: Sequence[Port], control: socket.socket) -> None:
        self._control = control
        self._links = {
            port.name: Link(port.conditions, seed=number) for number, port in enumerate(ports)
        }
        by_name = {p.name: (os.dup(p.device), socket.inet_aton(p.address)) for p in ports}
        self._routes = {address: self._links[name] for name, (_, address) in by_name.items()}
        self._sources = dict(by_name.values())  # device → the only source it may send from
        self._outputs = [
            (self._links[name], _writer(device)) for name, (device, _) in by_name.items()
        ]
        self._refused = 0
        self.realtime = False

    def run(self) -> None:
        """Carry packets until the control socket closes."""
        clock = time.monotonic
        control = self._control.fileno()
        watched = [control, *self._sources]
        while True:
            ready, _, _ = select.select(watched, (), (), self._wait(clock()))
            for descriptor in ready:
                if descriptor == control:
                    if not self._obey():
                        return
                else:
                    self._read(descriptor, clock)
                    self._deliver(clock())
            self._deliver(clock())

    def _wait(self, now: float) -> float | None:
        dues = [due for link in self._links.values() if (due := link.next_due) is not None]
        return max(0.0, min(dues) - now) if dues else None

    def _read(self, device: int, clock: Callable[[], float]) -> None:
        source, routes = self._sources[device], self._routes
        for _ in range(BURST):
            try:
                packet = os.read(device, LARGEST)
            except OSError:  # nothing more to read, or the device is gone
                return
            link = routes.get(packet[_TARGET:_END])
            if link is None or packet[_SOURCE:_TARGET] != source or packet[HEADER] >> 4 != 4:
                self._refused += 1
            else:
                link.put(packet, clock())

    def _deliver(self, now: float) -> None:
        for link, write in self._outputs:
            link.deliver(now, write)

    def _obey(self) -> bool:
        """Take one order; false when there will be no more."""
        try:
            order = self._control.recv(1 << 20)
            if not order:
                return False
            for name, conditions in json.loads(order).get("set", {}).items():
                self._links[name].set(Conditions(**conditions))
            self._control.send(json.dumps(self._state()).encode())
        except OSError:
            return False
        return True

    def _state(self) -> dict[str, Any]:
        links = {
            name: asdict(link.conditions)
            | {"packets": link.passed, "bytes": link.passed_bytes, "dropped": link.dropped}
            for name, link in self._links.items()
        }
        return {"realtime": self.realtime, "refused": self._refused, "links": links}


def _writer(device: int) -> Callable[[bytes], object]:
    return lambda packet: os.write(device, packet)


def take_priority() -> bool:
    """Ask for real-time priority for the calling thread; whether it was given."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except OSError:
        return False
    return True


def main(arguments: Sequence[str]) -> None:
    """``switch CONTROL PORTS``: the descriptor of the control socket, and the ports as JSON."""
    ports = [Port.from_json(value) for value in json.loads(arguments[1])]
    with socket.socket(fileno=int(arguments[0])) as control:
        switch = Switch(ports, control)
        for port in ports:
            os.close(port.device)
        gc.disable()  # collecting garbage would be a pause
        switch.realtime = take_priority()
        switch.run()


if __name__ == "__main__":
    main(sys.argv[1:])
