"""Run the cells of a Spark bench one after the other; what is done is never done again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from penstock.bench.cell import SparkCell
from penstock.comparison import trace as traces
from penstock.comparison.cell import CellRun
from penstock.comparison.results import SCORES, TRACES, read_scores
from penstock.comparison.runner import JOURNALS, ScoresFile, begin, check
from penstock.core.errors import InputError, MissingError
from penstock.lab.rig.allocation import Allocation

ATTEMPTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A run that failed at every attempt, and why at the last."""

    key: str
    seed: int
    why: str

    def __str__(self) -> str:
        return f"{self.key}, seed {self.seed}: {self.why}"


class Worker(Protocol):
    """What runs a cell: Spark, or a stand-in for it."""

    def run(self, cell: SparkCell, seed: int, *, journal: Path | None, first: bool) -> CellRun:
        """Run a cell once; ``first`` whether it is the first seed."""
        ...

    def recover(self) -> None:
        """Make ready for another run after one that failed."""
        ...


def run(
    cells: Sequence[SparkCell],
    seeds: Sequence[int],
    folder: Path,
    worker: Worker,
    *,
    journals: bool = True,
    finished: Callable[[SparkCell, int], None] = lambda cell, seed: None,
    failed: Callable[[Failure, bool], None] = lambda failure, again: None,
) -> list[Failure]:
    """Run what ``folder`` does not hold yet; the runs that failed twice.

    Seed by seed, so that an interrupted bench has the same seeds of all cells; within a seed by
    kind of session, so that few are started. Each finished run
    is one line of ``scores.jsonl``, a journal (with ``journals``) and a trace. ``finished`` is
    called for every run, also for those of a former call; ``failed`` with whether it is tried
    again.
    """
    check(cells, seeds)
    begin(folder, cells, seeds)
    done = {run for run, _ in read_scores(folder)}
    failures: list[Failure] = []
    kind: Allocation | None = None  # of the session that is there; ours measures first
    with ScoresFile(folder / SCORES) as file:
        for seed in seeds:
            for cell in by_session(cells, kind):
                if (cell.key, seed) not in done:
                    kind = cell.allocation()
                    first = seed == seeds[0]
                    name = cell.key if first else f"{cell.key}-seed{seed}"
                    journal = folder / JOURNALS / f"{name}.jsonl" if journals else None
                    outcome = _attempt(cell, seed, journal, worker, first, failed)
                    if isinstance(outcome, Failure):
                        failures.append(outcome)
                        continue
                    if outcome.trace is not None:
                        traces.save(outcome.trace, folder / TRACES / f"{name}.npz")
                    file.add(cell.key, seed, outcome.scores)
                finished(cell, seed)
    return failures


def by_session(cells: Sequence[SparkCell], kind: Allocation | None) -> list[SparkCell]:
    """The cells of each kind of session together: first of this kind, else in the order given."""
    kinds = list(dict.fromkeys([kind, *(cell.allocation() for cell in cells)]))
    return sorted(cells, key=lambda cell: kinds.index(cell.allocation()))


def _attempt(
    cell: SparkCell,
    seed: int,
    journal: Path | None,
    worker: Worker,
    first: bool,
    failed: Callable[[Failure, bool], None],
) -> CellRun | Failure:
    """Run a cell, and once more if it fails. What cannot get better is raised at once."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return worker.run(cell, seed, journal=journal, first=first)
        except (InputError, MissingError):
            raise
        except Exception as error:  # Spark and py4j raise many kinds
            failure = Failure(key=cell.key, seed=seed, why=_words(error))
            failed(failure, number < ATTEMPTS)
            worker.recover()
    return failure


def _words(error: Exception) -> str:
    """The first line of an error; py4j's go on for pages."""
    text = str(error).strip().split("\n", 1)[0] or "no message"
    return f"{type(error).__name__}: {text}"[:300]
