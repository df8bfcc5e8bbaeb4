"""Spark's dynamic allocation as the baseline of a run: what its session is made with.

Spark takes its settings when an application starts and keeps them, so a run under its own
allocation needs a session of its own kind (docs/decisions/0007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.comparison.scores import Actions
from penstock.core.guards import Guards
from penstock.lab.rig.settings import SparkSettings
from penstock.policies import DynamicAllocation
from penstock.simulator.series import Floats

LEAST_TIMEOUT = 1.0  # s: Spark takes whole seconds, and none below 1 for a backlog
QUIET = 5.0  # s on the clock: as long as executors that were asked for together may lie apart
TIMEOUTS = ("backlog_timeout", "sustained_backlog_timeout", "idle_timeout")
_PREFIX = "spark.dynamicAllocation."


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A kind of session in which Spark itself sizes the pool.

    ``least``, ``most`` and ``start`` executors · ``settings`` with its timeouts on the clock.
    """

    least: int
    most: int
    start: int
    settings: DynamicAllocation

    def conf(self) -> dict[str, str]:
        """Spark's configuration of such a session.

        There is no external shuffle service on a local cluster: Spark keeps executors that hold
        shuffle files, or moves these when it decommissions executors, as a cluster's own
        configuration lets it.
        """
        told = self.settings
        return {
            "spark.decommission.enabled": "true",
            _PREFIX + "enabled": "true",
            _PREFIX + "shuffleTracking.enabled": str(told.shuffle_tracking).lower(),
            _PREFIX + "minExecutors": str(self.least),
            _PREFIX + "maxExecutors": str(self.most),
            _PREFIX + "initialExecutors": str(self.start),
            _PREFIX + "schedulerBacklogTimeout": f"{told.backlog_timeout:.0f}s",
            _PREFIX + "sustainedSchedulerBacklogTimeout": f"{told.sustained_backlog_timeout:.0f}s",
            _PREFIX + "executorIdleTimeout": f"{told.idle_timeout:.0f}s",
            _PREFIX + "executorAllocationRatio": str(told.allocation_ratio),
        }


def allocation_for(
    given: DynamicAllocation, guards: Guards, *, start: int, settings: SparkSettings
) -> Allocation:
    """The kind of session for an allocation whose times are thesis time, within some guards."""
    return Allocation(
        least=guards.minimum,
        most=guards.maximum if guards.cap is None else min(guards.maximum, guards.cap),
        start=start,
        settings=on_the_clock(given, settings),
    )


def on_the_clock(given: DynamicAllocation, settings: SparkSettings) -> DynamicAllocation:
    """The settings with the timeouts that Spark is told: whole seconds on the clock, at least 1.

    >>> on_the_clock(DynamicAllocation(), SparkSettings(minute=3)).idle_timeout
    3.0
    """
    clock: dict[str, Any] = {
        name: max(LEAST_TIMEOUT, float(round(settings.clock(getattr(given, name)))))
        for name in TIMEOUTS
    }
    return replace(given, **clock)


def actions_seen(slots: Floats, speed: float) -> Actions:
    """What Spark did, from the number of executors at the end of each thesis second.

    When Spark decides is not seen, only when executors come and go. Those that follow one another
    within ``QUIET`` seconds on the clock, all coming or all going, count as one action, at the
    time of the first; so several requests in a row count once, too.

    >>> import numpy as np
    >>> actions_seen(np.array([1.0, 2, 2, 4, 4, 3, 3, 3]), 1.0).times
    [2.0, 6.0]
    """
    found = Actions()
    last, before = -math.inf, 0.0
    for second in np.flatnonzero(np.diff(slots)):
        time, direction = float(second + 2), float(np.sign(slots[second + 1] - slots[second]))
        if direction != before or time - last > QUIET * speed:
            found.times.append(time)
            found.reconfigurations += 1
        last, before = time, direction
    return found
