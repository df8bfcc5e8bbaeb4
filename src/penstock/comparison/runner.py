"""Run the cells of a bench with every seed, on all cores; what is done is never done again.

A finished run is one line of ``scores.jsonl``, so a crash or Ctrl-C loses only what was under
way. The order of the runs, the number of workers and where they are change no figure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from penstock import __version__
from penstock.comparison import trace as traces
from penstock.comparison.cell import Cell
from penstock.comparison.processes import spread, stopping
from penstock.comparison.results import SCORES, TRACES, Results, read_cells, read_scores
from penstock.comparison.scores import Scores
from penstock.core.errors import EngineError, InputError, PenstockError
from penstock.history.files import write_text
from penstock.report.runs import CELLS

JOURNALS = "journals"
SAME_FIGURES = ("0.1.0",)  # earlier versions whose runs have the same figures as this one's
LARGEST_TASK = 8  # runs that a worker does before it reports
TASKS_PER_WORKER = 8  # at least so many, so that no worker idles at the end
RUNS_PER_WORKER = 12  # fewer are not worth starting another process
SLOW_PER_WORKER = 2  # likewise, of runs that take longer

Progress = Callable[[int, int], None]  # finished runs, all runs
Done = list[tuple[str, int, Scores]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A few cells to run with one seed, and whether they leave a journal and a trace behind."""

    cells: tuple[Cell, ...]
    seed: int
    folder: Path
    journals: bool = False
    traces: bool = False


Add = Callable[[Done], None]
Way = Callable[[Sequence[Task], Add], None]
"""How tasks are run: each calls ``add`` from the caller's thread with runs as they finish.

It may do so in any order. When it is interrupted or a run fails it ends what it started, adds
what was finished by then and raises.
"""


def run(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    folder: Path,
    *,
    workers: int | None = None,
    way: Way | None = None,
    progress: Progress = lambda done, total: None,
    journals: bool = False,
    traces: bool = True,
) -> Results:
    """Run what ``folder`` does not hold yet; all results.

    ``workers`` processes, as many as are useful if left out · ``way`` to run them instead, as
    ``penstock.bench.spread.job`` is one · ``journals``, ``traces`` whether the first seed of
    each cell leaves them. Ctrl-C raises ``KeyboardInterrupt`` after the workers have ended; what
    was finished is in the folder and a second call goes on from there.
    """
    check(cells, seeds, workers)
    begin(folder, cells, seeds)
    done = {run for run, _ in read_scores(folder)}
    total = len(cells) * len(seeds)
    tasks = _tasks(cells, seeds, done, folder, workers, journals=journals, traces=traces)
    left = sum(len(task.cells) for task in tasks)
    progress(total - left, total)
    finished = total - left
    with ScoresFile(folder / SCORES) as file:

        def add(rows: Done) -> None:
            nonlocal finished
            for key, seed, scores in rows:
                if (key, seed) not in done:  # a run that was repeated after a failure counts once
                    done.add((key, seed))
                    file.add(key, seed, scores)
                    finished += 1
            progress(finished, total)

        useful = min(workers or useful_workers(left, slow=cells[0].slow), len(tasks))
        way = way or (partial(_in_processes, useful) if useful > 1 else _in_turn)
        way(tasks, add)
    return Results.load(folder, read=type(cells[0]).from_dict)


def check(cells: Sequence[Cell], seeds: Sequence[int], workers: int | None = None) -> None:
    """Refuse what cannot be run, before anything is written."""
    if not cells:
        raise InputError("no cells to run; name at least one policy, workload and pipeline")
    if not seeds:
        raise InputError("no seeds to run; at least one is needed")
    keys = [cell.key for cell in cells]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise InputError(f"two cells have the same key {twice[0]!r}; keys must be unique")
    if len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise InputError(f"seeds {list(seeds)} must be different whole numbers ≥ 0")
    if workers is not None and workers < 1:
        raise InputError(f"workers {workers} must be ≥ 1")


