"""Replay: the arrivals of a window themselves through a path of queues, a few milliseconds."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from penstock.core.model import Arrivals
from penstock.queueing.matrices import Floats
from penstock.queueing.paths import Station

DRAWN = 64  # services that are kept, in units of their mean


def replayed(window: Arrivals, path: tuple[Station, ...], percentile: float) -> float:
    """Response time of a path if the same arrivals came again: the mean, or a percentile.

    Services are gamma-distributed, the same draws at every call, so that more CPU is never slower
    here. A station that gets a part of the records gets every so manieth.
    """
    arrivals = np.cumsum(window.intervals)
    times = arrivals
    for number, station in enumerate(path):
        kept = _kept(len(arrivals), station.visits)
        draws = _draws(len(arrivals), station.service.scv, number)
        if kept is None:
            copies = max(1.0, station.visits)
            times = departures(times, draws * (station.service.mean * copies))
        else:
            times = times.copy()
            times[kept] = departures(times[kept], draws[kept] * station.service.mean)
    stays = times - arrivals
    return float(np.quantile(stays, percentile)) if percentile else float(stays.mean())


def _kept(count: int, visits: float) -> slice | Floats | None:
    """Which records come to a station; ``None``: all."""
    if visits > 0.9:
        return None
    return np.floor(np.arange(1, round(count * visits) + 1) / visits - 1e-9).astype(np.intp)


@lru_cache(maxsize=DRAWN)
def _draws(count: int, scv: float, number: int) -> Floats:
    return np.random.default_rng([count, number]).gamma(1.0 / scv, scv, count)


def departures(arrivals: Floats, services: Floats, free_at: float = -np.inf) -> Floats:
    """When each arrival leaves a server that serves in order and is free from ``free_at`` on.

    D_k = max(A_k, D_(k−1)) + S_k, as a running maximum: D_k = C_k + max_(j≤k) (A_j − C_(j−1)),
    with C the running sum of the services.

    >>> departures(np.array([0.0, 1.0, 5.0]), np.array([2.0, 2.0, 2.0])).tolist()
    [2.0, 4.0, 7.0]
    """
    done = np.cumsum(services)
    slack = arrivals - (done - services)
    if len(slack):
        slack[0] = max(slack[0], free_at)
    return np.asarray(done + np.maximum.accumulate(slack))
