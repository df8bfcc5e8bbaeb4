"""The throughput of a query that has more to read than it takes: the one way to measure it.

A fresh query is started on the executors that are there, its first batches are skipped, and whole
batches are counted until there are enough. Who measures says which query runs and which batches
count (:class:`Counting`):

- ``calibrate`` and the geo study compare sizes: from when all executors are warm on, so that none
  is measured at full speed; the geo study cuts the time into windows to see its spread.
- ``rig.capacity`` has warmed its executors in rounds before, and counts from the start; with Kafka
  it ends early when all that was written has been read.
- ``calibrate.profile`` counts a number of batches, not seconds, as it fits what each cost; its
  engine has to run while it waits.
- ``proofs`` only need a load that fits: the median of three batches, so that one slow batch of a
  busy machine does not matter.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.batches.values import Batch
from penstock.core.errors import EngineError, InputError
from penstock.core.model import Change
from penstock.spark.act.executors import ExecutorPool
from penstock.spark.read.progress import recent_batches
from penstock.spark.read.rest import Rest

LOOK = 0.5  # seconds between two looks at the batches
RESIZE_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Which batches of a saturated query count, and when they are enough.

    enough: whether those that count so far are; asked as soon as there is one
    skip: how many of the first ones do not count
    within: seconds after which it is given up
    hint: what to do then
    ready: batches planned after it was first true can count; ``None``: all from the start
    wait: waits a moment for more batches; ``None``: does nothing meanwhile
    """

    enough: Callable[[Sequence[Batch]], bool]
    skip: int
    within: float
    hint: str
    ready: Callable[[], bool] | None = None
    wait: Callable[[Any], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturatedThroughput:
    """Whole batches of a saturated query, one after the other, and what they come to."""

    batches: tuple[Batch, ...]

    @property
    def rate(self) -> float:
        """Records/s over all of the time."""
        return rate(self.batches)

    @property
    def median_rate(self) -> float:
        """Records/s of the batch in the middle, each by its own duration."""
        return statistics.median(b.rows / b.duration for b in self.batches)

    @property
    def batch_seconds(self) -> float:
        """Seconds that a batch took on average."""
        return mean_duration(self.batches)

    def windows(self, parts: int) -> tuple[float, ...]:
        """Records/s of so many parts that last about as long: the spread of the throughput."""
        return tuple(rate(part) for part in cut(self.batches, parts))


def saturated_throughput(
    start: Callable[[Path], Any],
    counting: Counting,
    *,
    parent: Path,
    at_end: Callable[[Any], None] = lambda running: None,
) -> SaturatedThroughput:
    """Run a query that always has more to read than it takes, until enough batches count.

    ``start`` starts it with a fresh folder, made in ``parent`` and gone afterwards, for its
    checkpoint and result. ``at_end`` gets the query when all has been counted, while it still runs.
    """
    with fresh_folder(parent) as folder:
        running = start(folder)
        with stopping(running):
            batches = counted_batches(running, counting)
            at_end(running)
    return SaturatedThroughput(batches=tuple(batches))


def counted_batches(running: Any, counting: Counting) -> list[Batch]:
    """The whole batches of a running query that count, when they are enough.

    Batches without records never count. Raises if the query ends, or if it takes too long.
    """
    ready = counting.ready
    since = 0.0 if ready is None else None
    deadline = time.monotonic() + counting.within
    while time.monotonic() < deadline:
        if counting.wait is not None:
            counting.wait(running)
        elif running.awaitTermination(LOOK):
            raise EngineError(f"query {running.name} stopped while it was measured")
        if since is None and ready is not None and ready():
            since = time.time()
        if since is not None:
            counted = [b for b in full_batches(running) if b.start >= since][counting.skip :]
            if counted and counting.enough(counted):
                return counted
    raise EngineError(
        f"query {running.name} did not finish enough batches within {counting.within:.0f} s; "
        f"{counting.hint}"
    )


def full_batches(query: Any) -> list[Batch]:
    """The batches that a running query remembers and that had something to do."""
    return [batch for batch in recent_batches(query) if batch.rows]


def lasted(batches: Sequence[Batch]) -> float:
    """Seconds from the first planning to the last commit."""
    return batches[-1].end - batches[0].start


def rate(batches: Sequence[Batch]) -> float:
    """Records/s from the first planning to the last commit."""
    return sum(b.rows for b in batches) / lasted(batches)


def mean_duration(batches: Sequence[Batch]) -> float:
    """Seconds that a batch took on average."""
    return statistics.fmean(b.duration for b in batches)


def cut(batches: Sequence[Batch], parts: int) -> list[Sequence[Batch]]:
    """Whole batches in so many parts that last about as long; at least one batch in each.

    A batch belongs to the part in which its middle lies, as far as each is to have one.
    """
    if not 1 <= parts <= len(batches):
        raise InputError(f"{len(batches)} batches cannot be cut into {parts} parts")
    begin, seconds = batches[0].start, lasted(batches)
    found: list[Sequence[Batch]] = []
    first = 0
    for part in range(1, parts):
        edge = begin + seconds * part / parts
        end = first + 1
        most = len(batches) - (parts - part)  # leaves one for each part that follows
        while end < most and batches[end].start + batches[end].duration / 2 < edge:
            end += 1
        found.append(batches[first:end])
        first = end
    return [*found, batches[first:]]


def resize(spark: Any, size: int) -> None:
    """Wait until the session has so many executors."""
    context = spark.sparkContext
    rest = Rest(context.uiWebUrl, context.applicationId)
    pool = ExecutorPool(context)
    deadline = time.monotonic() + RESIZE_SECONDS
    alive = sum(e.alive for e in rest.executors())
    pool.resize(Change(before=alive, slots=size, raw=size), rest.executors(), time.time())
    while pool.acting:
        if time.monotonic() > deadline:
            raise EngineError(f"{size} executors were not there after {RESIZE_SECONDS:.0f} s")
        time.sleep(0.2)
        pool.track(rest.executors(), time.time())


@contextmanager
def stopping(running: Any) -> Iterator[None]:
    """Stop a query at the end, in the midst of a batch if need be: an overloaded one has no pause.

    After Ctrl-C that is left to the cluster's end, which is faster.
    """
    try:
        yield
    except Exception:
        with suppress(Exception):
            running.stop()
        raise
    running.stop()


@contextmanager
def fresh_folder(parent: Path) -> Iterator[Path]:
    """A folder for a query's checkpoint and result; it is gone afterwards."""
    path = parent / f"query-{time.monotonic_ns()}"
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
