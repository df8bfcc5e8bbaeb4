"""From the sums of a window to readings with errors, as a metrics system would show them."""

from __future__ import annotations

import numpy as np

from penstock.simulator.kernel import (
    AGE_SUM,
    ARRIVED,
    BUFFER_USE,
    BUSY_CEILING,
    BUSY_TIME,
    CPU_BASE,
    CPU_FULL,
    HELD_TIME,
    MEMBERS,
    POOL,
    SELECTIVITY,
    SLOT_TIME,
    SLOTS,
    TAKEN,
    UP_TIME,
    WAITING,
    WORK,
    Floats,
    Ints,
    compiled,
)

READINGS = 12  # columns of `seen`, in the order of the fields of OperatorSeen
NOISES = 5  # of offered, arrival and output rate, busy share, CPU


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
        seen[i, 3] = taken * fixed[i, SELECTIVITY] * (1.0 + e[2]) / window
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
