"""Spread the simulated runs of a bench over Spark: one job, a task per batch of runs.

An accumulator brings back what a task did as soon as it has ended, and once, however often Spark
had to try it. So this is a way to run tasks like the others of :mod:`penstock.comparison.runner`:
what is finished is kept, in whatever order it comes.

Executors of a cluster get this very package with the job, so they cannot run another version; the
packages that it needs have to be installed there.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from penstock.bench.spread.sessions import Master, Say, connected
from penstock.bench.spread.tasks import Batch, BatchReply, JobTerms, in_batches, versions
from penstock.comparison.runner import Add, Task
from penstock.core.errors import EngineError, MissingError, PenstockError

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext

CANCEL_SECONDS = 10.0  # for a job to end


class OnSpark:
    """A way to run tasks on a Spark master (``penstock.comparison.runner.Way``).

    ``say`` gets a line per step.
    """

    def __init__(self, master: Master, *, say: Say = lambda line: None) -> None:
        self.master, self._say = master, say

    def __call__(self, tasks: Sequence[Task], add: Add) -> None:
        """Run tasks; for none nothing is started."""
        if not tasks:
            return
        files = _files(tasks) if self.master.remote else {}
        terms = JobTerms(versions=versions(), files=files)
        with connected(self.master, files, self._say) as context:
            slots = context.defaultParallelism
            batches = in_batches(tasks, slots)
            self._say(f"{sum(map(len, batches))} runs, {slots} at a time, {len(batches)} tasks")
            job = _Job(context, batches, terms)
            try:
                for reply in job.replies():
                    _keep(reply, tasks[0].folder, add)
            finally:
                for reply in job.end():
                    with contextlib.suppress(PenstockError):  # one is on its way already
                        _keep(reply, tasks[0].folder, add)


def _files(tasks: Sequence[Task]) -> dict[str, str]:
    """Files of the user that cells name, and a name for each beside the package."""
    named = {str(c.workload_parameters.get("file", "")) for task in tasks for c in task.cells}
    found = sorted(name for name in named if name and Path(name).is_file())
    return {name: f"files/{number}-{Path(name).name}" for number, name in enumerate(found)}


def _keep(reply: BatchReply, folder: Path, add: Add) -> None:
    reply.write(folder)
    add(reply.rows)
    if reply.error is not None:
        raise reply.error


class _Job:
    """A job under way in a thread of its own, so that Ctrl-C finds this one in Python."""

    def __init__(self, context: SparkContext, batches: Sequence[Batch], terms: JobTerms) -> None:
        self._context = context
        self._queue: queue.SimpleQueue[BatchReply | Exception | None] = queue.SimpleQueue()
        packed = [pickle.dumps(batch) for batch in batches]
        hand_on: Any = _HandOn(self._queue.put)  # Spark only calls its methods
        replies = context.accumulator(cast(list[BatchReply], []), hand_on)
        task = _task(pickle.dumps(terms), replies)
        self._thread = threading.Thread(target=self._submit, args=(packed, task), daemon=True)
        self._thread.start()

    def _submit(self, packed: list[bytes], task: Callable[[Iterable[bytes]], None]) -> None:
        try:
            self._context.parallelize(packed, len(packed)).foreachPartition(task)
            self._queue.put(None)
        except Exception as error:
            self._queue.put(error)

    def replies(self) -> Iterator[BatchReply]:
        """Every reply as it comes; raises when the job fails."""
        while (reply := self._queue.get()) is not None:
            if isinstance(reply, Exception):
                raise explained(reply)
            yield reply

    def end(self) -> list[BatchReply]:
        """Cancel what still runs; the replies that nobody has taken."""
        if self._thread.is_alive():
            with contextlib.suppress(Exception):  # Java may be gone
                self._context.cancelAllJobs()
            self._thread.join(CANCEL_SECONDS)
        left = []
        with contextlib.suppress(queue.Empty):
            while True:
                reply = self._queue.get_nowait()
                left += [reply] if isinstance(reply, BatchReply) else []
        return left


class _HandOn:
    """An accumulator's parameter that hands on what tasks add instead of adding it up."""

    def __init__(self, deliver: Callable[[BatchReply], None]) -> None:
        self._deliver = deliver

    def __reduce__(self) -> tuple[Any, ...]:
        from pyspark.accumulators import AddingAccumulatorParam

        return AddingAccumulatorParam, ([],)  # within a task it is an ordinary list

    def zero(self, value: list[BatchReply]) -> list[BatchReply]:
        """Begin with an empty list, as nothing is added up."""
        return []

    def addInPlace(self, value: list[BatchReply], more: list[BatchReply]) -> list[BatchReply]:  # noqa: N802
        """Hand on what a task has added; this is Spark's name for it."""
        for reply in more:
            self._deliver(reply)
        return value


def _task(
    terms: bytes, replies: Accumulator[list[BatchReply]]
) -> Callable[[Iterable[bytes]], None]:
    """What a task does; sent as code, not by its name, so that it can say what is missing."""

    def task(packed: Iterable[bytes]) -> None:
        try:
            from penstock.bench.spread.tasks import work
        except ImportError as error:
            place = f"in {sys.executable} on {socket.gethostname()}"
            raise ImportError(f"No module named '{error.name}' {place}") from None
        for batch in packed:
            replies.add([work(pickle.loads(batch), pickle.loads(terms))])

    return task


def explained(error: Exception) -> PenstockError:
    """What made a job fail, as a person would say it."""
    text = str(error)
    place = re.search(r"\(TID \d+\) \((\S+) executor", text)
    where = f"the executor on {place[1]}" if place else "an executor"
    if missing := re.search(r"No module named '([\w.]+)' in (\S+) on (\S+)", text):
        name, python, host = missing.groups()
        wanted = " ".join(f"{package}=={number}" for package, number in versions().items())
        return MissingError(f"{python} on {host} has no {name}. There: pip install {wanted}")
    if program := re.search(r'Cannot run program "([^"]+)"', text):
        return MissingError(
            f"{where} has no {program[1]}. Set PYSPARK_PYTHON to the Python that is there"
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        return MissingError(
            f"Python on {where} has another version than here. Set PYSPARK_PYTHON to one that has "
            "the same"
        )
    said = re.search(r"most recent failure: (.+)", text) or re.search(r"(?m)^: (.+)", text)
    reason = said[1] if said else text.split("\n")[0]
    return EngineError(f"Spark gave up: {reason}. What was finished is kept")
