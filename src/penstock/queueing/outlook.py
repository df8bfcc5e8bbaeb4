"""Outlook: the response time under the arrivals to come, from replays of those that came.

One window says little of the next: its mean hangs on a burst or two that need not come again, and
the next may have one that this one had not. What lasts is the level, so replays of the newest
arrivals are smoothed, as logarithms. How much a replay is off depends on how busy the server is;
hence a level for each of some service times, ``nodes``, a quarter of an octave apart:

    L_k ← L_k + w·(log R(s_k) − L_k),   w = 1 − ½^(new arrivals/window),   s_k = 2^(k/4) seconds
    R̂(path) = R(path) · e^Δ(s),         Δ(s_k) = L_k − log R(s_k), linear in log s between nodes,

with R the replay of the newest half of the window and s the time that an arrival at the source
takes at the busiest station of the path. The first replay counts in full, so L starts from it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from penstock.core.model import Arrivals
from penstock.queueing.paths import Station
from penstock.queueing.phase_type import PhaseType
from penstock.queueing.replay import replayed

Levels = dict[str, list[float]]
"""By node k: the smoothed log of R(s_k) in seconds, and its weight in (0, 1]. Plain JSON."""

PER_OCTAVE = 4
LOWEST, HIGHEST = 0.125, 2.0  # utilisations of the window that levels are learnt for
FORGOTTEN = 0.01  # a weight below which a level is dropped
REPLAYED = 1024  # replays at nodes that are kept


def learnt(levels: Levels, window: Arrivals, new: float, scv: float) -> Levels:
    """The levels after ``new`` more arrivals, the newest of which are in ``window``.

    ``scv`` is the squared coefficient of variation of services. A window that cannot be replayed
    (fewer than two arrivals, times that are not numbers, no time between them) changes nothing.
    Never changes ``levels`` itself.
    """
    part = newest(window)
    gap = float(part.intervals.mean()) if len(part) else 0.0
    if not (math.isfinite(gap) and gap > 0.0 and math.isfinite(new) and new > 0.0):
        return levels
    gain = 1.0 - 0.5 ** (new / len(window))
    after = {
        node: [level, weight * (1.0 - gain)]
        for node, (level, weight) in levels.items()
        if weight * (1.0 - gain) >= FORGOTTEN
    }
    for k in range(math.ceil(_place(LOWEST * gap)), math.floor(_place(HIGHEST * gap)) + 1):
        level, weight = after.get(str(k), [0.0, 0.0])
        weight += gain
        level += gain / weight * (_log_response(part, k, scv) - level)
        after[str(k)] = [level, weight]
    return after


def expected(
    levels: Levels, window: Arrivals, path: tuple[Station, ...], percentile: float = 0.0
) -> float:
    """Seconds that a path is expected to take under the next window: its mean, or a percentile.

    Without levels, the replay of the newest half of this one. The median of what may come rather
    than its mean, which rare long bursts decide: it errs to the low side on average.
    """
    part = newest(window)
    return replayed(part, path, percentile) * math.exp(_shift(levels, part, path))


def newest(window: Arrivals) -> Arrivals:
    """The newest half of a window: the part that is replayed."""
    return window.last((len(window) + 1) // 2)


def _shift(levels: Levels, part: Arrivals, path: tuple[Station, ...]) -> float:
    """Δ at the busiest station; that of the nearest node beyond the last ones."""
    if not levels:
        return 0.0
    busiest = max(path, key=lambda station: station.load(1.0))
    nodes = sorted(int(node) for node in levels)
    place = min(max(_place(busiest.load(1.0)), nodes[0]), nodes[-1])
    near = [k for k in (math.floor(place), math.ceil(place)) if str(k) in levels]
    scv = round(busiest.service.scv, 9)  # as it was given: replays are kept by it
    shifts = [levels[str(k)][0] - _log_response(part, k, scv) for k in near]
    return float(np.interp(place, near, shifts)) if near else 0.0


def _place(service: float) -> float:
    return PER_OCTAVE * math.log2(service)


@lru_cache(maxsize=REPLAYED)
def _log_response(part: Arrivals, k: int, scv: float) -> float:
    service = PhaseType.of(mean=2.0 ** (k / PER_OCTAVE), scv=scv)
    return math.log(replayed(part, (Station(name="node", service=service),), 0.0))
