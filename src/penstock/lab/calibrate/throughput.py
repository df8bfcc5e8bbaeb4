"""How throughput grows with executors: a Nexmark query under full load, measured.

Every repetition visits all sizes in a random order of its own, so that a slow minute of the
machine does not fall on the same size each time. All events were released long ago, so the query
always has more than it can take, and every measurement reads the same events from the first on.
A micro-batch gives every executor one task with the same number of records, so the fixed cost of
a task weighs the same at every size: what is missing from a linear speed-up is what the executors
cost each other, the waves of state partitions, and the time in which the driver plans.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.capacity.curve import PowerCurve, fit
from penstock.core.errors import InputError
from penstock.lab.clusters.standalone.cluster import ClusterSpec, LocalCluster
from penstock.lab.queries import nexmark
from penstock.lab.rig.saturation import Counting, lasted, resize, saturated_throughput
from penstock.report.statistics import Estimate, estimate
from penstock.workloads.nexmark import NexmarkEvents, NexmarkStream
from penstock.workloads.patterns import Constant

MINUTE = 3.0  # seconds that a minute of event time lasts, so that windows close while we look
EVENT_RATE = 100_000.0  # events per second of event time
BACKLOG = 86_400.0  # seconds of events that wait at the start
WARM_BATCHES = 2  # not counted after the executors have their quota
MEASURE_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSpec:
    """Which query and sizes, how often, how long (seconds each), and the executors.

    ``cpu_share`` of a core each · ``partitions`` of its state · ``rows_per_executor`` records
    that a micro-batch gives to each executor.
    """

    query: str = "q1"
    sizes: tuple[int, ...] = (1, 2, 4, 8)
    repeats: int = 3
    seconds: float = 20.0
    cpu_share: float | None = 0.2
    partitions: int = 8
    rows_per_executor: int = 60_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.query not in nexmark.QUERIES:
            from penstock.core.errors import unknown

            raise unknown("query", self.query, nexmark.QUERIES)
        if not self.sizes or min(self.sizes) < 1 or len(set(self.sizes)) < len(self.sizes):
            raise InputError(f"sizes {list(self.sizes)} must be different numbers ≥ 1")
        for name in ("repeats", "partitions", "rows_per_executor"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)} must be ≥ 1")
        if not self.seconds > 0:
            raise InputError(f"seconds {self.seconds} must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeResult:
    """One size: throughput in records/s, and how many times that of the smallest size."""

    executors: int
    throughput: Estimate
    speedup: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """All sizes and the curve through every single measurement; ``None`` for one size only."""

    spec: CalibrationSpec
    sizes: tuple[SizeResult, ...]
    curve: PowerCurve | None
    limited: bool


def calibrate(
    spec: CalibrationSpec, *, say: Callable[[str], None], measured: Callable[[int, float], None]
) -> Calibration:
    """Measure all sizes; ``measured`` is called with every size and its throughput."""
    order = random.Random(spec.seed)
    passes: list[dict[int, float]] = []
    most = max(spec.sizes)
    with LocalCluster(ClusterSpec(slots=most, cpu_share=spec.cpu_share), say=say) as cluster:
        conf = {"spark.sql.shuffle.partitions": str(spec.partitions)}
        spark = cluster.session("penstock lab calibrate", start_with=1, conf=conf)
        for _ in range(spec.repeats):
            sizes = list(spec.sizes)
            order.shuffle(sizes)
            rates = {}
            for size in sizes:
                say(f"{size} executors: starting and warming up…")
                resize(spark, size)
                rates[size] = throughput(spark, spec, size, cluster)
                measured(size, rates[size])
            passes.append(rates)
        limited = cluster.limited
    return summarize(spec, passes, limited=limited)


def summarize(
    spec: CalibrationSpec, passes: Sequence[dict[int, float]], *, limited: bool
) -> Calibration:
    """Means, speed-ups within each repetition, and the curve."""
    smallest = min(spec.sizes)
    results = tuple(
        SizeResult(
            executors=size,
            throughput=estimate([p[size] for p in passes]),
            speedup=estimate([p[size] / p[smallest] for p in passes]),
        )
        for size in sorted(spec.sizes)
    )
    points = [(size, rate) for rates in passes for size, rate in rates.items()]
    curve = fit(*zip(*points, strict=True)) if len(spec.sizes) > 1 else None
    return Calibration(spec=spec, sizes=results, curve=curve, limited=limited)


def throughput(spark: Any, spec: CalibrationSpec, size: int, cluster: LocalCluster) -> float:
    """Records/s of a fresh query, over whole batches planned after the executors were warm."""
    query = nexmark.QUERIES[spec.query]
    events = NexmarkStream(
        events=NexmarkEvents(bids=10),
        pattern=Constant(rps=EVENT_RATE),
        start=time.time() - BACKLOG,
        seconds=BACKLOG,
        tables=tuple(query.tables),
        partitions=size,
        max_rows=spec.rows_per_executor * size,
    )

    def start(folder: Path) -> Any:
        return nexmark.start(
            spark,
            query,
            events,
            nexmark.Settings(minute=MINUTE),
            folder=folder,
            trigger=0.0,
            sink="noop",
        )

    counting = Counting(
        enough=lambda batches: lasted(batches) >= spec.seconds,
        ready=lambda: cluster.warm,
        skip=WARM_BATCHES,
        within=MEASURE_SECONDS,
        hint="lower --rows or raise --cpu-share",
    )
    return saturated_throughput(start, counting, parent=cluster.folder).rate
