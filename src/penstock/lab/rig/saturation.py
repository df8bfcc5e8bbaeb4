"""A query that has more to read than it takes: what all measurements of its throughput share.

Who measures says which query runs, from when on its batches count, and when they are enough.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.batches.values import Batch
from penstock.core.errors import EngineError
from penstock.core.model import Change
from penstock.spark.act.executors import ExecutorPool
from penstock.spark.read.progress import recent_batches
from penstock.spark.read.rest import Rest

LOOK = 0.5  # seconds between two looks at the batches
RESIZE_SECONDS = 120.0


def counted_batches(
    running: Any,
    *,
    enough: Callable[[Sequence[Batch]], bool],
    ready: Callable[[], bool] | None = None,
    skip: int,
    within: float,
    hint: str,
) -> list[Batch]:
    """Wait for whole batches until they are enough.

    Counted are batches with records that were planned after ``ready`` was first true (``None``:
    from the start), without the first ``skip`` of them. ``enough`` is asked as soon as there is
    one. Raises if the query ends, or after ``within`` seconds, with a ``hint`` what to do.
    """
    since = 0.0 if ready is None else None
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if running.awaitTermination(LOOK):
            raise EngineError(f"query {running.name} stopped while it was measured")
        if since is None and ready is not None and ready():
            since = time.time()
        if since is not None:
            counted = [b for b in full_batches(running) if b.start >= since][skip:]
            if counted and enough(counted):
                return counted
    raise EngineError(
        f"query {running.name} did not finish enough batches within {within:.0f} s; {hint}"
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
def fresh_folder(parent: Path) -> Iterator[Path]:
    """A folder for a query's checkpoint and result; it is gone afterwards."""
    path = parent / f"query-{time.monotonic_ns()}"
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
