"""One writer per journal: a lock beside it that ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import weakref
from collections.abc import Iterator
from pathlib import Path

from penstock.core.errors import InputError

log = logging.getLogger("penstock")

SUFFIX = ".lock"
TAKEN = (errno.EWOULDBLOCK, errno.EACCES)

_held: weakref.WeakSet[_Lock] = weakref.WeakSet()


@contextlib.contextmanager
def only_writer(journal: Path, who: str) -> Iterator[None]:
    """Hold the right to write a journal; raise InputError if another process or thread has it.

    The lock is on ``<journal>.lock``, which lasts while the journal itself is renamed and begun
    anew. The system drops it with the process that holds it, so a crash blocks nobody; readers
    never ask for it. Where a file system has no locks, one warning is logged and work goes on.

    who: what decides, for the one that comes second
    """
    lock = _Lock(journal, who)
    try:
        yield
    finally:
        lock.release()


def refuse_if_written(journal: Path) -> None:
    """Raise InputError if a journal has a writer at this moment; nothing is taken or made."""
    try:
        file = os.open(_beside(journal), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in TAKEN:
            raise _taken(journal, _holder(file)) from None
    finally:
        os.close(file)


def _beside(journal: Path) -> Path:
    real = journal.resolve()
    return real.with_name(real.name + SUFFIX)


class _Lock:
    def __init__(self, journal: Path, who: str) -> None:
        self._path = _beside(journal)
        self._file: int | None = None
        self._pid = os.getpid()
        try:
            self._take(journal, who)
        except OSError as error:
            if journal.parent.is_dir():  # else there is no journal either, which is said elsewhere
                log.warning(
                    "%s cannot be locked (%s): that no other Autoscaler writes it is not checked",
                    journal, error.strerror,
                )  # fmt: skip

    def release(self) -> None:
        """Let the next one write."""
        file, self._file = self._file, None
        if file is None:
            return
        _held.discard(self)
        if os.getpid() == self._pid:  # a forked child's copy is not the owner
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(file)

    def forget(self) -> None:
        """In a forked child: close the copy of the file, which leaves the parent its lock."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                os.close(file)

    def _take(self, journal: Path, who: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        while self._file is None:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not self._is_at_its_path(file):  # its last owner removed it meanwhile
                    os.close(file)
                    continue
                os.ftruncate(file, 0)
                os.write(file, json.dumps({"pid": os.getpid(), "who": who}).encode())
            except OSError as error:
                holder = _holder(file)
                os.close(file)
                if error.errno in TAKEN:
                    raise _taken(journal, holder) from None
                raise
            self._file = file
            _held.add(self)

    def _is_at_its_path(self, file: int) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        own = os.fstat(file)
        return (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)


def _holder(file: int) -> tuple[int | None, str]:
    """The process that a lock names, and what it decides on."""
    try:
        said = json.loads(os.pread(file, 4096, 0))
        return int(said["pid"]), str(said["who"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, ""


def _taken(journal: Path, holder: tuple[int | None, str]) -> InputError:
    pid, who = holder
    owner = "another process" if pid is None else f"process {pid}"
    if pid == os.getpid():
        owner = f"this process, {pid},"
    about = f" for {who}" if who else ""
    return InputError(
        f"{owner} writes {journal} already{about}: two Autoscalers would mix their decisions in "
        "it. Give each a journal of its own, or stop the other one first"
    )


def _after_fork() -> None:
    for lock in list(_held):
        lock.forget()
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)
