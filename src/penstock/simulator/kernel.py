"""The fluid model, compiled: records as a fluid through operators with bounded buffers.

One step is one second. Operators are numbered in topological order, edges are in CSR form
(``ends[i]`` to ``ends[i + 1]`` are operator i's rows of ``edges``). A step goes

1. up: ``MAY``, what each operator may process: its capacity, or less where a buffer below is full;
2. down: ``FLOW``, what it does process: what it may, or less where there is less to do.

Where several operators send to one (a join), the first sweep up lets each of them have all of the
room; a sweep down finds what each could then send (``WANT``), and a second sweep up divides the
room in these proportions.

Operators that share a pool first go through this with the whole pool each; the slots are then
divided in proportion to the work this makes for them, and it is done again.

A window that fires at intervals collects its results (``PENDING``) and has them ready to send
when it fires (``READY``); while they do not all find room below, it processes nothing.

In front of a source waits a log that forgets: whole segments are dropped once all their records
are older than the retention.

All state lives in few two-dimensional arrays, because each array argument costs ~0.2 µs a call;
the constants below name their columns or rows. All compiled code is in this one file, because
numba's cache on disk only notices changes to the file that a function is in.
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


# ends (n + 1 × 2) and edges (E × 2): neighbours in each direction
ABOVE, BELOW = 0, 1
# kind (n × 2): the pool; the row of arrivals of a source, −1 for others
POOL, SOURCE = 0, 1
# fixed (n × 13): what an operator is
MU, SELECTIVITY, WIDTH, BUFFER_SECONDS, BUSY_CEILING, CPU_BASE, CPU_FULL = range(7)
EXPONENT, KEY_GROUPS, HOT, FIRES, STATE_PER_RECORD, STATE_SECONDS = range(7, 13)
FIXED_COLUMNS = 13
# log (6): the same for all operators; 0 switches a mechanism off
RETENTION, SEGMENT, CHECKPOINT_EVERY, CHECKPOINT_SECONDS, CHECKPOINT_PER_STATE, SLOWDOWN = range(6)
# pools (m × 4): WORK belongs to one step
SLOTS, CPU_SHARE, MEMBERS, WORK = range(4)
# state (n × 22): WAITING to STATE last from step to step, the others belong to one step
WAITING, AGED, HEAD, RECEIVED, PROCESSED, EXPIRED, PENDING, READY, RESULT_AGED, STATE = range(10)
SPEED, SIZE, CAPACITY, BUFFER, WANT, WANTED, MAY, ACCEPTS, FLOW, INFLOW, AGE, OUT = range(10, 22)
STATE_COLUMNS = 22
# sums (n × 9) over the window since the last observation
TAKEN, ARRIVED, UP_TIME, SLOT_TIME, BUSY_TIME, HELD_TIME, BUFFER_USE, AGE_SUM, SENT = range(9)
SUM_COLUMNS = 9
# series (9 + m rows × seconds); the slots of pool k are in row POOL_ROWS + k
OFFERED, CONSUMED, DELIVERED, LAG, QUEUE_LATENCY, LATENCY, DOWN, CPU, LOST, POOL_ROWS = range(10)
READINGS = 12  # columns of what `measure` fills, in the order of the fields of OperatorSeen
NOISES = 5  # of offered, arrival and output rate, busy share, CPU


@compiled
def advance(
    ends: Ints,
    edges: Ints,
    kind: Ints,
    fixed: Floats,
    log: Floats,
    pools: Floats,
    state: Floats,
    sums: Floats,
    arrivals: Floats,
    noise: Floats,
    series: Floats,
    first: int,
    last: int,
) -> None:
    """Simulate the seconds ``first`` to ``last`` (exclusive).

    ``arrivals`` (sources × seconds + 1) cumulative records · ``noise`` (n × seconds) factor on
    each operator's speed. ``state``, ``sums`` and ``series`` are written to.
    """
    n = kind.shape[0]
    shared = n > pools.shape[0]
    joins = edges.shape[0] > n - arrivals.shape[0]
    for t in range(first, last):
        up = 1.0 - series[DOWN, t]
        pace = _checkpointing(log, state, t)
        for i in range(n):
            k = kind[i, POOL]
            used = min(pools[k, SLOTS], fixed[i, WIDTH])
            # More slots are each a little slower; of those, the fullest sets the pace.
            nominal = fixed[i, MU] * pools[k, CPU_SHARE]
            if fixed[i, EXPONENT] != 1.0:
                nominal *= used ** (fixed[i, EXPONENT] - 1.0)
            useful = used * _balance(fixed, i, used)
            state[i, SPEED] = nominal * noise[i, t]
            state[i, SIZE] = pools[k, SLOTS] * up
            state[i, CAPACITY] = state[i, SPEED] * useful * up * pace
            state[i, BUFFER] = fixed[i, BUFFER_SECONDS] * nominal * useful
            if kind[i, SOURCE] >= 0:
                row = kind[i, SOURCE]
                state[i, INFLOW] = arrivals[row, t + 1] - arrivals[row, t]
            if fixed[i, FIRES] > 0.0 and (t + 1) % fixed[i, FIRES] < 1.0:
                state[i, READY] += state[i, PENDING]
                state[i, PENDING] = 0.0
        series[LOST, t] = _expire(log, kind, state, arrivals, t)
        _sweep(ends, edges, kind, fixed, state, joins)
        if shared:
            _divide(kind, fixed, pools, state, up, pace)
            _sweep(ends, edges, kind, fixed, state, joins)
        _settle(ends, edges, kind, fixed, state, sums, arrivals, series, t, up)
        slots = 0.0
        for k in range(pools.shape[0]):
            series[POOL_ROWS + k, t] = pools[k, SLOTS]
            slots += pools[k, SLOTS]
        series[CPU, t] /= slots


@compiled
def _balance(fixed: Floats, i: int, used: float) -> float:
    """Mean over largest load of operator i's slots: 1 when all are loaded alike.

    ``KEY_GROUPS`` groups of keys are dealt out whole, so the fullest slot has ⌈G/p⌉ of them; one
    hot key is a share h of all records, on one slot.
    """
    groups, hot = fixed[i, KEY_GROUPS], fixed[i, HOT]
    if groups == 0.0 and hot == 0.0:
        return 1.0
    fullest = 1.0 / used
    if groups > 0.0 and used > 1.0:
        fullest = max(fullest, np.ceil(groups / used - 1e-9) / groups)
    fullest = hot + (1.0 - hot) * fullest
    return float(1.0 / (used * fullest))


@compiled
def _checkpointing(log: Floats, state: Floats, t: int) -> float:
    """Speed in second t, as a share: below 1 while a checkpoint is being taken."""
    every = log[CHECKPOINT_EVERY]
    if every <= 0.0:
        return 1.0
    took = log[CHECKPOINT_SECONDS] + log[CHECKPOINT_PER_STATE] * state[:, STATE].sum()
    left = min(max(took - t % every, 0.0), 1.0)  # of this second
    return float(1.0 - log[SLOWDOWN] * left)


@compiled
def _expire(log: Floats, kind: Ints, state: Floats, arrivals: Floats, t: int) -> float:
    """Drop what the log no longer keeps at the beginning of second t; records dropped."""
    if log[RETENTION] <= 0.0 or t < log[RETENTION]:
        return 0.0
    oldest = int(np.floor((t - log[RETENTION]) / log[SEGMENT]) * log[SEGMENT])
    lost = 0.0
    for i in range(kind.shape[0]):
        row = kind[i, SOURCE]
        if row >= 0:
            over = state[i, WAITING] - (arrivals[row, t] - arrivals[row, oldest])
            if over > 0.0:
                state[i, WAITING] -= over
                state[i, EXPIRED] += over
                lost += over
    return lost


@compiled
def _sweep(ends: Ints, edges: Ints, kind: Ints, fixed: Floats, state: Floats, joins: bool) -> None:
    """The flows of one second, for the capacities as they are."""
    state[:, WANTED] = 0.0
    _limit(ends, edges, fixed, state)
    if joins:
        for i in range(kind.shape[0]):
            work = state[i, WAITING]
            if kind[i, SOURCE] >= 0:
                work += state[i, INFLOW]
            state[i, WANTED] = 0.0
            for e in range(ends[i, ABOVE], ends[i + 1, ABOVE]):
                state[i, WANTED] += state[edges[e, ABOVE], WANT]
            work += state[i, WANTED]
            if fixed[i, FIRES] > 0.0:
                state[i, WANT] = state[i, READY]
            else:
                state[i, WANT] = min(state[i, MAY], work) * fixed[i, SELECTIVITY]
        _limit(ends, edges, fixed, state)
    for i in range(kind.shape[0]):
        if kind[i, SOURCE] < 0:
            inflow = 0.0
            for e in range(ends[i, ABOVE], ends[i + 1, ABOVE]):
                inflow += state[edges[e, ABOVE], OUT]
            state[i, INFLOW] = inflow
        state[i, FLOW] = min(state[i, MAY], state[i, WAITING] + state[i, INFLOW])
        if fixed[i, FIRES] <= 0.0:
            state[i, OUT] = state[i, FLOW] * fixed[i, SELECTIVITY]


@compiled
def _limit(ends: Ints, edges: Ints, fixed: Floats, state: Floats) -> None:
    """From the last operator to the first: what each may process, and accept from above."""
    for i in range(fixed.shape[0] - 1, -1, -1):
        below = np.inf  # records that all operators below have room for
        for e in range(ends[i, BELOW], ends[i + 1, BELOW]):
            j = edges[e, BELOW]
            room = state[j, ACCEPTS]
            if state[j, WANTED] > room:  # several senders: in proportion
                room *= state[i, WANT] / state[j, WANTED]
            below = min(below, room)
        may = state[i, CAPACITY]
        if fixed[i, FIRES] > 0.0:
            state[i, OUT] = min(state[i, READY], below) if may > 0.0 else 0.0
            if state[i, READY] > below:
                may = 0.0
        elif fixed[i, SELECTIVITY] > 0.0:
            may = min(may, below / fixed[i, SELECTIVITY])
        state[i, MAY] = may
        state[i, ACCEPTS] = max(0.0, may + state[i, BUFFER] - state[i, WAITING])


@compiled
def _divide(
    kind: Ints, fixed: Floats, pools: Floats, state: Floats, up: float, pace: float
) -> None:
    """slots_i = S · w_i / Σw,  w_i = FLOW_i / speed_i: the work each would have with S slots."""
    pools[:, WORK] = 0.0
    for i in range(kind.shape[0]):
        pools[kind[i, POOL], WORK] += state[i, FLOW] / state[i, SPEED]
    for i in range(kind.shape[0]):
        k = kind[i, POOL]
        if pools[k, MEMBERS] > 1.0:
            part = 1.0 / pools[k, MEMBERS]
            if pools[k, WORK] > 0.0:
                part = state[i, FLOW] / state[i, SPEED] / pools[k, WORK]
            state[i, SIZE] = pools[k, SLOTS] * part * up
            width = fixed[i, WIDTH]
            balance = _balance(fixed, i, min(pools[k, SLOTS], width))
            useful = min(state[i, SIZE], width * up) * balance
            state[i, CAPACITY] = state[i, SPEED] * useful * pace


@compiled
def _settle(
    ends: Ints,
    edges: Ints,
    kind: Ints,
    fixed: Floats,
    state: Floats,
    sums: Floats,
    arrivals: Floats,
    series: Floats,
    t: int,
    up: float,
) -> None:
    """Move the records of one second and write down what happened."""
    offered = consumed = delivered = lag = queue_age = oldest = age_out = cpu = 0.0
    for i in range(kind.shape[0]):
        flow, inflow, before = state[i, FLOW], state[i, INFLOW], state[i, WAITING]
        work = before + inflow
        left = work - flow
        if kind[i, SOURCE] >= 0:
            age = _head_age(arrivals[kind[i, SOURCE]], state, i, left, t)
            offered += inflow
            consumed += flow
            lag += left
            queue_age += flow * age
            oldest = max(oldest, age)
        else:
            # Ages of all records in the buffer, summed; those that waited are a second older.
            aged = state[i, AGED] + before
            for e in range(ends[i, ABOVE], ends[i + 1, ABOVE]):
                u = edges[e, ABOVE]
                aged += state[u, OUT] * state[u, AGE]
            age = aged / work if work > 0.0 else 0.0
            state[i, AGED] = age * left
        if ends[i + 1, BELOW] == ends[i, BELOW]:
            delivered += flow
            age_out += flow * age
        sums[i, AGE_SUM] += flow * age
        if fixed[i, FIRES] > 0.0:
            age = _results(fixed, state, i, flow, age)
        if fixed[i, STATE_PER_RECORD] > 0.0:
            kept = state[i, STATE]
            if fixed[i, STATE_SECONDS] > 0.0:
                kept -= kept * min(1.0, up / fixed[i, STATE_SECONDS])
            state[i, STATE] = kept + flow * fixed[i, STATE_PER_RECORD]
        state[i, AGE] = age
        state[i, WAITING] = left
        state[i, RECEIVED] += inflow
        state[i, PROCESSED] += flow

        sums[i, TAKEN] += flow
        sums[i, SENT] += state[i, OUT]
        sums[i, ARRIVED] += inflow
        sums[i, UP_TIME] += up
        sums[i, SLOT_TIME] += state[i, SIZE]
        busy = flow / state[i, SPEED]
        sums[i, BUSY_TIME] += busy
        base = fixed[i, CPU_BASE]
        cpu += base * state[i, SIZE] + (fixed[i, CPU_FULL] - base) * busy
        sums[i, BUFFER_USE] += up * left / state[i, BUFFER]
        if flow < work and flow < state[i, CAPACITY]:  # held back from below
            usable = min(state[i, SIZE], fixed[i, WIDTH] * up)
            sums[i, HELD_TIME] += max(0.0, usable - busy * fixed[i, BUSY_CEILING])
    series[OFFERED, t] = offered
    series[CONSUMED, t] = consumed
    series[DELIVERED, t] = delivered
    series[LAG, t] = lag
    series[QUEUE_LATENCY, t] = queue_age / consumed if consumed > 0.0 else oldest
    series[LATENCY, t] = age_out / delivered if delivered > 0.0 else series[QUEUE_LATENCY, t]
    series[CPU, t] = cpu


@compiled
def _results(fixed: Floats, state: Floats, i: int, flow: float, age: float) -> float:
    """Put a second's results aside, take away what was sent; mean age of all of them."""
    held = state[i, PENDING] + state[i, READY]
    new = flow * fixed[i, SELECTIVITY]
    total = held + new
    if total <= 0.0:
        return age
    mean = (state[i, RESULT_AGED] + held + new * age) / total
    state[i, READY] -= state[i, OUT]
    state[i, PENDING] += new
    state[i, RESULT_AGED] = mean * (total - state[i, OUT])
    return float(mean)


