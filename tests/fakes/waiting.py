"""Waiting for something real to happen, with a deadline instead of a sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

_never = threading.Event()


def until(what: str, holds: Callable[[], bool], seconds: float = 90.0) -> None:
    """Wait for a condition; fail with its name when it does not come true."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        _never.wait(0.05)


def children(pid: int) -> set[int]:
    """Processes that a process has started and that are still there."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return set(map(int, path.read_text().split()))
    except OSError:
        return set()


def ended(pid: int) -> bool:
    """Whether a process is gone, but for its exit code."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"  # nobody waits for it
