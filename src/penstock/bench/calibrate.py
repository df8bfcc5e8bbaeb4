"""How throughput grows with executors: a stateless map under full load, measured.

Every repetition visits all sizes in a random order of its own, so that a slow minute of the
machine does not fall on the same size each time. The source always has more than the query can
take. A micro-batch gives every executor one task with the same number of records, so the fixed
cost of a task weighs the same at every size: what is missing from a linear speed-up is what the
executors cost each other and the time in which the driver plans.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.bench.statistics import Estimate, estimate
from penstock.core.errors import EngineError, InputError
from penstock.core.model import Change
from penstock.spark.cluster import ClusterSpec, LocalCluster
from penstock.spark.executors import ExecutorPool
from penstock.spark.pipelines.windowed import fingerprint
from penstock.spark.progress import Batch, batch_of
from penstock.spark.rest import Rest
from penstock.spark.sources.events import EventStream, stream
from penstock.workloads.patterns import Constant

ENDLESS = 1e7  # records/s offered: more than any size can take
WARM_BATCHES = 2  # not counted after every start of the query
RESIZE_SECONDS = 120.0
MEASURE_SECONDS = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSpec:
    """Which sizes, how often, how long (seconds each), and the executors' share of a core."""

    sizes: tuple[int, ...] = (1, 2, 4, 8)
    repeats: int = 3
    seconds: float = 15.0
    cpu_share: float | None = 0.2
    rows_per_executor: int = 40_000
    hashes: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1 or len(set(self.sizes)) < len(self.sizes):
            raise InputError(f"sizes {list(self.sizes)} must be different numbers ≥ 1")
        if self.repeats < 1:
            raise InputError(f"repeats {self.repeats} must be ≥ 1")
        if not self.seconds > 0:
            raise InputError(f"seconds {self.seconds} must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeResult:
    """One size: throughput in records/s, and how many times that of the smallest size."""

    executors: int
    throughput: Estimate
    speedup: Estimate


def calibrate(
    spec: CalibrationSpec, *, say: Callable[[str], None], measured: Callable[[int, float], None]
) -> list[SizeResult]:
    """Measure all sizes; ``measured`` is called with every size and its throughput."""
    order = random.Random(spec.seed)
    passes: list[dict[int, float]] = []
    most = max(spec.sizes)
    with LocalCluster(ClusterSpec(slots=most, cpu_share=spec.cpu_share), say=say) as cluster:
        spark = cluster.session("penstock calibrate", start_with=1)
        say(f"warming up {most} executors…")
        _resize(spark, most)
        _throughput(spark, spec, most, cluster, warm_up=True)
        for _ in range(spec.repeats):
            sizes = list(spec.sizes)
            order.shuffle(sizes)
            rates = {}
            for size in sizes:
                _resize(spark, size)
                rates[size] = _throughput(spark, spec, size, cluster)
                measured(size, rates[size])
            passes.append(rates)
    smallest = min(spec.sizes)
    return [
        SizeResult(
            executors=size,
            throughput=estimate([p[size] for p in passes]),
            speedup=estimate([p[size] / p[smallest] for p in passes]),
        )
        for size in sorted(spec.sizes)
    ]


def _throughput(
    spark: Any, spec: CalibrationSpec, size: int, cluster: LocalCluster, *, warm_up: bool = False
) -> float:
    """Records/s of a fresh query, over whole batches after the first ones."""
    events = EventStream(
        pattern=Constant(rps=ENDLESS),
        start=time.time() - 60,
        seconds=86_400,
        partitions=size,
        max_rows=spec.rows_per_executor * size,
    )
    checkpoint = cluster.folder / f"calibrate-{time.monotonic_ns()}"
    query = (
        stream(spark, events)
        .select("offset", fingerprint(spec.hashes).alias("fingerprint"))
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    try:
        deadline = time.monotonic() + MEASURE_SECONDS
        while True:
            if query.awaitTermination(1):
                raise EngineError("the calibration query stopped by itself")
            batches = _batches(query)[WARM_BATCHES:]
            if batches and (warm_up or batches[-1].end - batches[0].start >= spec.seconds):
                return rate(batches)
            if time.monotonic() > deadline:
                raise EngineError(
                    f"{size} executors did not finish enough batches within {MEASURE_SECONDS:.0f} "
                    "s; lower rows_per_executor or raise cpu_share"
                )
    finally:
        query.stop()


def rate(batches: Sequence[Batch]) -> float:
    """Records/s from the first planning to the last commit."""
    return sum(b.rows for b in batches) / (batches[-1].end - batches[0].start)


def _batches(query: Any) -> list[Batch]:
    import json

    found = [batch_of(json.loads(p.json)) for p in query.recentProgress]
    return [b for b in found if b.rows]


def _resize(spark: Any, size: int) -> None:
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
