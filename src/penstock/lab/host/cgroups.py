"""Control groups: one per executor, with a CPU quota and an account of the CPU it used.

Both versions are served. In version 1 a group is a folder below the ``cpu`` controller and one
below ``cpuacct`` (often the same); in version 2 it is one folder, its parent must pass the ``cpu``
controller on, and a group with processes in it may not (the rule of no internal processes), so
the groups go below the nearest ancestor of our own group that can pass it on.

::

    <hierarchy>/penstock-<run>/<application>.<executor>
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from penstock.core.errors import EngineError

MOUNT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
PERIOD = 100_000  # µs: the kernel's default; an executor at 20 % runs 20 ms in each
LEAST_SHARE = 0.01  # the kernel refuses quotas under 1 ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Where groups can be made: ``cpu`` sets quotas, ``account`` counts CPU time."""

    version: Literal[1, 2]
    cpu: Path
    account: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What was found: a hierarchy that works, or why there is none and what would help."""

    hierarchy: Hierarchy | None
    reason: str
    fix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The groups of one run; a key names one executor."""

    hierarchy: Hierarchy
    name: str

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folder of the run in each hierarchy; groups of executors go below it."""
        parents = dict.fromkeys((self.hierarchy.cpu, self.hierarchy.account))
        return tuple(parent / self.name for parent in parents)

    def create(self) -> None:
        """Make the folders of the run."""
        for folder in self.folders:
            _mkdir(folder)
        if self.hierarchy.version == 2:
            _write(self.folders[0] / "cgroup.subtree_control", "+cpu")

    def add(self, key: str, pid: int) -> None:
        """Make a group without a limit and move a process into it; its children will follow."""
        for folder in self.folders:
            _mkdir(folder / key)
            _write(folder / key / "cgroup.procs", str(pid))

    def set_share(self, key: str, share: float) -> None:
        """Limit a group to a share of one core; takes effect within one period of 0.1 s."""
        try:
            self.limit(key, round(share * PERIOD))
        except FileNotFoundError:
            raise EngineError(f"executor {key} has no cgroup any more: it has ended") from None
        except OSError as problem:
            raise EngineError(
                f"cannot limit executor {key} to {share:g} of a core: {problem.strerror}; "
                "the share may not be above that of the group this process runs in"
            ) from problem

    def limit(self, key: str, quota: int | None) -> None:
        """Set the µs of CPU that a group may use per PERIOD; None takes the limit off."""
        group = self.hierarchy.cpu / self.name / key
        if self.hierarchy.version == 1:
            _write(group / "cpu.cfs_period_us", str(PERIOD))
            _write(group / "cpu.cfs_quota_us", str(-1 if quota is None else quota))
        else:
            _write(group / "cpu.max", f"{'max' if quota is None else quota} {PERIOD}")

    def share(self, key: str) -> float | None:
        """The share of one core that a group is limited to now; None without a limit."""
        group = self.hierarchy.cpu / self.name / key
        try:
            if self.hierarchy.version == 1:
                quota = (group / "cpu.cfs_quota_us").read_text().strip()
                period = (group / "cpu.cfs_period_us").read_text().strip()
            else:
                quota, period = (group / "cpu.max").read_text().split()
        except OSError:
            return None
        return None if quota in ("-1", "max") else int(quota) / int(period)

    def cpu_seconds(self, key: str) -> float | None:
        """CPU seconds used so far by all that ever ran in a group; None if there is no group."""
        group = self.hierarchy.account / self.name / key
        try:
            if self.hierarchy.version == 1:
                return int((group / "cpuacct.usage").read_text()) / 1e9
            pairs = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
            return int(pairs["usage_usec"]) / 1e6
        except (OSError, KeyError):
            return None

    def clear(self, key: str) -> bool:
        """End what is left in a group and remove it; False if that needs another call."""
        for pid in members(self.folders[0] / key):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        gone = [remove_tree(folder / key) for folder in self.folders]
        return all(gone)


def members(folder: Path) -> list[int]:
    """Every process in a group or in a group below it."""
    pids: set[int] = set()
    for group in _tree(folder):
        with contextlib.suppress(OSError):
            pids.update(int(pid) for pid in (group / "cgroup.procs").read_text().split())
    return sorted(pids)


def remove_tree(folder: Path) -> bool:
    """Remove a group and those below it; False if a process is still in one of them."""
    for group in _tree(folder):
        try:
            _rmdir(group)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True


def _tree(folder: Path) -> Iterator[Path]:
    """The groups below a folder, then the folder itself."""
    with contextlib.suppress(OSError):
        for entry in sorted(folder.iterdir()):
            if entry.is_dir():
                yield from _tree(entry)
    yield folder


def probe(mount: Path = MOUNT, own: Path = OWN) -> Probe:
    """Find a hierarchy that works, by making a group, limiting it and moving a process into it.

    Leaves nothing behind. ``own`` is the file in which the kernel says which groups we are in.
    """
    problems: list[OSError] = []
    for hierarchy in _candidates(mount, own):
        groups = Groups(hierarchy=hierarchy, name=f"penstock-probe-{os.getpid()}")
        try:
            _pass_cpu_on(hierarchy)
            groups.create()
            _try(groups)
        except OSError as problem:
            problems.append(problem)
        else:
            where = f"version {hierarchy.version} in {hierarchy.cpu}"
            return Probe(hierarchy=hierarchy, reason=f"control groups {where}")
        finally:
            for folder in groups.folders:
                remove_tree(folder)
    return _refusal(problems, mount)


def _candidates(mount: Path, own: Path) -> Iterator[Hierarchy]:
    """Places to try, in order: version 1 below our own group, version 2 from our own group up."""
    paths = _own_paths(own)
    if (mount / "cpu").is_dir() and (mount / "cpuacct").is_dir():
        below = {}
        for controller in ("cpu", "cpuacct"):
            root = mount / controller
            inside = root / paths.get(controller, "/").lstrip("/")
            below[controller] = inside if inside.is_dir() else root  # a container sees its own as /
        yield Hierarchy(version=1, cpu=below["cpu"].resolve(), account=below["cpuacct"].resolve())
    for root in (mount, mount / "unified"):
        if (root / "cgroup.controllers").is_file():
            inside = root / paths.get("", "/").lstrip("/")
            here = inside if inside.is_dir() else root
            for folder in (here, *here.parents):
                if "cpu" in _words(folder / "cgroup.controllers"):
                    yield Hierarchy(version=2, cpu=folder, account=folder)
                if folder == root:
                    break


def _own_paths(own: Path) -> dict[str, str]:
    """Our own group per controller, from lines such as ``4:cpu,cpuacct:/user`` and ``0::/user``."""
    paths = {}
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _pass_cpu_on(hierarchy: Hierarchy) -> None:
    control = hierarchy.cpu / "cgroup.subtree_control"
    if hierarchy.version == 2 and "cpu" not in _words(control):
        _write(control, "+cpu")


def _try(groups: Groups) -> None:
    """Do with a sleeping process all that will be done with an executor."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as idle:
        try:
            groups.add("probe", idle.pid)
            groups.limit("probe", PERIOD // 2)
        finally:
            idle.kill()
            idle.wait()


def _refusal(problems: list[OSError], mount: Path) -> Probe:
    if not problems:
        return Probe(
            hierarchy=None,
            reason=f"no cgroup hierarchy with the cpu controller in {mount}",
            fix="use a Linux kernel with the cpu controller (CONFIG_CFS_BANDWIDTH)",
        )
    problem = problems[-1]
    where = problem.filename or mount
    reason = f"cannot make control groups: {problem.strerror or problem} ({where})"
    fix = (
        "run as root, or in a container with --privileged, or in a group that is yours: "
        "systemd-run --user --scope -p Delegate=yes penstock …"
    )
    return Probe(hierarchy=None, reason=reason, fix=fix)


# The three operations for which a folder tree is not a kernel; tests put a pretended kernel here.


def _mkdir(folder: Path) -> None:
    folder.mkdir(exist_ok=True)


def _rmdir(folder: Path) -> None:
    folder.rmdir()


def _write(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
