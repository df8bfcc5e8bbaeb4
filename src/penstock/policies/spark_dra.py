"""Spark-DRA: Spark's own dynamic allocation of executors, the baseline at hand. [spark-dra]"""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.core.model import Proposal, Snapshot

NAME = "spark-dra"
RUNS_IN = 'penstock bench with engine = "spark" or "micro-batch"'


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicAllocation:
    """executors = ⌈(running + waiting tasks) · ``allocation_ratio`` / cores⌉   [spark-dra]

    Tasks that have waited for ``backlog_timeout`` seconds make Spark ask for one executor more,
    then for 2, 4, 8, … more after every further ``sustained_backlog_timeout`` seconds, up to
    that number. An executor without a task for ``idle_timeout`` seconds leaves; with
    ``shuffle_tracking`` not before its shuffle files are forgotten, else they are moved to
    others. Fewest and most executors are those of the guards; no other guard holds.

    Spark decides by itself, several times a second, so nothing is proposed here: the engine that
    runs it is told these settings.

    >>> DynamicAllocation(idle_timeout=20.0)  # doctest: +ELLIPSIS
    DynamicAllocation(backlog_timeout=1.0, sustained_backlog_timeout=1.0, idle_timeout=20.0, ...)
    """

    backlog_timeout: float = 1.0
    sustained_backlog_timeout: float = 1.0
    idle_timeout: float = 60.0
    allocation_ratio: float = 1.0
    shuffle_tracking: bool = True

    def __post_init__(self) -> None:
        for name in ("backlog_timeout", "sustained_backlog_timeout", "idle_timeout"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(
                    f"{NAME}: {name} = {value} must be a finite number of seconds above 0; leave "
                    "it out for Spark's own"
                )
        if not 0 < self.allocation_ratio <= 1:
            raise InputError(
                f"{NAME}: allocation_ratio = {self.allocation_ratio} must be in (0, 1]; at 1 "
                "every waiting task gets a core"
            )

    def start(self, seed: int) -> None:
        """No memory: it is in Spark."""
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        """Nothing is proposed, whatever is seen."""
        return Proposal(reason="no change: Spark's own allocation decides", term="spark"), None


def refused(where: str) -> InputError:
    """The error for an engine or a command that cannot run it; ``where`` that is.

    >>> str(refused("in a simulation")).partition(":")[0]
    'policy spark-dra cannot run in a simulation'
    """
    return InputError(
        f"policy {NAME} cannot run {where}: it is Spark's own dynamic allocation, which decides "
        f"inside Spark. Use it in {RUNS_IN}, or choose another policy"
    )
