"""What a saturated job did on some executors: throughput, and where the time went."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.batches.partitions import busiest_stage, partitions_of
from penstock.batches.values import Batch, Stage, Task
from penstock.lab.rig.saturation import SaturatedThroughput, lasted

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
