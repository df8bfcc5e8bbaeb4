"""Loads of operators, step by step: an array of steps × operators, in records per step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.core.errors import InputError
from penstock.decentralized.draws import Floats


def brownian(
    seed: int, steps: int, starts: Sequence[float], *, deviation: float, least: float
) -> Floats:
    """L(t + 1) = L(t) + σ·N(0, 1), reflected at ``least``; operators are independent.

    ``starts`` L(0) of each operator · ``deviation`` σ. The paper says Brownian motion and no more.
    [belkhiria19, §5.1]

    >>> brownian(1, 3, [2450.0] * 5, deviation=250.0, least=350.0).shape
    (3, 5)
    """
    if not (deviation >= 0.0 and 0.0 < least <= min(starts)):
        raise InputError(
            f"a Brownian load needs a deviation ≥ 0, it has {deviation}, and a positive lower "
            f"bound of at most its start {min(starts)}, it has {least}"
        )
    moves = np.random.default_rng(seed).standard_normal((steps, len(starts))) * deviation
    loads = np.empty((steps, len(starts)))
    now = np.asarray(starts, dtype=np.float64)
    for step in range(steps):
        loads[step] = now
        now = least + np.abs(now + moves[step] - least)
    return loads


def stepped(steps: int, starts: Sequence[float], *, factor: float, at: int) -> Floats:
    """Constant, and ``factor`` times as much from step ``at`` on."""
    loads = np.tile(np.asarray(starts, dtype=np.float64), (steps, 1))
    loads[at:] *= factor
    return loads


def rising(steps: int, starts: Sequence[float], *, slope: float) -> Floats:
    """Grows by the same ``slope`` at every step, in every operator."""
    return np.asarray(starts, dtype=np.float64) + slope * np.arange(float(steps))[:, None]
