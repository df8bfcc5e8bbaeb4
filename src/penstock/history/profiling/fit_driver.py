"""What a batch takes beyond its tasks, and how much batches and tasks vary."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.history.profiling import lines
from penstock.history.profiling.fit_stages import Costs
from penstock.history.profiling.lineup import LinedUpBatch, Lineup

CLEAR = 3.0  # standard errors above 0 that the time between two tasks must be
LEAST_GAP = 1e-3  # seconds; less between two tasks is none

LEAST_FIRST = 10  # stages with several tasks on an executor
DRAWS = 10  # of the tasks of a batch, for its mean makespan

Seconds = Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCosts:
    """Driver seconds of a batch, and ``gap`` seconds for which a task keeps its slot without
    saying so: to be launched, and to hand in its result.
    """

    planning: float
    commit: float
    error: float
    gap: float
    gap_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Standard deviations of the logarithm, of a kind within the next larger.

    ``task`` is ``None`` where tasks were not read.
    """

    batch: float
    task: float | None
    run: float


def makespan(tasks: Sequence[Seconds], upstream: Sequence[Sequence[int]], slots: int) -> float:
    """Seconds until all tasks have ended: by stage, in their order, on the slot first free.

    >>> makespan([[1.0, 1.0, 1.0], [0.5]], [(), (0,)], 2)
    2.5
    """
    free = [0.0] * slots
    ends: list[float] = []
    for seconds, before in zip(tasks, upstream, strict=True):
        ready = max((ends[u] for u in before), default=0.0)
        ends.append(ready)
        for s in seconds:
            end = max(heapq.heappop(free), ready) + s
            heapq.heappush(free, end)
            ends[-1] = max(ends[-1], end)
    return max(ends)


def expected(
    tasks: Sequence[Seconds],
    upstream: Sequence[Sequence[int]],
    slots: int,
    *,
    noise: float,
    draws: np.random.Generator,
) -> float:
    """The mean makespan of tasks that vary: whoever waits for the last waits for longer."""
    if not noise:
        return makespan(tasks, upstream, slots)
    spans = [
        makespan([_varied(s, noise, draws) for s in tasks], upstream, slots) for _ in range(DRAWS)
    ]
    return sum(spans) / DRAWS


def modelled(row: LinedUpBatch, costs: Sequence[Costs]) -> list[list[float]]:
    """Seconds of the tasks of a batch as the costs have them, by role."""
    return [
        c.tasks_of(n, s).tolist() for c, n, s in zip(costs, row.records, row.state, strict=True)
    ]


def measured(row: LinedUpBatch, said: Sequence[Seconds]) -> list[list[float]]:
    """Seconds of the tasks of a batch by partition: as they were read, else as ``said`` but with
    the sum that the stage reports.
    """
    found = []
    for tasks, stage, expected in zip(row.tasks, row.stages, said, strict=True):
        if len(tasks) == stage.tasks:
            found.append([t.busy for t in sorted(tasks, key=lambda t: t.partition)])
        else:
            total = sum(expected)
            found.append([s * stage.busy / total if total else 0.0 for s in expected])
    return found


def driver_of(lineup: Lineup, said: Sequence[Sequence[Seconds]], noise: float = 0.0) -> DriverCosts:
    """``said`` the modelled tasks of each settled batch, ``noise`` how much tasks vary.

    Duration − makespan of the tasks = driver time + gap · tasks in a row on one slot.
    """
    rows = lineup.settled
    draws = np.random.default_rng(0)
    over = np.array(
        [
            max(0.0, r.batch.duration - _span(r, s, lineup.upstream, noise=noise, draws=draws))
            for r, s in zip(rows, said, strict=True)
        ]
    )
    turns = np.array([_turns(r, lineup) for r in rows])
    line = lines.fit([np.ones(len(rows)), turns], over, relative=False)
    gap, gap_error = line.values[1], line.errors[1]
    if np.ptp(turns) == 0 or not line.clear(1, CLEAR) or gap < LEAST_GAP:
        line = lines.fit([np.ones(len(rows))], over, relative=False)
        gap = gap_error = 0.0
    total = line.values[0]
    told = [r.detail.commit for r in rows if r.detail is not None]
    commit = min(total, float(np.median(told))) if told else 0.0
    return DriverCosts(
        planning=total - commit, commit=commit, error=line.errors[0], gap=gap, gap_error=gap_error
    )


