"""How far a number of replicas is from the ideal one. [herbst16; arkian21, V-A]"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.simulator.series import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioning:
    """Over the measurement period T, from supply s(t) and demand d(t), replicas.

    ``accuracy_o`` ∫ max(0, s − d) dt / T, ``accuracy_u`` ∫ max(0, d − s) dt / T: mean replicas
    too many, and too few · ``timeshare_o``, ``timeshare_u`` percent of T in which there were too
    many, and too few.
    """

    accuracy_o: float
    accuracy_u: float
    timeshare_o: float
    timeshare_u: float


def provisioning(supply: Floats, demand: Floats) -> Provisioning:
    """Of two series with a figure per second.

    >>> provisioning(np.array([3.0, 3.0, 1.0, 2.0]), np.array([1.0, 3.0, 2.0, 2.0]))
    Provisioning(accuracy_o=0.5, accuracy_u=0.25, timeshare_o=25.0, timeshare_u=25.0)
    """
    over = supply - demand
    return Provisioning(
        accuracy_o=float(np.maximum(over, 0.0).mean()),
        accuracy_u=float(np.maximum(-over, 0.0).mean()),
        timeshare_o=float(100.0 * (over > 0).mean()),
        timeshare_u=float(100.0 * (over < 0).mean()),
    )
