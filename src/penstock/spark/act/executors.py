"""The executors of one application: absolute targets, one action in flight, its effect timed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from penstock.batches.actions import ActionLog, victims
from penstock.batches.snapshot import POOL
from penstock.batches.values import Executor
from penstock.core.errors import EngineError, FrozenError, InputError
from penstock.core.model import Change, Rescale

log = logging.getLogger("penstock")


class ExecutorPool:
    """Tells Spark an absolute total; to shrink, it also decommissions the executors that leave.

    Decommissioned executors finish their tasks first; nothing fails. Only one action is in flight
    at a time; ``ActionLog`` times it.

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
        self._dynamic = _is_dynamic(context)
        self._log = ActionLog(ours=not self._dynamic)
        self._total: int | None = None  # what Spark was asked for

    @property
    def acting(self) -> bool:
        """Whether the size is about to change: by an action, or as Spark replaces the lost."""
        return self._log.acting

    @property
    def in_flight(self) -> bool:
        """Whether an action has not taken effect yet."""
        return self._log.in_flight

    @property
    def watching(self) -> bool:
        """Whether something is being timed that should be looked at often."""
        return self._log.watching

    @property
    def past(self) -> Sequence[Rescale]:
        """What the last actions cost."""
        return self._log.past

    def refuse_if_not_ours(self) -> None:
        """Raise if something else sizes this application, or if there is nothing to size."""
        if self._dynamic:
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

    def refuse_if_frozen(self) -> None:
        """Raise if nothing may be done at this moment."""
        why = self.frozen() if self.frozen is not None else None
        if why is not None:
            raise FrozenError(why)

    def resize(
        self,
        change: Change,
        executors: Sequence[Executor],
        now: float,
        *,
        on_the_way: bool = False,
    ) -> None:
        """Ask for a new size; returns at once.

        ``on_the_way``: as a step of a larger change, whose end has passed the :meth:`gate`.
        """
        if self._log.in_flight:
            raise EngineError("an action is still in flight; one at a time")
        if on_the_way:
            self.refuse_if_frozen()
        else:
            self.gate(change.slots)
        alive = [e for e in executors if e.alive]
        if change.slots == len(alive):
            return
        # Always the total first: a decommission alone would lower Spark's own record, which is
        # empty until a total was asked for, to 0, and lost executors would not come back.
        self._request(change.slots)
        self._total = change.slots
        leaving: Sequence[str] = ()
        if change.slots < len(alive):
            leaving = victims(alive, len(alive) - change.slots, change.remove)
            self._decommission(sorted(leaving))
        cost = Rescale(time=now, pool=POOL, before=len(alive), after=change.slots)
        self._log.asked(cost, executors, leaving)

    def one_more(self, executors: Sequence[Executor]) -> int:
        """Ask for one executor more than were asked for so far; the new total.

        Several such steps may be under way at a time: whoever takes them knows no other size than
        one more or one fewer, so none of them undoes another.
        """
        total = self._asked_for(executors) + 1
        self.gate(total)
        self._request(total)
        self._total = total
        return total

    def one_fewer(self, leaving: str, executors: Sequence[Executor]) -> int:
        """Let one very executor leave, which is not replaced; the new total."""
        alive = [e.id for e in executors if e.alive]
        if leaving not in alive:
            raise EngineError(
                f"there is no executor {leaving!r}; there are {', '.join(sorted(alive)) or 'none'}"
            )
        total = self._asked_for(executors) - 1
        self.gate(total)
        self._request(total)
        self._total = total
        self._decommission([leaving])
        return total

    def track(self, executors: Sequence[Executor], now: float) -> None:
        """Look whether the action in flight has taken effect, and since when."""
        self._log.track(executors, now)

    def batch_ended(self, start: float, end: float) -> None:
        """A batch was planned and committed; the first whole one after an action is steady."""
        self._log.batch_ended(start, end)

    def gate(self, slots: int) -> None:
        """Refuse what must not leave here, and say so; nothing that came before can be wrong."""
        least, most = self.limits or (1, slots)
        if not (isinstance(slots, int) and least <= slots <= most):
            log.error("refused: %s executors, the limits are %d to %d", slots, least, most)
            raise EngineError(f"{slots} executors are outside the limits of {least} to {most}")
        self.refuse_if_frozen()

    def _asked_for(self, executors: Sequence[Executor]) -> int:
        return sum(e.alive for e in executors) if self._total is None else self._total

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


def _is_dynamic(context: Any) -> bool:
    enabled: str = context.getConf().get("spark.dynamicAllocation.enabled", "false")
    return enabled.lower() == "true"
