"""The geo model, compiled: one operator whose instances wait for each other over the network.

One step is one second. Instances are numbered as they were added; ``rows`` says on which node
each is. For every second

1. ``limit``: records/s that the slowest instance lets the whole operator do, since records are
   dealt out and none can be left behind: its CPU, or its work and its waiting for credit;
2. ``_pace``: records/s at which a window's state can be stored, set by the slowest instance too;
3. what there is to do, the limit or the pace, whichever is least, is done.

The source is held back (back pressure) while records wait and the buffers in front of the slowest
instance are full. They are when the limit counts; when the pace counts, that instance is busy for
the share ρ = pace / limit of its time and K buffers are full for ρ^K of it, as in an M/M/1 queue.
For the rest the source waits for the network, which is no back pressure.

All compiled code is in this one file, because numba's cache on disk only notices changes to the
file that a function is in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile with numba, cached on disk; strict floating point, division by zero raises."""
    return cast(F, njit(cache=True)(function))


BUFFERS = 10.0  # of a channel: 2 of its own and 8 shared, Flink's default
LEAST = 1e-3  # share of its CPU that channels leave an instance, however many there are
# loads (n × 2): of every record of the whole stream, what an instance gets and CPU seconds it takes
SHARE, WORK = range(2)
LOAD_COLUMNS = 2
# fixed (11): the same for all instances; 0 switches a mechanism off
SOURCE, BESIDE, USABLE, PER_CREDIT, WAITING_CPU, CPU_BASE, CPU_RANGE = range(7)
EVERY, ROUNDS, PER_PART, SPREAD = range(7, 11)
FIXED_VALUES = 11
# found (n × 3): of one second, by instance: its CPU's speed, seconds it waits for each record of
# the stream, mean round trip to the nodes in use
SPEED, WAIT, NEAR = range(3)
FOUND_COLUMNS = 3
# state (4)
WAITING, HEAD, RECEIVED, PROCESSED = range(4)
STATE_VALUES = 4
# sums (8) over the window since the last observation, and by node (N × 3)
TAKEN, ARRIVED, UP_TIME, HELD_TIME, SOURCE_TIME, AGE_SUM, LATENCY_SUM, FULL = range(8)
SUM_VALUES = 8
NODE_UP, NODE_BUSY, NODE_CPU = range(3)
NODE_COLUMNS = 3
# series (10 rows × seconds)
OFFERED, CONSUMED, DELIVERED, LAG, QUEUE_LATENCY, LATENCY, DOWN, CPU, PACED, SLOTS = range(10)
SERIES_ROWS = 10


@compiled
def advance(
    rows: Ints,
    loads: Floats,
    fixed: Floats,
    found: Floats,
    maps: Floats,
    noise: Floats,
    draws: Floats,
    arrivals: Floats,
    state: Floats,
    sums: Floats,
    nodes: Floats,
    series: Floats,
    first: int,
    last: int,
) -> None:
    """Simulate the seconds ``first`` to ``last`` (exclusive).

    ``maps`` (1 or seconds × N × N) round trips · ``noise`` (N × seconds) factor on each node's
    speed · ``draws`` (N × windows) X of each node and window · ``arrivals`` (seconds + 1)
    cumulative records. ``found``, ``state``, ``sums``, ``nodes`` and ``series`` are written to.
    """
    n = rows.shape[0]
    for t in range(first, last):
        up = 1.0 - series[DOWN, t]
        inflow = arrivals[t + 1] - arrivals[t]
        work = state[WAITING] + inflow
        rtt = maps[min(t, maps.shape[0] - 1)]
        most, far = limit(rows, loads, fixed, rtt, noise[:, t], found)
        pace = _pace(rows, loads, fixed, found, draws, arrivals, int(state[HEAD]))
        flow = min(work, up * min(most, pace))
        left = work - flow
        age = _head_age(arrivals, state, left, t)

        state[WAITING] = left
        state[RECEIVED] += inflow
        state[PROCESSED] += flow
        reading = fixed[SOURCE] * flow
        if fixed[BESIDE] > 0.0:
            reading /= found[0, SPEED]
        cpu = 0.0
        for a in range(n):
            mine = loads[a, WORK]
            if a == 0 and fixed[BESIDE] > 0.0:
                mine += fixed[SOURCE]
            busy = min(up, flow * mine / found[a, SPEED])
            waits = min(up - busy, flow * found[a, WAIT])
            used = fixed[CPU_BASE] * up + fixed[CPU_RANGE] * (busy + fixed[WAITING_CPU] * waits)
            nodes[rows[a], NODE_UP] += up
            nodes[rows[a], NODE_BUSY] += busy
            nodes[rows[a], NODE_CPU] += used
            cpu += used
        sums[TAKEN] += flow
        sums[ARRIVED] += inflow
        sums[UP_TIME] += up
        sums[SOURCE_TIME] += min(up, reading)
        sums[AGE_SUM] += flow * age
        sums[LATENCY_SUM] += flow * (age + far)
        if left > 0.0:
            full = min(1.0, pace / most) ** BUFFERS
            sums[HELD_TIME] += full * max(0.0, up - reading)
            sums[FULL] += full * up
            series[PACED, t] = (1.0 - full) * up
        series[OFFERED, t] = inflow
        series[CONSUMED, t] = flow
        series[DELIVERED, t] = flow
        series[LAG, t] = left
        series[QUEUE_LATENCY, t] = age
        series[LATENCY, t] = age + far if flow > 0.0 else age
        series[CPU, t] = cpu / n
        series[SLOTS, t] = n


