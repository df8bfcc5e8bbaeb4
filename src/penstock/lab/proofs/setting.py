"""Where proofs are played: Nexmark on a few limited executors, at a load that fits the machine.

The load is a multiple of what one executor takes, which is measured first: so a proof is about
the same on a fast machine and on a slow one, with limits on the executors and without.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock.batches.progress import batch_of
from penstock.batches.values import Batch
from penstock.lab.queries import nexmark
from penstock.lab.queries.nexmark import NexmarkQuery, Settings
from penstock.lab.rig.saturation import Counting, SaturatedThroughput, saturated_throughput
from penstock.workloads.nexmark import NexmarkStream
from penstock.workloads.patterns import Constant, Pattern, Trace

SHARE = 0.35  # of a core per executor, where it can be limited
TRIGGER = 2.0  # seconds
SETTINGS = Settings(minute=6.0)  # Q5's windows last 30 s
ENDLESS = 1e7  # records/s: more than any executor takes
FIRST_ROWS = 20_000  # of the batches that find out how large a batch may be
BATCHES = 3  # whose median counts, at least
WARM_BATCHES = 1  # not counted after the executors are ready
WARMING_SECONDS = 10.0  # a time over which executors may still have become faster
FASTER = 1.05  # times the rate of the time before: they still did
MOST_ROUNDS = 4
LONG_ENOUGH = 0.6  # of a trigger
CAPACITY_SECONDS = 300.0


def stream_of(
    query: NexmarkQuery,
    pattern: Pattern,
    *,
    start: float,
    seconds: float,
    slots: int,
    max_rows: int | None = None,
) -> NexmarkStream:
    """The events that a query reads, in as many partitions as there may be executors."""
    return NexmarkStream(
        pattern=pattern,
        start=start,
        seconds=seconds,
        tables=tuple(query.tables),
        partitions=slots,
        max_rows=max_rows,
    )


def pulses(file: Path, *, low: float, high: float, calm: int, busy: int) -> Trace:
    """A load that is ``low`` for ``calm`` seconds, then ``high`` for ``busy``, over and over.

    Rates in records/s. A trace with one row per second, in a file that all executors can read.
    """
    rows = [low] * calm + [high] * busy
    file.write_text("count\n" + "".join(f"{rate!r}\n" for rate in rows))
    return Trace(file=str(file.resolve()), repeat=True)


def capacity(
    spark: Any,
    query: NexmarkQuery,
    *,
    folder: Path,
    slots: int,
    ready: Callable[[], bool] = lambda: True,
) -> float:
    """Records/s that the executors take now, in batches of about ``TRIGGER`` seconds.

    Also warms them up. What is measured counts from when ``ready`` is true. A batch has a fixed
    cost, so small ones would make the executors look slow: they grow until they last. And a JVM
    compiles for minutes what it runs: batches of that size follow until they become no faster.
    """
    rows = FIRST_ROWS
    for _ in range(MOST_ROUNDS):
        duration = rows / _rate(spark, query, folder, slots, rows, ready, lasts)
        if duration >= LONG_ENOUGH * TRIGGER:
            break
        rows = grown(rows, duration)
    return _rate(spark, query, folder, slots, rows, ready, is_warm)


def lasts(batches: Sequence[Batch]) -> bool:
    """Whether there are enough batches to tell how long one takes."""
    return len(batches) >= BATCHES


def is_warm(batches: Sequence[Batch]) -> bool:
    """Whether the last batches were no faster than as many before them."""
    end = batches[-1].end
    many = max(BATCHES, sum(b.start >= end - WARMING_SECONDS for b in batches))
    last, before = batches[-many:], batches[-2 * many : -many]
    return len(before) == many and _median_rate(last) <= FASTER * _median_rate(before)


def _median_rate(batches: Sequence[Batch]) -> float:
    return SaturatedThroughput(batches=tuple(batches)).median_rate


def grown(rows: int, duration: float) -> int:
    """Rows of a batch that comes nearer to ``TRIGGER`` seconds than one of ``duration`` did.

    Were the whole cost fixed no size would do; the square meets the usual mixture half-way.

    >>> grown(20_000, 1.0), grown(20_000, 0.1)
    (80000, 160000)
    """
    return int(rows * min(8.0, (TRIGGER / duration) ** 2))


def saturated(
    spark: Any, query: NexmarkQuery, *, folder: Path, slots: int, rows: int, hours: float = 1.0
) -> Any:
    """Start a query that always has more to read than it takes, ``rows`` in every batch."""
    events = stream_of(
        query,
        Constant(rps=ENDLESS),
        start=time.time() - 100.0,
        seconds=hours * 3600.0,
        slots=slots,
        max_rows=rows,
    )
    name = f"{query.name}-{folder.name}"
    return nexmark.start(
        spark, query, events, SETTINGS, folder=folder, trigger=0.0, sink="noop", name=name
    )


def _rate(
    spark: Any,
    query: NexmarkQuery,
    folder: Path,
    slots: int,
    rows: int,
    ready: Callable[[], bool],
    enough: Callable[[Sequence[Batch]], bool],
) -> float:
    """Records/s of the last batches before there were enough."""
    counting = Counting(
        enough=enough,
        ready=ready,
        skip=WARM_BATCHES,
        within=CAPACITY_SECONDS,
        hint="is the machine overloaded?",
    )
    found = saturated_throughput(
        lambda fresh: saturated(spark, query, folder=fresh, slots=slots, rows=rows),
        counting,
        parent=folder,
        at_end=nexmark.stop,  # between two batches: what follows here is timed from its start
    )
    return _median_rate(found.batches[-BATCHES:])


def last_batch(running: Any) -> Batch | None:
    """The newest finished batch of a query."""
    progress = running.lastProgress
    return None if progress is None else batch_of(json.loads(progress.json))
