"""Waiting for something real to happen, with a deadline instead of a sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_never = threading.Event()


def until(what: str, holds: Callable[[], bool], seconds: float = 90.0) -> None:
    """Wait for a condition; fail with its name when it does not come true."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        _never.wait(0.05)
