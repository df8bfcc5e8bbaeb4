"""Runs all cells over all seeds in several processes; what is finished is kept.

A finished run is one line of ``scores.jsonl``, so a crash or Ctrl-C loses only what was under way.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.bench import runner as bench
from penstock.bench.mead.cells import Cell
from penstock.bench.mead.experiment import Outcome
from penstock.bench.mead.experiment import run as run_cell
from penstock.bench.mead.traces import arrivals
from penstock.bench.results import SCORES, read_scores
from penstock.bench.runner import Book
from penstock.bench.statistics import Estimate, estimate
from penstock.bench.workers import begin_worker, no_interrupts, stopping
from penstock.core.codec import from_json, to_json
from penstock.core.errors import EngineError, InputError, PenstockError

THREADS = "OPENBLAS_NUM_THREADS"  # of numpy, in a worker: for small matrices more are slower
Progress = Callable[[int, int], None]  # finished runs, all runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run: a cell with a seed on the first ``seconds`` of its trace."""

    cell: Cell
    seed: int
    seconds: float
    detailed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """All runs that a folder holds."""

    runs: tuple[Outcome, ...]

    def of(self, cell: Cell) -> list[Outcome]:
        """The runs of a cell, by seed."""
        return sorted((r for r in self.runs if r.key == cell.key), key=lambda r: r.seed)

    def estimate(self, cell: Cell, figure: str) -> Estimate | None:
        """Mean and interval of a figure over the seeds."""
        values = [float(getattr(outcome, figure)) for outcome in self.of(cell)]
        return estimate(values) if values else None


def load(folder: Path) -> Outcomes:
    """What a folder holds; a line that was cut off does not count."""
    try:
        found = {run: from_json(Outcome, scores) for run, scores in read_scores(folder)}
    except (TypeError, KeyError, InputError) as problem:
        raise InputError(f"{folder / SCORES} cannot be read: {problem}; start anew") from None
    return Outcomes(runs=tuple(found.values()))


def check(workers: int | None) -> None:
    """Refuse what cannot be run, before anything is written."""
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers} must be ≥ 1; leave it out to use all cores")


def run(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    folder: Path,
    *,
    workers: int | None = None,
    seconds: float = math.inf,
    progress: Progress = lambda finished, total: None,
) -> Outcomes:
    """Run what the folder does not hold yet, on the first ``seconds`` of the traces.

    Ctrl-C raises ``KeyboardInterrupt`` after the workers have ended; a second call goes on.
    """
    check(workers)
    done = {(outcome.key, outcome.seed) for outcome in load(folder).runs}
    groups = _groups(cells, seeds, done, seconds)
    total = len(cells) * len(seeds)
    finished = total - sum(map(len, groups))
    progress(finished, total)
    with Book(folder / SCORES) as book:

        def keep(outcome: Outcome) -> None:
            nonlocal finished
            book.add(outcome.key, outcome.seed, to_json(outcome))
            finished += 1
            progress(finished, total)

        if groups:
            _spread(groups, min(workers or bench.cores(), len(groups)), keep)
    return load(folder)


def _groups(
    cells: Sequence[Cell], seeds: Sequence[int], done: set[tuple[str, int]], seconds: float
) -> list[list[Task]]:
    """What is left, by trace and seed: such runs share their windows, and so the fits.

    So do all seeds of BC, which is why they follow one another.
    """
    groups = []
    for trace in dict.fromkeys(cell.trace for cell in cells):
        for seed in seeds:
            left = [
                Task(cell=cell, seed=seed, seconds=seconds, detailed=seed == seeds[0])
                for cell in cells
                if cell.trace == trace and (cell.key, seed) not in done
            ]
            if left:
                groups.append(left)
    return groups


def _spread(groups: list[list[Task]], workers: int, keep: Callable[[Outcome], None]) -> None:
    """Every worker takes a group at a time, run by run, in a process that keeps its fits."""
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
        waiting[lane.submit(_work, task)] = lane, group

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


class Stopped(Exception):  # noqa: N818 (a state, not a fault)
    """The run was left because its parent asked for it."""


def _work(task: Task) -> Outcome:
    """One run; an error names it."""
    cell, seed = task.cell, task.seed
    try:
        times = arrivals(cell.trace, seed, task.seconds)
        return run_cell(cell, seed, times, detailed=task.detailed, check=_check)
    except (PenstockError, Stopped):
        raise
    except Exception as error:
        raise EngineError(f"{cell.key}, seed {seed}: {type(error).__name__}: {error}") from error


def _check() -> None:
    if stopping():
        raise Stopped
