"""A job on certain nodes: what each instance has to do for every record of the whole stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.simulator.geo import kernel as k
from penstock.simulator.geo.job import Job, Keys
from penstock.simulator.series import Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Deployment:
    """Arrays for the kernel: ``rows`` of the nodes, ``loads`` and ``fixed`` as it wants them."""

    rows: npt.NDArray[np.int64]
    loads: Floats
    fixed: Floats


def deployed(job: Job, rows: list[int], luck: float = 1.0) -> Deployment:
    """A job with an instance on each of some nodes, given by their numbers.

    ``luck`` factor on the round trips that storing a window takes.
    """
    n = len(rows)
    shares = np.full(n, 1.0 / n) if job.keys is None else _dealt(job.keys, n)
    loads = np.empty((n, k.LOAD_COLUMNS))
    loads[:, k.SHARE] = shares
    loads[:, k.WORK] = shares * job.work
    if job.keys is not None and job.keys.hot:
        loads[:, k.WORK] += _hot(job.keys, n) * job.keys.hot_work
    away = 1.0 - shares[0] if job.beside else 1.0
    windows = job.windows
    fixed = np.zeros(k.FIXED_VALUES)
    fixed[k.SOURCE] = job.source_cost + job.exchange_cost * away
    fixed[k.BESIDE] = float(job.beside)
    fixed[k.USABLE] = max(k.LEAST, 1.0 - job.channel_cost * (n - 1))
    fixed[k.PER_CREDIT] = 0.0 if job.credit is None else 1.0 / job.credit
    fixed[k.WAITING_CPU] = job.waiting_cpu
    fixed[k.CPU_BASE] = job.cpu_base
    fixed[k.CPU_RANGE] = job.cpu_ceiling - job.cpu_base
    if windows is not None:
        fixed[k.EVERY] = windows.every
        fixed[k.ROUNDS] = windows.rounds * luck
        fixed[k.PER_PART] = luck / windows.part
        fixed[k.SPREAD] = windows.spread
    return Deployment(rows=np.array(rows, dtype=np.int64), loads=loads, fixed=fixed)


def _dealt(keys: Keys, n: int) -> Floats:
    owners = np.arange(keys.groups) * n // keys.groups
    return np.bincount(owners, minlength=n) / keys.groups


def _hot(keys: Keys, n: int) -> Floats:
    owners = np.array(keys.hot) * n // keys.groups
    return np.bincount(owners, minlength=n) / len(keys.hot)


def worked(job: Job, plan: Deployment, loads: Sequence[float | None]) -> Floats | None:
    """Busy seconds per second by key group; ``None`` without keys, or before anything was seen.

    ``loads`` busy shares of the instances. Of the first one's the source has its part.
    """
    known = [load for load in loads if load is not None]
    if job.keys is None or len(known) < len(loads):
        return None
    groups = np.full(job.keys.groups, job.work / job.keys.groups)
    groups[list(job.keys.hot)] += job.keys.hot_work / max(1, len(job.keys.hot))
    owners = np.arange(job.keys.groups) * len(loads) // job.keys.groups
    own = plan.loads[:, k.WORK].copy()
    if job.beside:
        own[0] += plan.fixed[k.SOURCE]
    seconds: Floats = groups / own[owners] * np.array(known)[owners]
    return seconds
