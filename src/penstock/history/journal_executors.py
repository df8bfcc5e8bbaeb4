"""The executors of a journal: who was there at which tick, and when they came and went."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.batches.snapshot import POOL
from penstock.batches.values import Executor
from penstock.core.facts import JoinTime
from penstock.core.model import Rescale, Snapshot

SOON = 0.01  # seconds after a tick at which an executor is taken to have come


@dataclass(slots=True)
class _Presence:
    """When an executor was seen, and the ticks before and after."""

    before: float | None
    first: float
    last: float
    after: float | None = None


class Presences:
    """Who was there, over the ticks.

    cores, at_once: of an executor, and tasks that it works on at once
    join: how long new ones take to be there, where that was told
    warm: by executor, when it was seen to be warm, where it had been cold
    changed: when executors came or went for the last time
    """

    def __init__(self) -> None:
        self.cores = self.at_once = 1
        self.join: JoinTime | None = None
        self.warm: dict[str, float] = {}
        self.changed = -math.inf
        self._slots: dict[str, _Presence] = {}
        self._actions: dict[float, Rescale] = {}

    @property
    def rescales(self) -> tuple[Rescale, ...]:
        """The actions that were told of, oldest first, each as it was told last."""
        return tuple(self._actions[time] for time in sorted(self._actions))

    def begin_anew(self) -> None:
        """What follows is another run; who is there then is seen for the first time."""
        self._slots.clear()
        self.changed = -math.inf

    def take(self, seen: Snapshot, before: float | None, now: float) -> None:
        """One tick, and when the one before it was."""
        pool = POOL if POOL in seen.pools else next(iter(seen.pools), POOL)
        slots = {str(slot.id): slot for slot in seen.pools.get(pool, ())}
        fact = seen.facts.get(pool)
        self.cores = max(1, round(fact.cores)) if fact and fact.cores else self.cores
        self.join = fact.join if fact and fact.join else self.join
        self.at_once = max(1, round(seen.pipeline.slot_tasks.get(pool, 1)))
        for rescale in seen.rescales:
            self._actions[rescale.time] = rescale
        before = before if self._slots else None
        here = {id for id, p in self._slots.items() if p.after is None}
        if before is not None and here != set(slots):
            done = [
                r.time + r.registered
                for r in seen.rescales
                if r.registered is not None and before < r.time + r.registered <= now
            ]
            self.changed = max(done, default=now)
        for id in here - set(slots):
            self._slots[id].after = now
        for id, slot in slots.items():
            if id in here:
                self._slots[id].last = now
            elif id not in self._slots:
                self._slots[id] = _Presence(before=before, first=now, last=now)
            if slot.cold:
                self.warm[id] = math.inf
            elif self.warm.get(id) == math.inf:
                self.warm[id] = now

    def lives(self, begin: float) -> Iterator[Executor]:
        """The executors with when they came and went, by the actions where these tell.

        begin: when the first batch was planned
        """
        actions = [r for r in self._actions.values() if r.registered is not None]
        taken: set[tuple[float, bool]] = set()
        for id, seen in self._slots.items():
            added = min(begin, seen.first) - 1.0
            if seen.before is not None:
                added = _moment(actions, taken, seen.before, seen.first, came=True)
            removed = None
            if seen.after is not None:
                removed = _moment(actions, taken, seen.last, seen.after, came=False)
            yield Executor(
                id=id,
                host="",
                cores=self.cores,
                alive=removed is None,
                added=added,
                removed=removed,
                task_seconds=0.0,
                completed_tasks=0,
                active_tasks=0,
                max_tasks=self.at_once,
            )


def _moment(
    actions: Sequence[Rescale],
    taken: set[tuple[float, bool]],
    before: float,
    after: float,
    *,
    came: bool,
) -> float:
    """When an executor came or went between two ticks.

    Of an action only the last one is timed; the others count from when it was asked for.
    """
    for r in actions:
        done = r.time + (r.registered or 0.0)
        if (r.after > r.before) == came and r.time <= after and done > before:
            if done <= after and (r.time, came) not in taken:
                taken.add((r.time, came))
                return done
            return r.time
    return before + SOON if came else after
