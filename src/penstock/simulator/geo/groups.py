"""What an engine can count by key group: the time that its instances spend on each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.simulator.geo import kernel as k
from penstock.simulator.geo.deployment import Deployment
from penstock.simulator.geo.job import Job
from penstock.simulator.series import Floats


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
