"""The throughput of a geo job at several parallelisms, each several times.

The limit of a micro-batch is the same at every size, so a batch is the same work everywhere and
what differs is who does it. It is as large as the most executors do in a few seconds.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.bench.geo_spark.measure import Cluster, Course, measure
from penstock.bench.geo_spark.throughput import Throughput
from penstock.bench.saturation import resize
from penstock.bench.spark.batch_size import settle
from penstock.core.errors import InputError
from penstock.spark.pipelines.geo import GeoJob

FIRST_ROWS = 1_000  # per executor, where nothing is known yet
TARGET = 4.0  # seconds of a batch on the most executors
ROUNDS = 8
ROUND = 2.0  # seconds of batches in a round that only looks for the right size

Resize = Callable[[Any, int], None]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """All measurements at one parallelism; records/s."""

    executors: int
    runs: tuple[Throughput, ...]

    @property
    def windows(self) -> tuple[float, ...]:
        """Of all runs."""
        return tuple(rate for run in self.runs for rate in run.windows)

    @property
    def mean(self) -> float:
        """Of all windows."""
        return statistics.fmean(self.windows)

    @property
    def least(self) -> float:
        """Of the slowest window."""
        return min(self.windows)

    @property
    def most(self) -> float:
        """Of the fastest window."""
        return max(self.windows)


def sweep(
    spark: Any,
    cluster: Cluster,
    job: GeoJob,
    course: Course,
    *,
    sizes: Sequence[int],
    repeats: int = 3,
    seed: int = 0,
    resize: Resize = resize,
    say: Say = lambda line: None,
) -> tuple[Level, ...]:
    """Visit all sizes in a random order, ``repeats`` times; the levels in ascending order.

    ``resize`` brings a session to a number of executors: where they run is for the caller.
    """
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        raise InputError(f"sizes {list(sizes)} must be different numbers ≥ 1")
    if repeats < 1:
        raise InputError(f"repeats {repeats} must be ≥ 1")
    order = random.Random(seed)
    runs: dict[int, list[Throughput]] = {size: [] for size in sorted(sizes)}
    for _ in range(repeats):
        for size in order.sample(list(sizes), len(sizes)):
            resize(spark, size)
            found = measure(spark, cluster, job, course)
            say(str(found))
            runs[size].append(found)
    return tuple(Level(executors=size, runs=tuple(some)) for size, some in runs.items())


def rows_for(
    spark: Any,
    cluster: Cluster,
    job: GeoJob,
    course: Course,
    *,
    executors: int,
    target: float = TARGET,
    say: Say = lambda line: None,
) -> int:
    """Records of a micro-batch that takes the executors that are there about ``target`` seconds.

    Of a join whole windows, at least one, however long that takes.
    """
    quick = replace(course, windows=1, seconds=ROUND, skip=1)

    def whole(rows: int) -> int:
        return max(1, round(rows / job.cycle)) * job.cycle

    def seconds(rows: int) -> float:
        run = measure(spark, cluster, job, replace(quick, rows=whole(rows)))
        return statistics.fmean(run.durations) * rows / whole(rows)

    return whole(settle(seconds, FIRST_ROWS * executors, target, rounds=ROUNDS, say=say))
