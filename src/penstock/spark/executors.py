"""The executors of one application: absolute targets, one action in flight, its effect timed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.errors import EngineError, InputError
from penstock.core.model import Change, Rescale
from penstock.spark.measure.metrics import POOL
from penstock.spark.measure.rest import Executor

log = logging.getLogger("penstock")

GIVE_UP = 90.0  # seconds until an action that did not take effect is no longer waited for
SAME_AGE = 10.0  # executors added within this many seconds count as equally new


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A change of size that was asked for, and what is known of its effect so far."""

    cost: Rescale
    known: frozenset[str]
    leaving: frozenset[str]


class ExecutorPool:
    """Tells Spark an absolute total; to shrink, it also decommissions the executors that leave.

    Decommissioned executors finish their tasks first; nothing fails. Only one action is in flight
    at a time. An executor that dies is replaced by Spark itself, up to the total that it was told;
    for ``GIVE_UP`` seconds that counts as in flight too, so that nobody acts on a size that is
    about to change back.

    ``limits`` fewest and most executors: the last gate, whatever was decided · ``frozen`` why
    nothing may be done at this moment, or ``None``.
    """

    def __init__(
        self,
        context: Any,
        *,
        limits: tuple[int, int] | None = None,
        frozen: Callable[[], str | None] | None = None,
    ) -> None:
        self._context = context
        self.limits = limits
        self.frozen = frozen
        self._total: int | None = None  # what Spark keeps up, as far as we know
        self._short_since: float | None = None
        self._action: Action | None = None
        self._awaiting_first_task: Action | None = None
        self._awaiting_batch: Rescale | None = None
        self.past: list[Rescale] = []

    @property
    def acting(self) -> bool:
        """Whether the size is about to change: by an action, or as Spark replaces the lost."""
        return self._action is not None or self._short_since is not None

    @property
    def watching(self) -> bool:
        """Whether something is being timed that should be looked at often."""
        return self._action is not None or self._awaiting_first_task is not None

    def refuse_if_not_ours(self) -> None:
        """Raise if something else sizes this application, or if there is nothing to size."""
        conf = self._context.getConf()
        if conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
            raise InputError(
                "spark.dynamicAllocation.enabled is true: two auto-scalers would undo each "
                "other's actions. Set it to false to act, or use mode='advise'"
            )
        master = str(self._context.master)
        if master == "local" or master.startswith("local["):
            raise InputError(
                f"the master is {master}: everything runs in the driver, there are no executors "
                "to add or remove. Use a cluster (penstock run --local-cluster 8 starts one "
                "here), or mode='advise'"
            )

    def resize(self, change: Change, executors: Sequence[Executor], now: float) -> None:
        """Ask for a new size; returns at once."""
        if self._action is not None:
            raise EngineError("an action is still in flight; one at a time")
        self._gate(change.slots)
        alive = [e for e in executors if e.alive]
        if change.slots == len(alive):
            return
        # Always the total first: a decommission alone would lower Spark's own record, which is
        # empty until a total was asked for, to 0, and lost executors would not come back.
        self._request(change.slots)
        leaving: frozenset[str] = frozenset()
        if change.slots < len(alive):
            leaving = frozenset(victims(alive, len(alive) - change.slots, change.remove))
            self._decommission(sorted(leaving))
        self._total = change.slots
        self._short_since = None
        cost = Rescale(time=now, pool=POOL, before=len(alive), after=change.slots)
        known = frozenset(e.id for e in executors)
        self._action = Action(cost=cost, known=known, leaving=leaving)

    def track(self, executors: Sequence[Executor], now: float) -> None:
        """Look whether the action in flight has taken effect, and since when."""
        if self._awaiting_first_task is not None:
            self._track_first_task(self._awaiting_first_task, executors, now)
        action = self._action
        if action is None:
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

    def _gate(self, slots: int) -> None:
        """Refuse what must not leave here, and say so; nothing that came before can be wrong."""
        least, most = self.limits or (1, slots)
        if not (isinstance(slots, int) and least <= slots <= most):
            log.error("refused: %s executors, the limits are %d to %d", slots, least, most)
            raise EngineError(f"{slots} executors are outside the limits of {least} to {most}")
        why = self.frozen() if self.frozen is not None else None
        if why is not None:
            raise EngineError(f"frozen: {why}")

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
        self.past = [*self.past[-9:], cost]

    def _update(
        self, time: float, *, first_task: float | None = None, steady: float | None = None
    ) -> None:
        self.past = [
            replace(c, first_task=first_task or c.first_task, steady=steady or c.steady)
            if c.time == time
            else c
            for c in self.past
        ]

    def _request(self, total: int) -> None:
        try:
            to_map = self._context._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap
            taken = self._context._jsc.sc().requestTotalExecutors(total, 0, to_map({}))
        except Exception as error:  # of the gateway: the session is stopped, the JVM gone
            raise EngineError(f"could not ask Spark for {total} executors: {error}") from error
        if not taken:
            raise EngineError(f"Spark did not take the request for {total} executors")

    def _decommission(self, ids: Sequence[str]) -> None:
        try:
            jvm = self._context._jvm
            info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo
            backend = self._context._jsc.sc().schedulerBackend()
            for executor in ids:
                reason = info("scaled in by Penstock", jvm.scala.Option.empty())
                backend.decommissionExecutor(executor, reason, False, False)
        except Exception as error:
            raise EngineError(f"could not decommission {', '.join(ids)}: {error}") from error


def victims(alive: Sequence[Executor], count: int, named: Sequence[str] = ()) -> list[str]:
    """Which executors leave: those that were named, then the newest, then the least loaded."""
    here = {e.id for e in alive}
    chosen = [name for name in named if name in here][:count]
    rest = sorted(
        (e for e in alive if e.id not in chosen),
        key=lambda e: (-(e.added // SAME_AGE), e.active_tasks, e.task_seconds),
    )
    return chosen + [e.id for e in rest[: count - len(chosen)]]
