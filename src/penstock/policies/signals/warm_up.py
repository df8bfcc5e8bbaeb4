"""Warm-up: the time after a change of size in which figures say little.

After a restart a pipeline catches up with all it has, so CPU and busy time are at their ceiling
whatever the load. A maximum over a window would remember that as demand.
"""

from __future__ import annotations

from typing import TypedDict

from penstock.core.model import Rescale, Snapshot

WARM_UP = 120.0  # seconds


class Sizes(TypedDict):
    """Slots by pool when last looked at, when that was, and since when they are in force."""

    slots: dict[str, int]
    time: float | None
    since: float | None


def no_sizes() -> Sizes:
    """The sizes before anything was seen."""
    return {"slots": {}, "time": None, "since": None}


def remember_sizes(seen: Snapshot, memory: Sizes) -> Sizes:
    """Notice every change of size of any pool, and when it was in force.

    In force is the latest of: now, while an action is in flight; what past actions report (when
    the last slot was there, or the job was up again); now, when a size has changed since the
    last look and no action since then says when. Of a pipeline seen for the first time nothing
    is known but its past actions.
    """
    slots = {pool: len(held) for pool, held in seen.pools.items()}
    in_force = [min(_in_force(r), seen.time) for r in seen.rescales]
    if memory["since"] is not None:
        in_force.append(memory["since"])
    if seen.acting or _unexplained(seen.rescales, memory, slots):
        in_force.append(seen.time)
    return {"slots": slots, "time": seen.time, "since": max(in_force, default=None)}


def warming_up(seen: Snapshot, memory: Sizes, warm_up: float = WARM_UP) -> bool:
    """Whether the figures of a snapshot were taken too early after a change to be counted."""
    since = memory["since"]
    return since is not None and seen.time - since < warm_up


def _unexplained(rescales: tuple[Rescale, ...], memory: Sizes, slots: dict[str, int]) -> bool:
    last = memory["time"]
    if last is None or slots == memory["slots"]:
        return False
    return not any(_in_force(r) >= last for r in rescales)


def _in_force(rescale: Rescale) -> float:
    return rescale.time + max(rescale.registered or 0.0, rescale.downtime or 0.0)
