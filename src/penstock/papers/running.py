"""Runs in several processes; what is finished is kept.

A finished run is one line of ``scores.jsonl``, so a crash or Ctrl-C loses only what was under way.
Each worker takes a group of runs at a time and does them one by one, so that it can keep what
they share.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from penstock.compare import runner as bench
from penstock.compare.processes import begin_worker, no_interrupts, stopping
from penstock.compare.results import SCORES, read_scores
from penstock.compare.runner import Book
from penstock.core.codec import from_json, to_json
from penstock.core.errors import EngineError, InputError, PenstockError

THREADS = "OPENBLAS_NUM_THREADS"  # of numpy, in a worker: for small matrices more are slower
Progress = Callable[[int, int], None]  # finished runs, all runs


class Named(Protocol):
    """A run that is to be done, or what came of it."""

    @property
    def key(self) -> str:
        """Of its cell."""
        ...

    @property
    def seed(self) -> int:
        """With which it is run."""
        ...


Task = TypeVar("Task", bound=Named)
Outcome = TypeVar("Outcome", bound=Named)


class Stopped(Exception):  # noqa: N818 (a state, not a fault)
    """The run was left because its parent asked for it."""


def leave_if_stopping() -> None:
    """Leave the run that this worker is at if it has been asked to end."""
    if stopping():
        raise Stopped


def load(kind: type[Outcome], folder: Path) -> tuple[Outcome, ...]:
    """What a folder holds; a line that was cut off does not count."""
    try:
        found = {run: from_json(kind, scores) for run, scores in read_scores(folder)}
    except (TypeError, KeyError, InputError) as problem:
        raise InputError(f"{folder / SCORES} cannot be read: {problem}; start anew") from None
    return tuple(found.values())


def check(workers: int | None) -> None:
    """Refuse what cannot be run, before anything is written."""
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers} must be ≥ 1; leave it out to use all cores")


def run(
    groups: Sequence[Sequence[Task]],
    work: Callable[[Task], Outcome],
    kind: type[Outcome],
    folder: Path,
    *,
    workers: int | None = None,
    progress: Progress = lambda finished, total: None,
) -> tuple[Outcome, ...]:
    """Do what the folder does not hold yet with ``work``, a function of a module; all outcomes.

    Ctrl-C raises ``KeyboardInterrupt`` after the workers have ended; a second call goes on.
    """
    check(workers)
    done = {(outcome.key, outcome.seed) for outcome in load(kind, folder)}
    left = [[task for task in group if (task.key, task.seed) not in done] for group in groups]
    left = [group for group in left if group]
    total = sum(map(len, groups))
    finished = total - sum(map(len, left))
    progress(finished, total)
    with Book(folder / SCORES) as book:

        def keep(outcome: Outcome) -> None:
            nonlocal finished
            book.add(outcome.key, outcome.seed, to_json(outcome))
            finished += 1
            progress(finished, total)

        if left:
            _spread(left, _Named(work), min(workers or bench.cores(), len(left)), keep)
    return load(kind, folder)


class _Named(Generic[Task, Outcome]):
    """Work whose errors name the run."""

    def __init__(self, work: Callable[[Task], Outcome]) -> None:
        self._work = work

    def __call__(self, task: Task) -> Outcome:
        leave_if_stopping()
        try:
            return self._work(task)
        except (PenstockError, Stopped):
            raise
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise EngineError(f"{task.key}, seed {task.seed}: {problem}") from error


def _spread(
    groups: Sequence[Sequence[Task]],
    work: Callable[[Task], Outcome],
    workers: int,
    keep: Callable[[Outcome], None],
) -> None:
    context = multiprocessing.get_context("spawn")  # forking a process with threads is unsafe
    stop = context.Event()
    lanes = [
        ProcessPoolExecutor(1, mp_context=context, initializer=begin_worker, initargs=(stop,))
        for _ in range(workers)
    ]
    coming = iter(groups)
    waiting: dict[Future[Outcome], tuple[ProcessPoolExecutor, Iterator[Task]]] = {}

    def go_on(lane: ProcessPoolExecutor, group: Iterator[Task]) -> None:
        task = next(group, None)
        while task is None:
            following = next(coming, None)
            if following is None:
                return
            group = iter(following)
            task = next(group, None)
        waiting[lane.submit(work, task)] = lane, group

    try:
        with _one_thread(), no_interrupts():  # Ctrl-C is for the parent alone
            for lane in lanes:
                go_on(lane, iter(()))
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                lane, group = waiting.pop(future)
                keep(future.result())
                go_on(lane, group)
    except BrokenProcessPool:
        raise EngineError(
            "a worker process ended without a word, perhaps for lack of memory. What was "
            "finished is kept: resume with fewer --workers"
        ) from None
    finally:
        stop.set()  # each worker leaves the run it is at
        for lane in lanes:
            lane.shutdown(wait=True, cancel_futures=True)
        for future in waiting:
            if future.done() and not future.cancelled() and future.exception() is None:
                keep(future.result())


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
