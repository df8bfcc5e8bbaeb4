"""Work in several processes of this machine; what is finished is kept.

Ctrl-C is for the parent alone: it asks the workers to end, waits for them, and keeps what they
had finished by then. A worker ends with its parent, however that ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from typing import Any, TypeVar

from penstock.core.errors import EngineError

THREADS = "OPENBLAS_NUM_THREADS"  # of numpy, in a worker: for small matrices more are slower

Item = TypeVar("Item")
Result = TypeVar("Result")


class Stopped(Exception):  # noqa: N818 (a state, not a fault)
    """What a worker was at is left, because its parent asked for it."""


def spread(
    groups: Sequence[Sequence[Item]],
    work: Callable[[Item], Result],
    workers: int,
    keep: Callable[[Result], None],
) -> None:
    """Do all items with ``work``, a function of a module, and give each result to ``keep``.

    A worker takes a whole group and does it item by item, so that it can hold on to what the items
    share; ``keep`` is called in this process, in the order in which items are finished. When an
    item fails, or on Ctrl-C, the workers end, what they finished is kept, and it is raised.
    """
    context = multiprocessing.get_context("spawn")  # forking a process with threads is unsafe
    stop = context.Event()
    pools = [
        ProcessPoolExecutor(1, mp_context=context, initializer=_begin_worker, initargs=(stop,))
        for _ in range(min(workers, len(groups)))
    ]
    coming = iter(groups)
    waiting: dict[Future[Result], tuple[ProcessPoolExecutor, Iterator[Item]]] = {}

    def go_on(pool: ProcessPoolExecutor, group: Iterator[Item]) -> None:
        for item in group:
            waiting[pool.submit(work, item)] = pool, group
            return
        following = next(coming, None)
        if following is not None:
            go_on(pool, iter(following))

    try:
        with _one_thread(), _no_interrupts():  # the workers inherit both
            for pool in pools:
                go_on(pool, iter(()))
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                pool, group = waiting.pop(future)
                keep(future.result())
                go_on(pool, group)
    except BrokenProcessPool:
        raise EngineError(
            "a worker process ended without a word, perhaps for lack of memory. What was "
            "finished is kept: resume with fewer --workers"
        ) from None
    finally:
        stop.set()  # see `stopping`
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)
        for future in waiting:
            if future.done() and not future.cancelled() and future.exception() is None:
                keep(future.result())


_stop: Event | None = None


def stopping() -> bool:
    """Whether this process is a worker that has been asked to end."""
    return _stop is not None and _stop.is_set()


def leave_if_stopping() -> None:
    """Leave what this worker is at if it has been asked to end."""
    if stopping():
        raise Stopped


def _begin_worker(stop: Event) -> None:
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: Any) -> None:
    parent.join()
    os._exit(1)


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """No Ctrl-C in here, nor in the processes that begin here."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that begin here have one thread for linear algebra, unless told otherwise."""
    given = os.environ.get(THREADS)
    os.environ[THREADS] = given or "1"
    try:
        yield
    finally:
        if given is None:
            del os.environ[THREADS]
