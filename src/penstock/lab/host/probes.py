"""What this machine can do for Penstock: the probes behind ``penstock doctor``.

Probing only: whatever a probe makes, it removes before it returns.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from penstock.core.errors import MissingError
from penstock.lab.host import cgroups, leftovers
from penstock.lab.host.java import GET_JAVA, GET_SPARK, find_java

OLDEST_PYTHON = (3, 11)
SPARK_SERIES = "4.3."
ENOUGH_MEMORY = 4.0  # GiB: driver, master, worker and four small executors
TUN = Path("/dev/net/tun")
MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCheck:
    """One thing looked at: what was ``found``, what having it ``enables``, and how to get it."""

    name: str
    ok: bool
    found: str
    enables: str
    fix: str | None = None


def checks() -> list[MachineCheck]:
    """Look at everything that decides what Penstock can do here; takes well under a second."""
    return [
        python(),
        java(),
        spark(),
        control_groups(),
        network_namespaces(),
        tun(),
        cores(),
        memory(),
        cache(),
    ]


def python() -> MachineCheck:
    """The running Python."""
    return MachineCheck(
        name="Python",
        ok=sys.version_info >= OLDEST_PYTHON,
        found=f"{platform.python_version()} ({sys.executable})",
        enables="everything",
        fix="install Python 3.11 or newer",
    )


def java() -> MachineCheck:
    """A Java that Spark can run on."""
    enables = "real Spark: demo, run, calibrate"
    try:
        chosen = find_java()
    except MissingError as problem:
        return MachineCheck(
            name="Java", ok=False, found=str(problem), enables=enables, fix=GET_JAVA
        )
    found = f"{chosen.version} with jdk.incubator.vector ({chosen.home})"
    return MachineCheck(name="Java", ok=True, found=found, enables=enables)


def spark() -> MachineCheck:
    """The pyspark package, without importing it."""
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        version = ""
    return MachineCheck(
        name="pyspark",
        ok=version.startswith(SPARK_SERIES),
        found=version or "not installed",
        enables="real Spark: demo, run, calibrate",
        fix=GET_SPARK,
    )


def control_groups() -> MachineCheck:
    """Whether executors can get a CPU quota."""
    result = cgroups.probe()
    return MachineCheck(
        name="control groups",
        ok=result.hierarchy is not None,
        found=result.reason,
        enables="CPU-limited executors: more executors than cores, vertical scaling",
        fix=result.fix,
    )


def network_namespaces() -> MachineCheck:
    """Whether a process can have a network of its own; tried in a child that ends at once."""
    ways = {"as root": [], "in a user namespace": ["--user", "--map-root-user"]}
    found = "the program unshare (util-linux) is missing"
    ok = False
    if unshare := shutil.which("unshare"):
        found = "not permitted"
        for way, options in ways.items():
            command = [unshare, *options, "--net", "true"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                found, ok = f"can be made {way}", True
                break
            found = done.stderr.strip() or found
    return MachineCheck(
        name="network namespaces",
        ok=ok,
        found=found,
        enables="sites with networks of their own",
        fix="run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1",
    )


def tun() -> MachineCheck:
    """Whether the TUN device can be opened; opening it alone makes no interface."""
    try:
        os.close(os.open(TUN, os.O_RDWR))
        found, ok = f"{TUN} can be opened", True
    except OSError as problem:
        found, ok = f"{TUN}: {problem.strerror}", False
    return MachineCheck(
        name="TUN device",
        ok=ok,
        found=found,
        enables="emulated delays on kernels without netem",
        fix=f"run as root and, if it is missing: mkdir -p {TUN.parent}; mknod {TUN} c 10 200",
    )


def cores() -> MachineCheck:
    """Cores that this process may use."""
    count = len(os.sched_getaffinity(0))
    return MachineCheck(
        name="cores",
        ok=count >= 2,
        found=str(count),
        enables=f"about {count * 4} executors at 20 % of a core beside driver and system",
        fix="use a machine with 2 cores or more",
    )


def memory() -> MachineCheck:
    """Memory that new processes can get without swapping."""
    fields = dict(line.split(":") for line in MEMORY.read_text().splitlines())
    free = int(fields["MemAvailable"].split()[0]) / (1 << 20)
    return MachineCheck(
        name="memory",
        ok=free >= ENOUGH_MEMORY,
        found=f"{free:.1f} GiB available",
        enables=f"about {max(0, int((free - 2) / 0.6))} executors with 512m beside the driver",
        fix=f"free some, or use a machine with {ENOUGH_MEMORY:g} GiB or more",
    )


def cache() -> MachineCheck:
    """Whether the user's cache folder can be written, or created."""
    for folder in leftovers.cache_choices():
        nearest = next(place for place in (folder, *folder.parents) if place.exists())
        if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
            ok, found = True, str(folder)
            break
    else:
        ok, found = False, "not writable; temporary files are used instead"
    return MachineCheck(
        name="cache folder",
        ok=ok,
        found=found,
        enables="fast starts: Spark's classes are kept between runs",
        fix="set XDG_CACHE_HOME to a folder you can write to",
    )
