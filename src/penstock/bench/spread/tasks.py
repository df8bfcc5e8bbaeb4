"""What one task of a Spark job is given to run, and what it sends back.

Spark takes some 20 ms for a task whatever it does, so a task is a *batch* of runs that take
about a second together. An executor may be on a machine that does not see the folder of the
bench: what the runs write comes back as bytes, and the driver puts it there.
"""

from __future__ import annotations

import socket
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import penstock
from penstock.comparison.runner import Done, Task, run_one
from penstock.core.errors import MissingError, PenstockError
from penstock.history.files import atomic

LARGEST = 5_000.0  # simulated minutes of a batch: about a second
SHARE = 0.5  # of what is left for a slot: batches get smaller, so that no slot idles at the end
JOURNAL_COST = 10.0  # times as long as a run that does not write every decision down
SLOW_COST = 50.0  # times as long as a run of the fluid simulator: one on Spark's twin
PACKAGES = ("numba", "numpy", "scipy")  # that a figure could depend on

Batch = tuple[Task, ...]  # runs that one task of Spark does, each of one cell


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    """What holds for all batches of a job.

    ``versions`` that the driver has · ``files`` that cells name and executors may not see: where
    each lies beside the package that was sent along.
    """

    versions: Mapping[str, str]
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReply:
    """What became of a batch: its finished runs, and why the rest did not run, if so.

    ``files`` that the runs left, compressed, by their path in the folder of the bench.
    """

    rows: Done
    files: Mapping[str, bytes]
    error: PenstockError | None = None

    def write(self, folder: Path) -> None:
        """Put the files into the folder of a bench, each at once or not at all."""
        for name, packed in self.files.items():
            with atomic(folder / name) as partial:
                partial.write_bytes(zlib.decompress(packed))


def in_batches(tasks: Sequence[Task], slots: int) -> list[Batch]:
    """All runs of some tasks, in their order, in batches that are smaller towards the end.

    A batch is half of what is left for each of ``slots``, at most ``LARGEST`` simulated minutes;
    it is more only if a single run is.
    """
    runs = [replace(task, cells=(cell,)) for task in tasks for cell in task.cells]
    left = sum(map(_cost, runs))
    batches: list[list[Task]] = []
    room = 0.0
    for run in runs:
        cost = _cost(run)
        if cost > room:
            batches.append([])
            room = min(LARGEST, left * SHARE / slots)
        batches[-1].append(run)
        room -= cost
        left -= cost
    return [tuple(batch) for batch in batches]


def _cost(run: Task) -> float:
    """Simulated minutes that take as long without a journal."""
    cell = run.cells[0]
    if cell.slow:  # its observations take longer than its journal
        return cell.minutes * SLOW_COST
    return cell.minutes * (JOURNAL_COST if run.journals else 1.0)


@cache
def versions() -> Mapping[str, str]:
    """Of the packages that a figure could depend on, as installed here."""
    return {name: version(name) for name in PACKAGES}


def work(batch: Batch, terms: JobTerms) -> BatchReply:
    """Run a batch in this process, up to the first run that fails."""
    rows: Done = []
    error: PenstockError | None = None
    with TemporaryDirectory(prefix="penstock-") as scratch:
        folder = Path(scratch)
        try:
            _check(terms.versions)
            for run in batch:
                here = replace(_moved(run, terms.files), folder=folder)
                rows.append((here.cells[0].key, here.seed, run_one(here, here.cells[0])))
        except PenstockError as problem:
            error = problem
        return BatchReply(rows=rows, files=_written(folder), error=error)


def _check(wanted: Mapping[str, str]) -> None:
    """The same versions as on the driver; else a seed might draw something else here."""
    have = versions()
    if wrong := [f"{name} {have[name]}" for name in wanted if have[name] != wanted[name]]:
        install = " ".join(f"{name}=={number}" for name, number in wanted.items())
        raise MissingError(
            f"{sys.executable} on {socket.gethostname()} has {', '.join(wrong)}, unlike this "
            f"machine. There: pip install {install}"
        )


def _moved(run: Task, files: Mapping[str, str]) -> Task:
    """The same run, its file where it is on this machine."""
    cell = run.cells[0]
    place = files.get(str(cell.workload_parameters.get("file")))
    if place is None:
        return run
    path = Path(penstock.__file__).parents[1] / place
    parameters = {**cell.workload_parameters, "file": str(path)}
    return replace(run, cells=(replace(cell, workload_parameters=parameters),))


def _written(folder: Path) -> dict[str, bytes]:
    """The files below a folder, compressed, without those of a run that failed half-way."""
    return {
        str(path.relative_to(folder)): zlib.compress(path.read_bytes(), 1)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".part"
    }
