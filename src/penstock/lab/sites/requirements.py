"""What emulated sites need of this machine, found out by trying; nothing is left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import MissingError
from penstock.lab.host.probes import MachineCheck
from penstock.lab.sites import namespaces, switch

TRY = {  # everything that emulation by netem does, on a small scale
    "bridge": "ip link add probe0 type bridge",
    "veth": "ip link add probe1 type veth peer name probe2",
    "netem": "tc qdisc add dev probe1 root netem delay 1ms limit 1000",
}
SECONDS = 10.0
SIMULATE = "The simulator needs none of this: penstock simulate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """What can emulate delays here: ``None`` where it can, else what is missing.

    ``namespaces`` whether sites can be made at all · ``netem`` in the kernel · ``tun`` by our
    switch · ``realtime`` whether that may run at real-time priority, which it need not.
    """

    namespaces: str | None
    netem: str | None
    tun: str | None
    realtime: bool

    @property
    def missing(self) -> str | None:
        """Why there can be no sites, and the way out; ``None`` if there can."""
        if self.namespaces is not None:
            return f"{self.namespaces}: run as root (sudo, or a container with --privileged)"
        if self.netem is not None and self.tun is not None:
            return (
                f"neither netem ({self.netem}) nor TUN ({self.tun}) can emulate delays: as root, "
                f"mkdir -p {switch.DEVICE.parent}; mknod {switch.DEVICE} c 10 200; "
                "or load sch_netem"
            )
        return None


def probe() -> Possible:
    """Try it all in a namespace that is thrown away."""
    try:
        namespace = namespaces.make()
    except OSError as problem:
        why = f"network namespaces cannot be made as user {os.geteuid()} ({problem.strerror})"
        return Possible(namespaces=why, netem=why, tun=why, realtime=False)
    try:
        return Possible(
            namespaces=None,
            netem=namespaces.inside(namespace, _netem),
            tun=namespaces.inside(namespace, _tun),
            realtime=namespaces.inside(namespace, switch.take_priority),  # in a thread of its own,
        )
    finally:
        os.close(namespace)


def choose(wanted: str, *, jitter: bool) -> Literal["netem", "tun"]:
    """How to emulate delays: as wanted if that can be; raises :class:`MissingError` if not."""
    possible = probe()
    if possible.missing is not None:
        raise MissingError(f"emulated sites: {possible.missing}. {SIMULATE}")
    if wanted == "tun" and possible.tun is not None:
        raise MissingError(f"emulation by TUN: {possible.tun}. {SIMULATE}")
    if wanted == "netem" and possible.netem is not None:
        raise MissingError(f"emulation by netem: {possible.netem}. Use tun. {SIMULATE}")
    if wanted == "netem" or (wanted == "auto" and possible.netem is None and not jitter):
        return "netem"
    if possible.tun is not None:
        raise MissingError(
            f"jitter needs TUN, and {possible.tun}; leave the jitter out. {SIMULATE}"
        )
    return "tun"


def check() -> MachineCheck:
    """The line of ``penstock doctor`` on emulated sites."""
    possible = probe()
    if possible.missing is not None:
        found = possible.namespaces or f"no netem ({possible.netem}), no TUN ({possible.tun})"
    elif possible.netem is None:
        found = "by netem"
        found += ", by TUN under jitter" if possible.tun is None else f"; not TUN: {possible.tun}"
    else:
        speed = "at real-time priority" if possible.realtime else "without real-time priority"
        found = f"by TUN {speed}; not netem: {possible.netem}"
    return MachineCheck(
        name="emulated sites",
        ok=possible.missing is None,
        found=found,
        enables="Spark at sites with delays between them: penstock lab sites",
        fix=possible.missing,
    )


def _netem() -> str | None:
    for what, command in TRY.items():
        program = command.split()[0]
        if shutil.which(program) is None:
            return f"the program {program} (iproute2) is not installed"
        try:
            done = subprocess.run(
                command.split(), capture_output=True, text=True, check=False, timeout=SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            return str(problem)
        if done.returncode:
            return f"this kernel has no {what}"
    return None


def _tun() -> str | None:
    try:
        os.close(switch.open_device("probe"))
    except OSError as problem:
        return f"{switch.DEVICE}: {problem.strerror}"
    return None
