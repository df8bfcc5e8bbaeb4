"""Tasks on executors, compiled: a week has tens of millions of them.

An executor with a free core takes the first task that waits, the stages in the order of their jobs
and numbers, the tasks of a stage in the order of its partitions. Of the ends of tasks at the same
moment the one that began first comes first, as everywhere in the event queue, whose count goes on
here.

All arrays belong to ``pool.Pool``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from penstock.simulator.microbatch.profile import ExecutorProfile

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# profile
CORES, FIRST_TASK, SLOWDOWN, WARM_UP, BOOST, BOOST_FOR = range(6)
# state and marks; IDLE is NaN while there is a task, FREE is 1 with a free core
WORKED, BEGINS, IDLE, WROTE = range(4)
RUNNING, COMPLETED, COLD, LEAVING, FREE = range(5)
# stages: place in the queue, and how many tasks
JOB, NUMBER, TASKS, BEGUN, ENDED, WRITES = range(6)
# running
END, TURN, HOST, STAGE, BEGIN = range(5)
# totals: tasks at work and waiting, stages queued, executors with a free core
AT_WORK, WAITING, QUEUED, OPEN = range(4)

F = TypeVar("F", bound=Callable[..., Any])
NONE = -1
WARM = 1e-3  # a slow-down below this is none


def compiled(function: F) -> F:
    """Compile with numba, cached on disk, without counting references to arrays.

    No function here makes any, so there are none to free; counting takes 4/5 of the time of a task.
    """
    options: dict[str, Any] = {"cache": True, "_nrt": False}
    return cast(F, njit(**options)(function))


class Tables(NamedTuple):
    """All that is known of executors and tasks; the columns are named above.

    profile: of the executors
    state, marks: a row for each executor, by its number
    free: executors with a free core, by when they came to have one
    stages: a row for each that is not done
    queue: rows of the stages that have tasks waiting, in their order
    totals: of all
    running: a row for each task at work
    order: rows of these tasks, a heap by their ends, and behind them the free rows
    seconds, places: a row for each stage, with what each task takes, on a warm executor until it
        has begun, and the executor that took it
    """

    profile: Floats
    state: Floats
    marks: Ints
    free: Ints
    stages: Ints
    queue: Ints
    totals: Ints
    running: Floats
    order: Ints
    seconds: Floats
    places: Ints


def values_of(profile: ExecutorProfile) -> Floats:
    """The profile of the executors as an array."""
    names = ("cores", "first_task", "slowdown", "warm_up", "boost", "boost_for")
    return np.array([getattr(profile, name) for name in names], dtype=np.float64)


def tables(profile: ExecutorProfile) -> Tables:
    """Of no executors and no tasks yet."""
    return Tables(
        profile=values_of(profile),
        state=np.zeros((8, 4)),
        marks=np.zeros((8, 5), dtype=np.int64),
        free=np.zeros(8, dtype=np.int64),
        stages=np.zeros((4, 6), dtype=np.int64),
        queue=np.zeros(4, dtype=np.int64),
        totals=np.zeros(4, dtype=np.int64),
        running=np.zeros((8, 5)),
        order=np.arange(8),
        seconds=np.zeros((4, 8)),
        places=np.zeros((4, 8), dtype=np.int64),
    )


def grown(
    t: Tables, *, executors: int = 0, cores: int = 0, stages: int = 0, tasks: int = 0
) -> Tables:
    """The same with room for at least so many."""
    if executors > len(t.state):
        t = t._replace(state=_longer(t.state), marks=_longer(t.marks), free=_longer(t.free))
    while cores >= len(t.running):
        order = np.append(t.order, np.arange(len(t.order), 2 * len(t.order)))
        t = t._replace(running=_longer(t.running), order=order)
    if stages > len(t.stages):
        t = t._replace(
            stages=_longer(t.stages),
            queue=_longer(t.queue),
            seconds=_longer(t.seconds),
            places=_longer(t.places),
        )
    if tasks > t.seconds.shape[1]:
        more = ((0, 0), (0, tasks - t.seconds.shape[1]))
        t = t._replace(seconds=np.pad(t.seconds, more), places=np.pad(t.places, more))
    return t


def _longer(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate((rows, np.zeros_like(rows)))


@compiled
def seconds_after(profile: Floats, seconds: float, worked: float) -> float:
    """What a task takes on an executor after so much work: ``pool.seconds_after``."""
    if worked < profile[BOOST_FOR]:
        faster = min(seconds, (profile[BOOST_FOR] - worked) / profile[BOOST])
        return float(faster * profile[BOOST] + seconds - faster)
    more = profile[SLOWDOWN] - 1.0
    warm_up = profile[WARM_UP]
    if not (more > 0.0 and warm_up > 0.0):
        return seconds
    begin, log = worked / warm_up, math.log(more)
    whole = max(begin, log) + math.log1p(math.exp(-abs(begin - log))) + seconds / warm_up
    end = whole + math.log1p(-more * math.exp(-whole))
    return float((end - begin) * warm_up)


@compiled
def _before(t: Tables, a: int, b: int) -> bool:
    one, other = t.order[a], t.order[b]
    if t.running[one, END] != t.running[other, END]:
        return bool(t.running[one, END] < t.running[other, END])
    return bool(t.running[one, TURN] < t.running[other, TURN])


@compiled
def _swap(t: Tables, a: int, b: int) -> None:
    t.order[a], t.order[b] = t.order[b], t.order[a]


@compiled
def _push(t: Tables) -> None:
    """Take the first free row of ``running`` into the heap."""
    at = t.totals[AT_WORK]
    t.totals[AT_WORK] += 1
    while at and _before(t, at, (at - 1) // 2):
        _swap(t, at, (at - 1) // 2)
        at = (at - 1) // 2


@compiled
def _pop(t: Tables) -> None:
    """Free the row of the task that ends next."""
    t.totals[AT_WORK] -= 1
    size, at = t.totals[AT_WORK], 0
    _swap(t, 0, size)
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(t, child + 1, child):
            child += 1
        if not _before(t, child, at):
            return
        _swap(t, at, child)
        at = child


@compiled
def take(host: int, t: Tables) -> None:
    """An executor has no free core any more, or no use for it."""
    if not t.marks[host, FREE]:
        return
    t.marks[host, FREE] = 0
    t.totals[OPEN] -= 1
    at = 0
    while t.free[at] != host:
        at += 1
    for later in range(at, t.totals[OPEN]):
        t.free[later] = t.free[later + 1]


@compiled
def _begin(
    host: int,
    stage: int,
    now: float,
    turn: int,
    t: Tables,
) -> None:
    """Start the next task of a stage on an executor."""
    task = t.stages[stage, BEGUN]
    t.stages[stage, BEGUN] += 1
    if t.stages[stage, BEGUN] == t.stages[stage, TASKS]:
        at = 0
        while t.queue[at] != stage:
            at += 1
        t.totals[QUEUED] -= 1
        for later in range(at, t.totals[QUEUED]):
            t.queue[later] = t.queue[later + 1]
    took = t.seconds[stage, task]
    if t.marks[host, COLD]:
        worked = t.state[host, WORKED]
        new = t.marks[host, COMPLETED] == 0 and t.marks[host, RUNNING] == 0
        first = t.profile[FIRST_TASK] if new else 0.0
        slow = seconds_after(t.profile, took, worked)
        if first == 0.0 and worked >= t.profile[BOOST_FOR] and slow - took < WARM * took:
            t.marks[host, COLD] = 0
        took = t.seconds[stage, task] = slow + first
    t.places[stage, task] = host
    t.marks[host, RUNNING] += 1
    t.state[host, BEGINS] += now
    t.state[host, IDLE] = np.nan
    if t.marks[host, RUNNING] == t.profile[CORES]:
        take(host, t)
    t.totals[WAITING] -= 1
    row = t.order[t.totals[AT_WORK]]
    t.running[row, END], t.running[row, TURN] = now + took, turn
    t.running[row, HOST], t.running[row, STAGE], t.running[row, BEGIN] = host, stage, now
    _push(t)


@compiled
def feed(
    host: int,
    now: float,
    turn: int,
    t: Tables,
) -> int:
    """Give the free cores of an executor what waits; returns the next turn."""
    while t.totals[QUEUED] and t.marks[host, RUNNING] < t.profile[CORES]:
        _begin(host, t.queue[0], now, turn, t)
        turn += 1
    if t.marks[host, RUNNING] < t.profile[CORES] and not t.marks[host, FREE]:
        t.marks[host, FREE] = 1
        t.free[t.totals[OPEN]] = host
        t.totals[OPEN] += 1
    return turn


@compiled
def _goes_first(stage: int, other: int, t: Tables) -> bool:
    if t.stages[stage, JOB] != t.stages[other, JOB]:
        return bool(t.stages[stage, JOB] < t.stages[other, JOB])
    return bool(t.stages[stage, NUMBER] < t.stages[other, NUMBER])


@compiled
def deal(
    stage: int,
    hosts: Ints,
    now: float,
    turn: int,
    t: Tables,
) -> int:
    """Queue a stage and deal its tasks to the executors with free cores, one each in turn.

    ``hosts`` these, the first first. Returns the next turn.
    """
    at = t.totals[QUEUED]
    while at and _goes_first(stage, t.queue[at - 1], t):
        t.queue[at] = t.queue[at - 1]
        at -= 1
    t.queue[at] = stage
    t.totals[QUEUED] += 1
    t.totals[WAITING] += t.stages[stage, TASKS]
    free = len(hosts) > 0
    while free and t.stages[stage, BEGUN] < t.stages[stage, TASKS]:
        free = False
        for host in hosts:
            if t.stages[stage, BEGUN] == t.stages[stage, TASKS]:
                break
            if t.marks[host, RUNNING] < t.profile[CORES]:
                _begin(host, stage, now, turn, t)
                turn += 1
                free = free or t.marks[host, RUNNING] < t.profile[CORES]
    return turn


@compiled
def run(
    until: float,
    before: float,
    turn: int,
    t: Tables,
) -> tuple[int, int, int, float]:
    """Let tasks end until a moment; of those that end just then only the turns ``before`` one.

    Stops early when a stage has ended, or an executor that leaves has no task any more. Returns the
    next turn, the stage, the executor (−1: none), and the moment.
    """
    now = until
    while t.totals[AT_WORK]:
        row = t.order[0]
        now = t.running[row, END]
        if now > until or (now == until and t.running[row, TURN] >= before):
            break
        host, stage = int(t.running[row, HOST]), int(t.running[row, STAGE])
        begin = t.running[row, BEGIN]
        _pop(t)
        t.marks[host, RUNNING] -= 1
        t.marks[host, COMPLETED] += 1
        t.state[host, BEGINS] -= begin
        t.state[host, WORKED] += now - begin
        if t.stages[stage, WRITES]:
            t.state[host, WROTE] = now
        if t.marks[host, RUNNING] == 0:
            t.state[host, IDLE] = now
        t.stages[stage, ENDED] += 1
        gone = t.marks[host, LEAVING] == 1 and t.marks[host, RUNNING] == 0
        if t.marks[host, LEAVING] == 0:
            turn = feed(host, now, turn, t)
        whole = t.stages[stage, ENDED] == t.stages[stage, TASKS]
        if gone or whole:
            return turn, stage if whole else NONE, host if gone else NONE, now
    return turn, NONE, NONE, until
