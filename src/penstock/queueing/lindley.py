"""Replay: arrivals through a server, one after the other. [lindley52]"""

from __future__ import annotations

import numpy as np

from penstock.queueing.matrices import Floats


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
