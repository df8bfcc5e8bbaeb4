"""The runs of a paper: a cell with a seed each, what came of them, and the folder that keeps it.

A finished run is one line of ``scores.jsonl``, so a crash or Ctrl-C loses only what was under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from penstock.comparison.processes import Stopped, leave_if_stopping, spread
from penstock.comparison.results import SCORES, read_scores
from penstock.comparison.runner import ScoresFile, cores
from penstock.core.codec import from_json, to_json
from penstock.core.errors import EngineError, InputError, PenstockError
from penstock.report.statistics import Difference, Estimate, estimate, paired

Progress = Callable[[str, int, int], None]  # what is run, finished runs, all runs
Say = Callable[[str], None]

Cell = TypeVar("Cell")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRun(Generic[Cell]):
    """One run that is to be done: a cell with a seed.

    key: of the cell
    detailed: whether it also leaves what the pictures need
    """

    key: str
    cell: Cell
    seed: int
    detailed: bool = False


class Named(Protocol):
    """What came of a run: its figures under the cell's key and the seed."""

    @property
    def key(self) -> str:
        """The key of its cell."""
        ...

    @property
    def seed(self) -> int:
        """The seed that it was run with."""
        ...


Outcome = TypeVar("Outcome", bound=Named)


@dataclass(frozen=True, kw_only=True)  # slots forbid `Outcomes[X](…)` in Python 3.11
class Outcomes(Generic[Outcome]):
    """All runs that a folder holds, with means and differences of their figures."""

    runs: tuple[Outcome, ...]

    def of(self, key: str) -> list[Outcome]:
        """The runs of a cell, by seed."""
        return sorted((run for run in self.runs if run.key == key), key=lambda run: run.seed)

    def run(self, key: str, seed: int) -> Outcome | None:
        """The run of a cell with a seed; ``None`` if it is not there."""
        return next((run for run in self.of(key) if run.seed == seed), None)

    def values(self, key: str, figure: str) -> list[float]:
        """A figure by seed; runs that do not have it are left out."""
        found = (getattr(run, figure) for run in self.of(key))
        return [float(value) for value in found if value is not None]

    def estimate(self, key: str, figure: str) -> Estimate | None:
        """Mean and interval of a figure over the seeds; ``None`` where nothing has it."""
        values = self.values(key, figure)
        return estimate(values) if values else None

    def paired(self, key: str, base: str, figure: str) -> Difference:
        """The difference of two cells, seed by seed."""
        return paired(self.values(key, figure), self.values(base, figure))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """Where the runs of a reproduction are kept, and how they are done.

    workers: processes; all cores if left out
    progress: is told how many runs are finished
    say: is told what happens in a long run
    """

    path: Path
    workers: int | None = None
    progress: Progress = lambda what, finished, total: None
    say: Say = lambda line: None

    def in_processes(
        self,
        groups: Sequence[Sequence[CellRun[Cell]]],
        work: Callable[[CellRun[Cell]], Outcome],
        kind: type[Outcome],
    ) -> tuple[Outcome, ...]:
        """Do what is missing with ``work``, a function of a module; all outcomes.

        A worker does a group one by one, so that it can hold on to what its runs share. Ctrl-C
        raises ``KeyboardInterrupt`` after the workers have ended; a second call goes on.
        """
        check_workers(self.workers)
        with self._missing(groups, kind) as (left, keep):
            if left:
                spread(left, _Reported(work), self.workers or cores(), keep)
        return load(kind, self.path)

    def one_by_one(
        self,
        runs: Sequence[CellRun[Cell]],
        work: Callable[[CellRun[Cell]], Outcome],
        kind: type[Outcome],
    ) -> tuple[Outcome, ...]:
        """Do what is missing in this process, for runs that need the whole machine."""
        with self._missing([runs], kind) as (left, keep):
            for group in left:
                for run in group:
                    keep(work(run))
        return load(kind, self.path)

    @contextmanager
    def _missing(
        self, groups: Sequence[Sequence[CellRun[Cell]]], kind: type[Outcome]
    ) -> Iterator[tuple[list[list[CellRun[Cell]]], Callable[[Outcome], None]]]:
        """Yield the runs that the folder does not hold, and what keeps one when it is finished."""
        done = {(outcome.key, outcome.seed) for outcome in load(kind, self.path)}
        left = [[run for run in group if (run.key, run.seed) not in done] for group in groups]
        left = [group for group in left if group]
        total = sum(map(len, groups))
        finished = total - sum(map(len, left))
        self.progress("runs", finished, total)
        with ScoresFile(self.path / SCORES) as file:

            def keep(outcome: Outcome) -> None:
                nonlocal finished
                file.add(outcome.key, outcome.seed, to_json(outcome))
                finished += 1
                self.progress("runs", finished, total)

            yield left, keep


class _Reported(Generic[Cell, Outcome]):
    """Work whose errors name the run."""

    def __init__(self, work: Callable[[CellRun[Cell]], Outcome]) -> None:
        self._work = work

    def __call__(self, run: CellRun[Cell]) -> Outcome:
        leave_if_stopping()
        try:
            return self._work(run)
        except (PenstockError, Stopped):
            raise
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise EngineError(f"{run.key}, seed {run.seed}: {problem}") from error


def load(kind: type[Outcome], folder: Path) -> tuple[Outcome, ...]:
    """The finished runs of a folder; a line that was cut off does not count."""
    try:
        found = {run: from_json(kind, scores) for run, scores in read_scores(folder)}
    except (TypeError, KeyError, InputError) as problem:
        raise InputError(f"{folder / SCORES} cannot be read: {problem}; start anew") from None
    return tuple(found.values())


def check_workers(workers: int | None) -> None:
    """Refuse a number of processes that cannot be, before anything is written."""
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers} must be ≥ 1; leave it out to use all cores")