@compiled
def limit(
    rows: Ints, loads: Floats, fixed: Floats, rtt: Floats, speeds: Floats, found: Floats
) -> tuple[float, float]:
    """Records/s that the slowest instance allows, and the greatest round trip in use; fills
    ``found``.

    CPU: T · (w_i + s if the source is beside) ≤ e_i. Thread: T · (w_i / e_i + g_i · far_i / c) ≤ 1,
    far_i the greatest round trip from i's node, c the credit, g_i the share of records.
    """
    n = rows.shape[0]
    most, farthest = np.inf, 0.0
    if fixed[BESIDE] <= 0.0 and fixed[SOURCE] > 0.0:
        most = 1.0 / fixed[SOURCE]
    for a in range(n):
        far = total = 0.0
        for b in range(n):
            trip = rtt[rows[a], rows[b]]
            far = max(far, trip)
            total += trip
        farthest = max(farthest, far)
        speed = speeds[rows[a]] * fixed[USABLE]
        wait = loads[a, SHARE] * far * fixed[PER_CREDIT]
        mine = loads[a, WORK]
        if a == 0 and fixed[BESIDE] > 0.0 and mine + fixed[SOURCE] > 0.0:
            most = min(most, speed / (mine + fixed[SOURCE]))
        if mine + wait > 0.0:  # fewer key groups than instances: some have nothing to do
            most = min(most, 1.0 / (mine / speed + wait))
        found[a, SPEED] = speed
        found[a, WAIT] = wait
        found[a, NEAR] = total / n
    return most, farthest


@compiled
def _pace(
    rows: Ints,
    loads: Floats,
    fixed: Floats,
    found: Floats,
    draws: Floats,
    arrivals: Floats,
    head: int,
) -> float:
    """records of a window / seconds until the slowest instance has stored its state."""
    if fixed[EVERY] <= 0.0:
        return np.inf
    records = (arrivals[head + 1] - arrivals[head]) * fixed[EVERY]
    if records <= 0.0:
        return np.inf
    window = int(head / fixed[EVERY])
    slowest = 0.0
    for a in range(rows.shape[0]):
        trips = fixed[ROUNDS] + records * loads[a, SHARE] * fixed[PER_PART]
        trips *= 1.0 + fixed[SPREAD] * draws[rows[a], window]
        slowest = max(slowest, trips * found[a, NEAR])
    return float(records / slowest) if slowest > 0.0 else np.inf


@compiled
def _head_age(arrived: Floats, state: Floats, queue: float, t: int) -> float:
    """Seconds since the record at the head of the queue came in; 0 if none waits.

    ``arrived[s]`` records came in before second s, evenly within a second, so record number x
    came in at the s where the curve reaches x. The head only moves forward.
    """
    if queue <= 0.0:
        state[HEAD] = min(t + 1.0, arrived.shape[0] - 2.0)
        return 0.0
    taken = arrived[t + 1] - queue
    h = int(state[HEAD])
    while h < t and arrived[h + 1] <= taken:
        h += 1
    state[HEAD] = h
    came = arrived[h + 1] - arrived[h]
    part = min(max((taken - arrived[h]) / came, 0.0), 1.0) if came > 0.0 else 0.0
    return float(t + 1.0 - h - part)
