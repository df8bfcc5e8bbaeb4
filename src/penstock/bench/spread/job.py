"""Spread the simulated runs of a bench over Spark: one job, a task per parcel of runs.

An accumulator brings back what a task did as soon as it has ended, and once, however often Spark
had to try it. So this is a way to run tasks like the others of :mod:`penstock.compare.runner`: what
is finished is kept, in whatever order it comes.

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
from penstock.bench.spread.tasks import Parcel, Reply, Terms, pack, versions
from penstock.compare.runner import Add, Task
from penstock.core.errors import EngineError, MissingError, PenstockError

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext

CANCEL_SECONDS = 10.0  # for a job to end


class OnSpark:
    """A way to run tasks (``penstock.compare.runner.Way``) on a Spark master; ``say`` gets a line
    per step.
    """

    def __init__(self, master: Master, *, say: Say = lambda line: None) -> None:
        self.master, self._say = master, say

    def __call__(self, tasks: Sequence[Task], add: Add) -> None:
        """Run tasks; for none nothing is started."""
        if not tasks:
            return
        files = _files(tasks) if self.master.remote else {}
        terms = Terms(versions=versions(), files=files)
        with connected(self.master, files, self._say) as context:
            slots = context.defaultParallelism
            parcels = pack(tasks, slots)
            self._say(f"{sum(map(len, parcels))} runs, {slots} at a time, {len(parcels)} tasks")
            job = _Job(context, parcels, terms)
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


def _keep(reply: Reply, folder: Path, add: Add) -> None:
    reply.write(folder)
    add(reply.rows)
    if reply.error is not None:
        raise reply.error


class _Job:
    """A job under way in a thread of its own, so that Ctrl-C finds this one in Python."""

    def __init__(self, context: SparkContext, parcels: Sequence[Parcel], terms: Terms) -> None:
        self._context = context
        self._mail: queue.SimpleQueue[Reply | Exception | None] = queue.SimpleQueue()
        sheaf = [pickle.dumps(parcel) for parcel in parcels]
        post: Any = _Post(self._mail.put)  # Spark only calls its methods
        outbox = context.accumulator(cast(list[Reply], []), post)
        deed = _deed(pickle.dumps(terms), outbox)
        self._thread = threading.Thread(target=self._submit, args=(sheaf, deed), daemon=True)
        self._thread.start()

    def _submit(self, sheaf: list[bytes], deed: Callable[[Iterable[bytes]], None]) -> None:
        try:
            self._context.parallelize(sheaf, len(sheaf)).foreachPartition(deed)
            self._mail.put(None)
        except Exception as error:
            self._mail.put(error)

    def replies(self) -> Iterator[Reply]:
        """Every reply as it comes; raises when the job fails."""
        while (mail := self._mail.get()) is not None:
            if isinstance(mail, Exception):
                raise explained(mail)
            yield mail

    def end(self) -> list[Reply]:
        """Cancel what still runs; the replies that nobody has taken."""
        if self._thread.is_alive():
            with contextlib.suppress(Exception):  # Java may be gone
                self._context.cancelAllJobs()
            self._thread.join(CANCEL_SECONDS)
        left = []
        with contextlib.suppress(queue.Empty):
            while True:
                mail = self._mail.get_nowait()
                left += [mail] if isinstance(mail, Reply) else []
        return left


class _Post:
    """An accumulator's parameter that hands on what tasks add instead of adding it up."""

    def __init__(self, deliver: Callable[[Reply], None]) -> None:
        self._deliver = deliver

    def __reduce__(self) -> tuple[Any, ...]:
        from pyspark.accumulators import AddingAccumulatorParam

        return AddingAccumulatorParam, ([],)  # within a task it is an ordinary list

    def zero(self, value: list[Reply]) -> list[Reply]:
        """Nothing."""
        return []

    def addInPlace(self, value: list[Reply], more: list[Reply]) -> list[Reply]:  # noqa: N802
        """Hand on what a task has added; this is Spark's name for it."""
        for reply in more:
            self._deliver(reply)
        return value


def _deed(terms: bytes, outbox: Accumulator[list[Reply]]) -> Callable[[Iterable[bytes]], None]:
    """What a task does; sent as code, not by its name, so that it can say what is missing."""

    def deed(sheaf: Iterable[bytes]) -> None:
        try:
            from penstock.bench.spread.tasks import work
        except ImportError as error:
            place = f"in {sys.executable} on {socket.gethostname()}"
            raise ImportError(f"No module named '{error.name}' {place}") from None
        for parcel in sheaf:
            outbox.add([work(pickle.loads(parcel), pickle.loads(terms))])

    return deed


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
