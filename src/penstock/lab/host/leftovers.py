"""Runs of a local cluster on this machine, and cleaning up after those whose owner died.

Every run has a record ``<cache>/runs/<id>.json`` that is written before anything else exists and
removed after everything else is gone. So whatever kills a run, the next start finds its record
and knows what to clean: processes (they carry ``PENSTOCK_RUN=<id>`` in their environment),
cgroups and the folder ``<cache>/runs/<id>``. A run whose owner lives is never touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.history.files import write_text
from penstock.lab.host import cgroups, processes

RUN_VARIABLE = "PENSTOCK_RUN"
END_SECONDS = 5.0  # how long killed processes may take to vanish


def cache_choices(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Where the user's cache may be, best first: ``$XDG_CACHE_HOME``, then ``~/.cache``."""
    choices = []
    if xdg := environ.get("XDG_CACHE_HOME"):
        choices.append(Path(xdg) / "penstock")
    if home := environ.get("HOME"):
        choices.append(Path(home) / ".cache" / "penstock")
    return choices


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's folder for class data and runs, created if needed.

    The first of :func:`cache_choices` that can be written; if there is none (no home, read-only
    home), ``penstock-<uid>`` in the folder for temporary files.
    """
    for folder in cache_choices(environ):
        if _usable(folder, private=False):
            return folder
    shared = Path(tempfile.gettempdir()) / f"penstock-{os.geteuid()}"
    # Others can write to /tmp: a folder that is not ours may have been laid out as a trap.
    return shared if _usable(shared, private=True) else Path(tempfile.mkdtemp(prefix="penstock-"))


def _usable(folder: Path, *, private: bool) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = folder.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not seen.st_mode & 0o022
    return os.access(folder, os.R_OK | os.W_OK | os.X_OK) and (ours or not private)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The process that owns a run, named so that a reused pid cannot be mistaken for it.

    ``started`` is in clock ticks after boot; ``space`` is the pid namespace.
    """

    host: str
    boot: str
    space: str
    pid: int
    started: int

    @staticmethod
    def me() -> Owner:
        """This process."""
        started = processes.started(os.getpid())
        assert started is not None
        return Owner(pid=os.getpid(), started=started, **_here())

    @property
    def dead(self) -> bool:
        """Whether it has ended for certain; one on another host or in another container has not."""
        here = _here()
        if self.host != here["host"]:
            return False
        if self.boot != here["boot"]:
            return True
        return self.space == here["space"] and processes.started(self.pid) != self.started


def _here() -> dict[str, str]:
    return {
        "host": socket.gethostname(),
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "space": str(Path("/proc/self/ns/pid").readlink()),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedRun:
    """One run: its name, who owns it, and what it may leave behind."""

    id: str
    owner: Owner
    folder: Path
    groups: tuple[Path, ...] = ()

    @property
    def record(self) -> Path:
        """The file that tells the next start about this run."""
        return self.folder.with_suffix(".json")

    def save(self) -> None:
        """Write the record; readers see all of it or nothing."""
        value = asdict(self) | {
            "folder": str(self.folder),
            "groups": [str(group) for group in self.groups],
        }
        write_text(self.record, json.dumps(value))

    def processes(self) -> list[int]:
        """Every process of this run: marked in its environment, or inside one of its cgroups."""
        inside = {pid for group in self.groups for pid in cgroups.members(group)}
        return sorted(inside.union(processes.with_variable(RUN_VARIABLE, self.id)) - {os.getpid()})

    def clear(self) -> list[str]:
        """End its processes, remove its cgroups, its folder and last its record.

        Returns what could not be removed; then the record stays, so that a later start tries again.
        """
        left = []
        if not processes.end_all(self.processes, within=END_SECONDS):
            left.append(f"processes {self.processes()}")
        left += [f"cgroup {group}" for group in self.groups if not _gone(group)]
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():  # a dying process wrote while we removed
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():
            left.append(f"folder {self.folder}")
        if not left:
            self.record.unlink(missing_ok=True)
        return left


def _gone(group: Path) -> bool:
    """Remove a tree of cgroups; the kernel refuses for a moment after the last process ended."""
    deadline = time.monotonic() + END_SECONDS
    while not cgroups.remove_tree(group):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def open_run(cache: Path, groups_of: Callable[[str], tuple[Path, ...]] = lambda _: ()) -> OwnedRun:
    """Begin a run of this process: its record first, then its folder.

    ``groups_of`` names the cgroups that a run of the given id is going to make.
    """
    id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    folder = cache / "runs" / id
    folder.parent.mkdir(parents=True, exist_ok=True)
    run = OwnedRun(id=id, owner=Owner.me(), folder=folder, groups=groups_of(id))
    run.save()
    folder.mkdir(mode=0o700)
    return run


def runs(cache: Path) -> Iterator[OwnedRun]:
    """Every recorded run, of living and dead owners; unreadable records are passed over."""
    for file in sorted((cache / "runs").glob("*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            value = json.loads(file.read_text())
            yield OwnedRun(
                id=value["id"],
                owner=Owner(**value["owner"]),
                folder=file.with_suffix(""),
                groups=tuple(Path(group) for group in value["groups"]),
            )


def clean(cache: Path, say: Callable[[str], None] = lambda _: None) -> list[str]:
    """Clear every run whose owner is dead; returns the ids of the runs that were cleared."""
    cleared = []
    for run in runs(cache):
        if run.owner.dead:
            left = run.clear()
            say(f"cleaned up after run {run.id}, which was killed")
            if left:
                say(f"but could not remove {', '.join(left)}")
            else:
                cleared.append(run.id)
    return cleared