@compiled
def _head_age(arrived: Floats, state: Floats, i: int, queue: float, t: int) -> float:
    """Seconds since the record at the head of source i's queue came in; 0 if none waits.

    ``arrived[s]`` records came in before second s, evenly within a second, so record number x
    came in at the s where the curve reaches x. The head only moves forward.
    """
    if queue <= 0.0:
        state[i, HEAD] = t + 1.0
        return 0.0
    taken = arrived[t + 1] - queue
    h = int(state[i, HEAD])
    while h < t and arrived[h + 1] <= taken:
        h += 1
    state[i, HEAD] = h
    came = arrived[h + 1] - arrived[h]
    part = min(max((taken - arrived[h]) / came, 0.0), 1.0) if came > 0.0 else 0.0
    return float(t + 1.0 - h - part)


@compiled
def measure(
    kind: Ints,
    fixed: Floats,
    pools: Floats,
    state: Floats,
    sums: Floats,
    noise: Floats,
    row: int,
    window: float,
    seen: Floats,
) -> None:
    """Fill ``seen`` from the sums of a window and reset them.

    ``noise[row]`` (n × NOISES) is the relative error of each reading. Where nothing was
    processed, or the job was down throughout, some columns hold 0 and mean nothing.
    """
    n = kind.shape[0]
    pools[:, WORK] = 0.0
    for i in range(n):
        pools[kind[i, POOL], WORK] += sums[i, BUSY_TIME]
    for i in range(n):
        e = noise[row, i]
        taken = sums[i, TAKEN]
        time = sums[i, SLOT_TIME]
        busy = held = 0.0
        if time > 0.0:
            busy = sums[i, BUSY_TIME] / time
            held = sums[i, HELD_TIME] / time
        cpu = fixed[i, CPU_BASE] + (fixed[i, CPU_FULL] - fixed[i, CPU_BASE]) * busy
        true = busy * fixed[i, BUSY_CEILING]
        shown = min(1.0, true * (1.0 + e[3]))
        # The rest of the time keeps its division into held back and idle.
        rest = 1.0 - true
        held = min(1.0 - shown, held / rest * (1.0 - shown)) if rest > 0.0 else 0.0

        k = kind[i, POOL]
        slots = pools[k, SLOTS]
        if pools[k, MEMBERS] > 1.0:
            total = pools[k, WORK]
            slots *= sums[i, BUSY_TIME] / total if total > 0.0 else 1 / pools[k, MEMBERS]
        arrival = taken * (1.0 + e[1])
        seen[i, 0] = slots
        seen[i, 1] = sums[i, ARRIVED] * (1.0 + e[0]) / window
        seen[i, 2] = arrival / window
        seen[i, 3] = sums[i, SENT] * (1.0 + e[2]) / window
        seen[i, 4] = arrival / (shown * time) if shown > 0.0 else 0.0
        seen[i, 5] = shown
        seen[i, 6] = max(0.0, 1.0 - shown - held)
        seen[i, 7] = held
        seen[i, 8] = min(1.0, cpu * (1.0 + e[4]))
        seen[i, 9] = sums[i, BUFFER_USE] / max(sums[i, UP_TIME], 1e-9)
        seen[i, 10] = state[i, WAITING]
        seen[i, 11] = sums[i, AGE_SUM] / taken if taken > 0.0 else 0.0
    sums[:, :] = 0.0


@compiled
def ar1(draws: Floats, memory: float) -> None:
    """Turn rows of independent standard normal draws into AR(1) processes, in place.

    x_t = φ·x_{t−1} + √(1 − φ²)·z_t,  φ = exp(−1 / memory); the variance stays 1.
    """
    if memory <= 0.0:
        return
    phi = np.exp(-1.0 / memory)
    fresh = np.sqrt(1.0 - phi * phi)
    for i in range(draws.shape[0]):
        for t in range(1, draws.shape[1]):
            draws[i, t] = phi * draws[i, t - 1] + fresh * draws[i, t]
