"""Tasks on executors, compiled: a week has tens of millions of them.

An executor with a free core takes the first task that waits, the stages in the order of their jobs
and numbers, the tasks of a stage in the order of its partitions. Of the ends of tasks at the same
moment the one that began first comes first, as everywhere in the event queue, whose count goes on
here.

All arrays belong to ``pool.Pool``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.simulator.kernel import compiled
from penstock.simulator.microbatch.profile import ExecutorProfile

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# profile
CORES, FIRST_TASK, SLOWDOWN, WARM_UP, BOOST, BOOST_FOR = range(6)
# state and marks; IDLE is NaN while there is a task, FREE the place among those with a free core
WORKED, BEGINS, IDLE, WROTE = range(4)
RUNNING, COMPLETED, COLD, LEAVING, FREE = range(5)
# stages: place in the queue, and how many tasks
JOB, NUMBER, TASKS, BEGUN, ENDED, WRITES = range(6)
# running
END, TURN, HOST, STAGE, BEGIN = range(5)
# totals: tasks at work and waiting, stages queued, how often a core came to be free
AT_WORK, WAITING, QUEUED, FREED = range(4)

NONE = -1
WARM = 1e-3  # a slow-down below this is none


class Tables(NamedTuple):
    """All that is known of executors and tasks; the columns are named above.

    profile: of the executors
    state, marks: a row for each executor, by its number
    stages: a row for each that is not done
    queue: rows of the stages that have tasks waiting, in their order
    totals: of all
    running: a row for each task at work, a heap
    seconds, places: a row for each stage, with what each task takes, on a warm executor until it
        has begun, and the executor that took it
    """

    profile: Floats
    state: Floats
    marks: Ints
    stages: Ints
    queue: Ints
    totals: Ints
    running: Floats
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
        stages=np.zeros((4, 6), dtype=np.int64),
        queue=np.zeros(4, dtype=np.int64),
        totals=np.zeros(4, dtype=np.int64),
        running=np.zeros((8, 5)),
        seconds=np.zeros((4, 8)),
        places=np.zeros((4, 8), dtype=np.int64),
    )


def grown(
    t: Tables, *, executors: int = 0, cores: int = 0, stages: int = 0, tasks: int = 0
) -> Tables:
    """The same with room for at least so many."""
    if executors > len(t.state):
        t = t._replace(state=_longer(t.state), marks=_longer(t.marks))
    while cores >= len(t.running):
        t = t._replace(running=_longer(t.running))
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
        return faster * profile[BOOST] + seconds - faster
    more = profile[SLOWDOWN] - 1.0
    warm_up = profile[WARM_UP]
    if not (more > 0.0 and warm_up > 0.0):
        return seconds
    begin, log = worked / warm_up, math.log(more)
    whole = max(begin, log) + math.log1p(math.exp(-abs(begin - log))) + seconds / warm_up
    end = whole + math.log1p(-more * math.exp(-whole))
    return (end - begin) * warm_up


@compiled
def _before(running: Floats, a: int, b: int) -> bool:
    if running[a, END] != running[b, END]:
        return running[a, END] < running[b, END]
    return running[a, TURN] < running[b, TURN]


@compiled
def _swap(running: Floats, a: int, b: int) -> None:
    for column in range(running.shape[1]):
        running[a, column], running[b, column] = running[b, column], running[a, column]


@compiled
def _rise(running: Floats, at: int) -> None:
    """Bring the last entry of the heap to its place."""
    while at and _before(running, at, (at - 1) // 2):
        _swap(running, at, (at - 1) // 2)
        at = (at - 1) // 2


@compiled
def _sink(running: Floats, size: int) -> None:
    """Bring the first entry of the heap to its place."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(running, child + 1, child):
            child += 1
        if not _before(running, child, at):
            return
        _swap(running, at, child)
        at = child


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
        t.marks[host, FREE] = NONE
    at = t.totals[AT_WORK]
    t.totals[AT_WORK] += 1
    t.totals[WAITING] -= 1
    t.running[at, END], t.running[at, TURN] = now + took, turn
    t.running[at, HOST], t.running[at, STAGE], t.running[at, BEGIN] = host, stage, now
    _rise(t.running, at)


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
    if t.marks[host, RUNNING] < t.profile[CORES] and t.marks[host, FREE] == NONE:
        t.marks[host, FREE] = t.totals[FREED]
        t.totals[FREED] += 1
    return turn


@compiled
def deal(
    stage: int,
    hosts: Ints,
    now: float,
    turn: int,
    t: Tables,
) -> int:
    """Queue a stage and deal its tasks to executors with free cores, one each in turn.

    Returns the next turn.
    """
    at = t.totals[QUEUED]
    job, number = t.stages[stage, JOB], t.stages[stage, NUMBER]
    while at and (job, number) < (t.stages[t.queue[at - 1], JOB], t.stages[t.queue[at - 1], NUMBER]):
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
        now = t.running[0, END]
        if now > until or (now == until and t.running[0, TURN] >= before):
            break
        host, stage, begin = int(t.running[0, HOST]), int(t.running[0, STAGE]), t.running[0, BEGIN]
        t.totals[AT_WORK] -= 1
        _swap(t.running, 0, t.totals[AT_WORK])
        _sink(t.running, t.totals[AT_WORK])
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