def _span(
    row: LinedUpBatch,
    said: Sequence[Seconds],
    upstream: Sequence[Sequence[int]],
    *,
    noise: float,
    draws: np.random.Generator,
) -> float:
    """Seconds that the tasks of a batch took: as they were read, where they were; else the mean
    over tasks that vary.
    """
    tasks = measured(row, said)
    read = [len(t) == s.tasks for t, s in zip(row.tasks, row.stages, strict=True)]
    if not noise or all(read):
        return makespan(tasks, upstream, row.slots)
    spans = []
    for _ in range(DRAWS):
        varied = [
            s if known else _varied(s, noise, draws) for s, known in zip(tasks, read, strict=True)
        ]
        spans.append(makespan(varied, upstream, row.slots))
    return sum(spans) / DRAWS


def _varied(seconds: Seconds, noise: float, draws: np.random.Generator) -> list[float]:
    factors = np.exp(draws.normal(-(noise**2) / 2, noise, len(seconds)))
    varied: list[float] = (np.asarray(seconds) * factors).tolist()
    return varied


def _turns(row: LinedUpBatch, lineup: Lineup) -> float:
    """Tasks in a row on the busiest slot, if all took equally long."""
    return makespan([[1.0] * s.tasks for s in row.stages], lineup.upstream, row.slots)


def noise_of(lineup: Lineup, said: Sequence[Sequence[Seconds]]) -> Noise:
    """How much durations scatter around what the profile says, at three levels.

    Tasks: how they differ from what is said of them within a stage. Batches: what is left of the
    deviation of their sum within a run. Runs: by how much all of one are longer or shorter, as a
    machine is faster and slower by the minute; that is no noise between batches.
    """
    rows = lineup.settled
    within: list[np.ndarray] = []
    whole: dict[int, list[tuple[float, int]]] = {}
    by_tasks = []
    for row, expected in zip(rows, said, strict=True):
        total = sum(map(sum, expected))
        busy = sum(s.busy for s in row.stages)
        if total <= 0 or busy <= 0:
            continue
        whole.setdefault(row.run, []).append((float(np.log(busy / total)), row.times))
        by_tasks.append(sum(s * s for stage in expected for s in stage) / total**2)
        for tasks, stage in zip(row.tasks, expected, strict=True):
            logs = _logs([(t.busy, stage[t.partition]) for t in tasks if t.partition < len(stage)])
            if len(logs) > 1 and len(tasks) == len(stage):
                within.append(logs - logs.mean())
    task = _pooled(within) if within else None
    runs = [np.array([log for log, _ in logs]) for logs in whole.values()]
    # The mean of so many batches varies by the root of that less.
    many = [np.sqrt([times for _, times in logs]) for logs in whole.values()]
    apart = [
        (logs - logs.mean()) * root for logs, root in zip(runs, many, strict=True) if len(logs) > 1
    ]
    batch = _pooled(apart) ** 2
    if task is not None:
        batch -= task**2 * float(np.mean(by_tasks))
    return Noise(
        batch=float(np.sqrt(max(0.0, batch))),
        task=task,
        run=lines.deviation(np.array([logs.mean() for logs in runs])),
    )


def _pooled(groups: Sequence[np.ndarray]) -> float:
    """The standard deviation within groups whose means have been taken off."""
    if not groups:
        return 0.0
    values = np.concatenate(groups)
    freedom = len(values) - len(groups)
    return lines.deviation(values) * float(np.sqrt((len(values) - 1) / freedom))


def _logs(pairs: Sequence[tuple[float, float]]) -> np.ndarray:
    return np.array([np.log(busy / said) for busy, said in pairs if busy > 0 and said > 0])


def first_of_stage(lineup: Lineup, said: Sequence[Sequence[Seconds]]) -> tuple[float, float]:
    """Seconds that the first task of a stage takes longer on each executor, and their error.

    Beside the other tasks of the same stage on the same executor; (0, 0) if there are too few.
    """
    more = []
    for row, expected in zip(lineup.settled, said, strict=True):
        for tasks, stage in zip(row.tasks, expected, strict=True):
            by_executor: dict[str, list[float]] = {}
            for t in sorted(tasks, key=lambda t: t.partition):
                if t.partition < len(stage):
                    by_executor.setdefault(t.executor, []).append(t.busy - stage[t.partition])
            more += [off[0] - sum(off[1:]) / len(off[1:])
                     for off in by_executor.values() if len(off) > 1]  # fmt: skip
    if len(more) < LEAST_FIRST:
        return 0.0, 0.0
    values = np.array(more)
    return float(values.mean()), float(values.std(ddof=1)) / len(more) ** 0.5
