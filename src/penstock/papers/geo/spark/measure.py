"""Measure the throughput of a geo job on the executors that a session has now.

The job gets more than it can take: hours of events wait when it starts, and a micro-batch takes a
fixed number of them. Throughput is what it read over the time, whole batches only.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock.batches.partitions import busiest_stage, partitions_of
from penstock.batches.values import Batch, Stage, Task
from penstock.core.errors import EngineError, InputError
from penstock.lab.queries import geo
from penstock.lab.queries.geo_jobs import WINDOW
from penstock.lab.rig.saturation import Counting, SaturatedThroughput, lasted, saturated_throughput
from penstock.spark.ports import CpuMetered
from penstock.spark.read.cpu import CpuMeter
from penstock.spark.read.rest import Rest
from penstock.workloads.patterns import Constant

BACKLOG = 7_200.0  # seconds of events that wait at the start
PARTITIONS = 12  # of the sources together, and of the state: whole waves on 1, 2, 3, 4, 6 and 12
ENDLESS = 100_000.0  # records/s of a stream where their times do not matter


def session_conf(partitions: int = PARTITIONS) -> dict[str, str]:
    """Spark settings of a session in which jobs are measured."""
    return {"spark.sql.shuffle.partitions": str(partitions), **geo.STATE}


Stages = Mapping[int, Sequence[Stage]]  # by batch
Tasks = Mapping[int, Sequence[Task]]  # by stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """One measurement of a job at one parallelism.

    rows: most records of a micro-batch
    windows: records/s of each part of it
    durations: seconds of its batches
    busy: share of the time in which each executor ran a task and did not wait for others' data
    cpu: share of its quota that each used, where it is known
    fetch_wait: share of the tasks' time that they waited for others' data
    skew: the busiest partition of the costliest stage over their mean
    state_rows: rows of state that were kept at the end
    """

    job: str
    executors: int
    rows: int
    windows: tuple[float, ...]
    durations: tuple[float, ...]
    busy: Mapping[str, float]
    cpu: Mapping[str, float]
    fetch_wait: float
    skew: float | None
    state_rows: int

    @property
    def mean(self) -> float:
        """Records/s, of all windows."""
        return statistics.fmean(self.windows)

    @property
    def least(self) -> float:
        """Records/s of the slowest window."""
        return min(self.windows)

    @property
    def most(self) -> float:
        """Records/s of the fastest window."""
        return max(self.windows)

    def __str__(self) -> str:
        busy = self.busy.values()
        waited = f", waits {self.fetch_wait:.0%}" if self.fetch_wait >= 0.005 else ""
        return (
            f"{self.job} on {self.executors}: {self.mean:,.0f} records/s "
            f"({self.least:,.0f} to {self.most:,.0f}), batches of "
            f"{statistics.fmean(self.durations):.1f} s, busy {min(busy):.0%} to {max(busy):.0%}"
            f"{waited}"
        )


class Cluster(CpuMetered, Protocol):
    """Where the executors of a session run: a local cluster, or one of several sites."""

    @property
    def folder(self) -> Path:
        """Where it keeps what is only needed while it runs."""
        ...

    @property
    def warm(self) -> bool:
        """Whether all executors are past their time at full speed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a measurement goes.

    rows: most records of a micro-batch
    windows, seconds: how many times are counted, and how long each lasts
    skip: batches that do not count after the executors are warm
    partitions: tasks that read a micro-batch
    within: seconds until it is given up
    """

    rows: int
    partitions: int = PARTITIONS
    windows: int = 3
    seconds: float = 20.0
    skip: int = 2
    within: float = 600.0

    def __post_init__(self) -> None:
        for name, least in (("rows", 1), ("partitions", 1), ("windows", 1), ("skip", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} {getattr(self, name)} must be ≥ {least}")
        for name in ("seconds", "within"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} {value} must be a finite number of seconds above 0")

    def enough(self, batches: Sequence[Batch]) -> bool:
        """Whether all windows are full, with a batch in each."""
        return lasted(batches) >= self.windows * self.seconds and len(batches) >= self.windows


def measure(
    spark: Any,
    cluster: Cluster,
    job: geo.GeoJob,
    course: Course,
    *,
    at_end: Callable[[], None] = lambda: None,
) -> Throughput:
    """Run a job on the executors that are there; nobody else may use or change them meanwhile.

    ``at_end`` is called when all has been counted, while the query still runs.
    """
    if course.rows % job.cycle:
        raise InputError(
            f"{job.name}: rows {course.rows:,} must be a multiple of {job.cycle:,}, the messages "
            "of a window: else no two batches are the same work. Take another scale for others"
        )
    context = spark.sparkContext
    rest = Rest(context.uiWebUrl, context.applicationId)
    rest.new_stages()  # those of the past
    before = _alive(rest)
    events = job.events(
        start=(time.time() - BACKLOG) // WINDOW * WINDOW,  # a batch is a window
        seconds=BACKLOG,
        partitions=course.partitions,
        max_rows=course.rows,
        pattern=None if job.stateful else Constant(rps=ENDLESS),
    )
    meter = CpuMeter(cluster)
    cores = dict.fromkeys(before, 1)

    def ready() -> bool:
        if cluster.warm:
            meter.used(context.applicationId, cores)  # from here on
            return True
        return False

    cpu: dict[str, float] = {}
    run_id = ""

    def counted(running: Any) -> None:
        nonlocal run_id
        run_id = str(running.runId)
        cpu.update(meter.used(context.applicationId, cores))
        at_end()

    measured = saturated_throughput(
        lambda folder: geo.start(
            spark, job, events, folder=folder, trigger=0.0, sink="noop", name=f"geo-{job.name}"
        ),
        Counting(
            enough=course.enough,
            ready=ready,
            skip=course.skip,
            within=course.within,
            hint="take fewer rows, or raise cpu_share",
        ),
        parent=cluster.folder,
        at_end=counted,
    )
    batches = measured.batches
    full = sum(rows.max_rows or 0 for rows in events)
    if short := [b for b in batches if b.rows < full]:
        raise EngineError(
            f"{job.name}: a batch read {short[0].rows:,} of {full:,} records, so the job was not "
            "saturated: take more rows, or give it more work"
        )
    if _alive(rest) != before:
        raise EngineError(f"{job.name}: executors came or went while it was measured")
    stages = _stages(rest, run_id, {b.id for b in batches})
    tasks = {s.id: rest.tasks(s) for some in stages.values() for s in some if s.tasks}
    return throughput_of(
        job.name,
        measured,
        stages,
        tasks,
        executors=before,
        cpu=cpu,
        rows=full,
        windows=course.windows,
    )


def _alive(rest: Rest) -> list[str]:
    return sorted(e.id for e in rest.executors() if e.alive)


def _stages(rest: Rest, run_id: str, batches: set[int]) -> dict[int, list[Stage]]:
    found: dict[int, list[Stage]] = {}
    for stage in rest.new_stages():
        if stage.run_id == run_id and stage.batch in batches:
            found.setdefault(stage.batch, []).append(stage)
    return found


def throughput_of(
    job: str,
    measured: SaturatedThroughput,
    stages: Stages,
    tasks: Tasks,
    *,
    executors: Sequence[str],
    cpu: Mapping[str, float],
    rows: int,
    windows: int,
) -> Throughput:
    """The throughput of a job from what was measured, with the stages and tasks of its batches."""
    batches = measured.batches
    seconds = lasted(batches)
    ran = [stage for batch in batches for stage in stages.get(batch.id, ())]
    busy = dict.fromkeys(executors, 0.0)
    for stage in ran:
        for task in tasks.get(stage.id, ()):
            if task.executor in busy:
                busy[task.executor] += task.busy / seconds
    run_time = sum(stage.run_time for stage in ran)
    return Throughput(
        job=job,
        executors=len(executors),
        rows=rows,
        windows=measured.windows(windows),
        durations=tuple(batch.duration for batch in batches),
        busy=busy,
        cpu=dict(cpu),
        fetch_wait=sum(stage.fetch_wait for stage in ran) / run_time if run_time else 0.0,
        skew=_skew(batches, stages, tasks),
        state_rows=batches[-1].state_rows,
    )


def _skew(batches: Sequence[Batch], stages: Stages, tasks: Tasks) -> float | None:
    found = []
    for batch in batches:
        stage = busiest_stage([batch], stages)
        partitions = stage and partitions_of(stage, tasks.get(stage.id, ()))
        if partitions and partitions.skew is not None:
            found.append(partitions.skew)
    return statistics.fmean(found) if found else None
