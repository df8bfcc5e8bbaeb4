"""Spark's micro-batches as an engine: trigger, waves of tasks, executors that come and go."""

from __future__ import annotations

from penstock.simulator.microbatch.engine import MicroBatchEngine
from penstock.simulator.microbatch.profile import (
    ExecutorProfile,
    Profile,
    QueryProfile,
    SourceProfile,
    StageProfile,
    StateProfile,
    read_profile,
    write_profile,
)
from penstock.simulator.microbatch.record import ApplicationRecord

__all__ = [
    "ApplicationRecord",
    "ExecutorProfile",
    "MicroBatchEngine",
    "Profile",
    "QueryProfile",
    "SourceProfile",
    "StageProfile",
    "StateProfile",
    "read_profile",
    "write_profile",
]
