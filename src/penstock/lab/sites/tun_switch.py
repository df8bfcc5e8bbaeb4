"""Emulation by a process of ours over TUN devices: :mod:`penstock.lab.sites.switch`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from penstock.core.errors import EngineError
from penstock.lab.clusters.standalone.daemons import tail
from penstock.lab.host import leftovers, processes
from penstock.lab.sites import namespaces, switch
from penstock.lab.sites.link import Conditions, Station
from penstock.lab.sites.switch import Port

ANSWER_SECONDS = 10.0  # for the switch to start or to obey; 0.2 s is normal


class TunSwitch:
    """Emulation by a process of ours; it dies with the nursery's owner.

    ``run`` is what the process belongs to.
    """

    def __init__(self, nursery: processes.Nursery, run: leftovers.OwnedRun) -> None:
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
            orders = json.dumps([asdict(port) for port in ports])
            self._process = self._nursery.start(
                [sys.executable, "-m", "penstock.lab.sites.switch", str(theirs.fileno()), orders],
                env=dict(os.environ) | {leftovers.RUN_VARIABLE: self._run.id},
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
        """Change what links do to packets, while they run."""
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
    device = switch.open_device(station.device)
    try:
        namespaces.bring_up(station.device, station.address)
    except BaseException:
        os.close(device)
        raise
    return device
