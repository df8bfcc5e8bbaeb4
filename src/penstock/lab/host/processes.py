"""Processes: start them so that they die with us, find them, measure them, end them.

Everything here reads Linux's ``/proc``; a process that vanishes while it is read counts as gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
_NETWORK_NAMESPACE = 0x40000000  # CLONE_NEWNET, setns(2)


def _stat(pid: int) -> list[str] | None:
    """The fields of ``/proc/<pid>/stat`` from the state on (field 3 is first), or None if gone."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()  # the name in parentheses may hold blanks


def all_pids() -> list[int]:
    """Every process that is visible from here."""
    return [int(entry) for entry in os.listdir(PROC) if entry.isdigit()]  # noqa: PTH208 (hot path)


def started(pid: int) -> int | None:
    """When a process started, in clock ticks after boot; with its pid this names it for good."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def parent(pid: int) -> int | None:
    """The process that started a process, or that took it over; None if it is gone."""
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def running(pid: int) -> bool:
    """Whether a process exists and is more than a zombie."""
    fields = _stat(pid)
    return fields is not None and fields[0] not in "ZX"


def tree_cpu_seconds(roots: Iterable[int]) -> dict[int, float]:
    """CPU seconds used so far by each process, its descendants and its descendants that ended.

    The time of a child that was waited for is already in its parent's account, so the figure
    never falls while the root lives. One pass over ``/proc`` serves all roots.
    """
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for pid in all_pids():
        fields = _stat(pid)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(pid)
            seconds[pid] = sum(map(int, fields[11:15])) / TICKS_PER_SECOND
    totals = {}
    for root in roots:
        if root in seconds:
            total, rest = 0.0, [root]
            while rest:
                pid = rest.pop()
                total += seconds[pid]
                rest.extend(children.get(pid, ()))
            totals[root] = total
    return totals


def own_cpu_seconds() -> float:
    """CPU seconds used so far by this process and all that it has started."""
    return tree_cpu_seconds([os.getpid()])[os.getpid()]


def with_variable(name: str, value: str) -> list[int]:
    """Processes that were started with ``name=value`` in their environment, except this one."""
    wanted = f"{name}={value}".encode()
    found = []
    for pid in all_pids():
        with contextlib.suppress(OSError):
            if wanted in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                found.append(pid)
    return [pid for pid in found if pid != os.getpid() and running(pid)]


def end_all(find: Callable[[], Iterable[int]], *, within: float) -> bool:
    """Kill what ``find`` finds until it finds nothing; False if some survive ``within`` seconds."""
    deadline = time.monotonic() + within
    while pids := list(find()):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class Nursery:
    """Starts child processes that the kernel kills when this Python process ends, however it ends.

    The kernel ties the parent-death signal to the *thread* that forked, so all children are
    started from one thread that lives until :meth:`close`. Each child leads a session of its own:
    Ctrl-C in the terminal reaches Python only, which then shuts down in order.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)  # loaded before any fork
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="penstock-nursery", daemon=True)

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            order()

    def start(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        network: int | None = None,
        keep: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start one child; its standard output and error go to the file ``log``.

        ``network`` the descriptor of a network namespace to run in · ``keep`` descriptors that
        stay open in it.
        """
        parent = os.getpid()

        def die_with_parent() -> None:
            if network is not None and self._libc.setns(network, _NETWORK_NAMESPACE) != 0:
                os._exit(1)
            self._libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != parent:  # it died between fork and here
                os._exit(1)

        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def order() -> None:
            try:
                with log.open("ab") as out:
                    answer.put(
                        subprocess.Popen(
                            command,
                            env=env,
                            cwd=cwd,
                            stdin=subprocess.DEVNULL,
                            stdout=out,
                            stderr=subprocess.STDOUT,
                            start_new_session=True,
                            pass_fds=keep,
                            preexec_fn=die_with_parent,
                        )
                    )
            except Exception as problem:
                answer.put(problem)

        if self._thread.ident is None:
            self._thread.start()
        self._orders.put(order)
        child = answer.get()
        if isinstance(child, Exception):
            raise child
        assert isinstance(child, subprocess.Popen)
        return child

    def close(self) -> None:
        """End the thread; children that still run die with it."""
        self._orders.put(None)


def terminate(child: subprocess.Popen[bytes], *, within: float) -> None:
    """Ask a child to end, and kill it after ``within`` seconds."""
    child.terminate()
    try:
        child.wait(within)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


class NormalExit:
    """Lets SIGTERM and SIGHUP end Python the normal way, unless the program handles them."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    def take(self) -> None:
        """Begin; only the main thread can, from another this does nothing."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:
                    self._before[number] = signal.signal(number, _exit_normally)

    def restore(self) -> None:
        """Leave signals as they were before."""
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)
            self._before.clear()


def _exit_normally(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
