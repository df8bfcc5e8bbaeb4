"""What a change of size cost: one action in flight, its effect seen in who is there.

Pure: who asks for executors, and when to look, is up to the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from penstock.batches.values import Executor
from penstock.core.facts import JoinTime
from penstock.core.model import Rescale

log = logging.getLogger("penstock")

GIVE_UP = 90.0  # seconds until an action that did not take effect is no longer waited for
KEPT = 10  # past actions
SAME_AGE = 10.0  # executors added within this many seconds count as equally new

# Seconds from asking for an executor until it is there, by the beginning of the master's URL: what
# is assumed until the first action was timed. Above what local trials took (standalone 3 to 9 s,
# YARN 9 to 13 s, pods as processes 4 to 12 s), because elsewhere images and files are fetched.
USUAL_JOIN = {"spark://": 10.0, "local-cluster[": 10.0, "yarn": 15.0, "k8s://": 30.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A change of size that was asked for, and what is known of its effect so far."""

    cost: Rescale
    known: frozenset[str]
    leaving: frozenset[str]


class ActionLog:
    """Times the actions on one pool of executors.

    An executor that dies is replaced by Spark itself, up to the total that it was told; for
    ``GIVE_UP`` seconds that counts as in flight too, so that nobody acts on a size that is about
    to change back. Not where ``ours`` is false: Spark's dynamic allocation sizes the pool, and
    one that goes need not come back. ``past`` what the last ``kept`` actions cost.
    """

    def __init__(self, kept: int = KEPT, *, ours: bool = True) -> None:
        self._kept, self._ours = kept, ours
        self.past: list[Rescale] = []
        self._total: int | None = None  # what Spark keeps up, as far as we know
        self._short_since: float | None = None
        self._action: Action | None = None
        self._awaiting_first_task: Action | None = None
        self._awaiting_batch: Rescale | None = None

    @property
    def in_flight(self) -> bool:
        """Whether an action has not taken effect yet."""
        return self._action is not None

    @property
    def acting(self) -> bool:
        """Whether the size is about to change: by an action, or as Spark replaces the lost."""
        return self._action is not None or self._short_since is not None

    @property
    def watching(self) -> bool:
        """Whether something is being timed that should be looked at often."""
        return self._action is not None or self._awaiting_first_task is not None

    def asked(self, cost: Rescale, executors: Sequence[Executor], leaving: Sequence[str]) -> None:
        """A new size was asked for, of these executors; ``leaving`` those that were told to go."""
        self._total = cost.after
        self._short_since = None
        known = frozenset(e.id for e in executors)
        self._action = Action(cost=cost, known=known, leaving=frozenset(leaving))

    def track(self, executors: Sequence[Executor], now: float) -> None:
        """Look whether the action in flight has taken effect, and since when."""
        if self._awaiting_first_task is not None:
            self._track_first_task(self._awaiting_first_task, executors, now)
        action = self._action
        if action is None:
            if self._ours:
                self._track_lost(sum(e.alive for e in executors), now)
            return
        new = [e for e in executors if e.alive and e.id not in action.known]
        if action.leaving:
            left = [e for e in executors if e.id in action.leaving]
            done = all(not e.alive for e in left)
            moment = max((e.removed or now for e in left), default=now)
        else:
            done = sum(e.alive for e in executors) >= action.cost.after
            moment = max((e.added for e in new), default=now)
        if done:
            registered = max(0.0, moment - action.cost.time)
            # Executors join and leave a running query: nothing stops.
            cost = replace(action.cost, registered=registered, downtime=0.0)
            self._finish(cost)
            if new and not action.leaving:
                self._awaiting_first_task = replace(action, cost=cost)
                self._track_first_task(self._awaiting_first_task, executors, now)
        elif now - action.cost.time > GIVE_UP:
            self._total = sum(e.alive for e in executors)
            self._finish(action.cost)

    def batch_ended(self, start: float, end: float) -> None:
        """A batch was planned and committed; the first whole one after an action is steady."""
        cost = self._awaiting_batch
        if cost is not None and start >= cost.time + (cost.registered or 0.0):
            self._awaiting_batch = None
            self._update(cost.time, steady=end - cost.time)

    def _track_lost(self, alive: int, now: float) -> None:
        """Spark replaces executors that died; wait for that, but not for ever."""
        if self._total is None or alive >= self._total:
            self._total, self._short_since = alive, None
        elif self._short_since is None:
            self._short_since = now
            log.info("%d of %d executors are lost; Spark replaces them", self._total - alive,
                     self._total)  # fmt: skip
        elif now - self._short_since > GIVE_UP:
            log.warning("%d executors did not come back", self._total - alive)
            self._total, self._short_since = alive, None

    def _track_first_task(self, action: Action, executors: Sequence[Executor], now: float) -> None:
        new = [e for e in executors if e.id not in action.known]
        if any(e.completed_tasks for e in new) or now - action.cost.time > GIVE_UP:
            self._awaiting_first_task = None
            if any(e.completed_tasks for e in new):
                self._update(action.cost.time, first_task=now - action.cost.time)

    def _finish(self, cost: Rescale) -> None:
        self._action = None
        self._awaiting_batch = cost
        self.past.append(cost)
        del self.past[: -self._kept]

    def _update(
        self, time: float, *, first_task: float | None = None, steady: float | None = None
    ) -> None:
        for place in range(len(self.past) - 1, -1, -1):  # it is one of the last
            c = self.past[place]
            if c.time < time:
                return
            if c.time == time:
                self.past[place] = replace(
                    c, first_task=first_task or c.first_task, steady=steady or c.steady
                )


def join_time(past: Sequence[Rescale], assumed: float | None) -> JoinTime | None:
    """How long new executors take to be there: the median of past growths, else what is assumed."""
    took = [r.registered for r in past if r.after > r.before and r.registered is not None]
    if took:
        return JoinTime(seconds=median(took), origin="measured")
    return None if assumed is None else JoinTime(seconds=assumed, origin="assumed")


def usual_join(master: str) -> float | None:
    """Seconds that an executor usually takes to join; ``None`` where none can, or nobody knows.

    >>> usual_join("k8s://https://10.0.0.1:6443"), usual_join("local[4]")
    (30.0, None)
    """
    return next((s for begin, s in USUAL_JOIN.items() if master.startswith(begin)), None)


def victims(alive: Sequence[Executor], count: int, named: Sequence[str] = ()) -> list[str]:
    """Which executors leave: those that were named, then the newest, then the least loaded."""
    here = {e.id for e in alive}
    chosen = [name for name in named if name in here][:count]
    rest = sorted(
        (e for e in alive if e.id not in chosen),
        key=lambda e: (-(e.added // SAME_AGE), e.active_tasks, e.task_seconds),
    )
    return chosen + [e.id for e in rest[: count - len(chosen)]]