def begin(folder: Path, cells: Sequence[Cell], seeds: Sequence[int]) -> None:
    """Write down what is to be run, or make sure that it is what the folder was started with."""
    document = {
        "penstock": __version__,
        "seeds": list(seeds),
        "cells": [cell.to_dict() for cell in cells],
    }
    path = folder / CELLS
    if path.exists():
        read = type(cells[0]).from_dict
        if differing := _differing(read_cells(folder), json.loads(json.dumps(document)), read):
            raise InputError(
                f"{folder} was started with {differing}; its results cannot be mixed. Resume it "
                "with the spec it was started with, or start a new bench"
            )
        return
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _differing(
    before: dict[str, Any], now: dict[str, Any], read: Callable[[Mapping[str, Any]], Cell]
) -> str:
    """What a folder was started with, where that is not what is to be run now; else empty."""
    if not same_figures(before.get("penstock")):
        return f"penstock {before.get('penstock')}, this is {now['penstock']}"
    if before["seeds"] != now["seeds"]:
        return f"{len(before['seeds'])} other seeds"
    cells = [read(cell).to_dict() for cell in before["cells"]]
    return "" if json.loads(json.dumps(cells)) == now["cells"] else "other cells"


def same_figures(version: object) -> bool:
    """Whether runs of a version can stand beside runs of this one."""
    return version == __version__ or version in SAME_FIGURES


def _tasks(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    done: set[tuple[str, int]],
    folder: Path,
    workers: int | None,
    *,
    journals: bool,
    traces: bool,
) -> list[Task]:
    """What is left, seed by seed, so that an interrupted bench has the same seeds of all cells.

    Cells that share a load and a seed go to the same worker, which then draws the load once.
    """
    scenes: dict[str, list[Cell]] = {}
    for cell in cells:
        scenes.setdefault(cell.scene, []).append(cell)
    left = len(cells) * len(seeds) - len(done)
    share = left // ((workers or cores()) * TASKS_PER_WORKER)
    size = min(max(share, 1), LARGEST_TASK)
    tasks = []
    for seed in seeds:
        first = seed == seeds[0]
        for scene in scenes.values():
            todo = [cell for cell in scene if (cell.key, seed) not in done]
            tasks += [
                Task(
                    cells=tuple(todo[i : i + size]),
                    seed=seed,
                    folder=folder,
                    journals=journals and first,
                    traces=traces and first,
                )
                for i in range(0, len(todo), size)
            ]
    return tasks


def _work(task: Task) -> Done:
    """Run the cells of a task, or as many as there is time for."""
    done: Done = []
    for cell in task.cells:
        if stopping():
            break
        done.append((cell.key, task.seed, run_one(task, cell)))
    return done


def run_one(task: Task, cell: Cell) -> Scores:
    """Run one cell of a task; an error names the run."""
    journal = task.folder / JOURNALS / f"{cell.key}.jsonl" if task.journals else None
    try:
        outcome = cell.run(task.seed, journal=journal, trace=task.traces)
    except PenstockError:
        raise
    except Exception as error:
        raise EngineError(
            f"{cell.key}, seed {task.seed}: {type(error).__name__}: {error}"
        ) from error
    if outcome.trace is not None:
        traces.save(outcome.trace, task.folder / TRACES / f"{cell.key}.npz")
    return outcome.scores


def _in_turn(tasks: Sequence[Task], add: Add) -> None:
    """In this process, one run at a time: each is kept as soon as it is finished."""
    for task in tasks:
        for cell in task.cells:
            add([(cell.key, task.seed, run_one(task, cell))])


def _in_processes(workers: int, tasks: Sequence[Task], add: Add) -> None:
    """Tasks in several processes; one that is stopped gives the runs that it has finished."""
    spread([[task] for task in tasks], _work, workers, add)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def useful_workers(runs: int, *, slow: bool = False) -> int:
    """Processes that are worth starting for so many runs, ``slow`` if each takes longer."""
    return max(1, min(cores(), runs // (SLOW_PER_WORKER if slow else RUNS_PER_WORKER)))


class ScoresFile:
    """``scores.jsonl`` being written; a line torn by a crash is cut off first."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("ab+")
        self._file.seek(0)
        whole = self._file.read()
        self._file.truncate(whole.rfind(b"\n") + 1)

    def add(self, key: str, seed: int, scores: Scores) -> None:
        """Append a finished run."""
        document = {"cell": key, "seed": seed, "scores": scores}
        line = json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n"
        self._file.write(line.encode())
        self._file.flush()

    def __enter__(self) -> ScoresFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
