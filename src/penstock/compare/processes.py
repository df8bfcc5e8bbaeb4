"""Processes that do the runs of a bench: Ctrl-C is for their parent, and they end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from typing import Any


@contextmanager
def no_interrupts() -> Iterator[None]:
    """No Ctrl-C in here, nor in the processes that begin here."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_stop: Event | None = None


def begin_worker(stop: Event) -> None:
    """Prepare a worker process: it ends with its parent, however that ends."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def stopping() -> bool:
    """Whether this worker has been asked to end."""
    return _stop is not None and _stop.is_set()


def _follow(parent: Any) -> None:
    parent.join()
    os._exit(1)
