"""Guards: what stands between a policy's proposal and the cluster.

They are chosen per experiment and live outside the policies, so that a comparison compares
ideas and not cool-downs. Each one that changes a figure leaves an ``Effect``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from penstock.core.errors import InputError
from penstock.core.model import Change, Proposal, Snapshot

DAY = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one guard did to the target of a pool."""

    guard: str
    pool: str
    before: float
    after: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Blackout:
    """A daily time without actions: seconds after midnight UTC; may run past midnight.

    >>> Blackout.parse("22:00-06:30").covers(23 * 3600.0)
    True
    """

    start: float
    end: float

    def __post_init__(self) -> None:
        for value in (self.start, self.end):
            if not 0 <= value <= DAY:
                raise InputError(f"blackout time {value} s must lie within a day, 0 to {DAY:.0f} s")
        if self.start == self.end:
            raise InputError("a blackout must not begin and end at the same time")

    @classmethod
    def parse(cls, text: str) -> Blackout:
        """Read ``HH:MM-HH:MM``, UTC."""
        try:
            (h1, m1), (h2, m2) = (part.split(":") for part in text.split("-"))
            hours, minutes = (int(h1), int(h2)), (int(m1), int(m2))
        except ValueError:
            raise InputError(f"blackout {text!r} must look like 22:00-06:30 (UTC)") from None
        if not all(0 <= h <= 24 and 0 <= m < 60 for h, m in zip(hours, minutes, strict=True)):
            raise InputError(f"blackout {text!r}: hours go from 00 to 24, minutes from 00 to 59")
        start, end = (h * 3600.0 + m * 60.0 for h, m in zip(hours, minutes, strict=True))
        return cls(start=start, end=end)

    def covers(self, time: float) -> bool:
        """Whether a time (seconds since an epoch at midnight UTC) falls into it."""
        now = time % DAY
        if self.start < self.end:
            return self.start <= now < self.end
        return now >= self.start or now < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The limits of one experiment or one production query.

    ``minimum``, ``maximum`` slots of each pool · ``cap`` slots of all pools together, and
    whether too large a plan is shrunk in proportion or cancelled · ``step_up``, ``step_down``
    most slots added or removed by one action · ``cool_down`` seconds without another action ·
    ``tolerance`` relative distance from the present size that is not worth an action ·
    ``over_provisioning`` factor on every need · ``blackouts`` daily times without actions ·
    ``drain`` no scale-down while the lag is worth more seconds of input than this ·
    ``useful`` whether slots beyond the number of partitions are refused · ``max_age`` seconds
    after which a reading is stale.

    The defaults limit nothing but 1 to 80 slots, as in the thesis.
    """

    minimum: int = 1
    maximum: int = 80
    cap: int | None = None
    at_cap: Literal["shrink", "cancel"] = "shrink"
    step_up: int | None = None
    step_down: int | None = None
    cool_down: float = 0.0
    tolerance: float = 0.0
    over_provisioning: float = 1.0
    blackouts: tuple[Blackout, ...] = ()
    drain: float | None = None
    useful: bool = True
    max_age: float = 120.0

    def __post_init__(self) -> None:
        if self.minimum < 1:
            raise InputError(f"minimum {self.minimum} must be ≥ 1: a pool without slots is stuck")
        if self.minimum > self.maximum:
            raise InputError(
                f"minimum {self.minimum} is above maximum {self.maximum}; "
                "lower the one or raise the other"
            )
        for name in ("step_up", "step_down", "cap"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} {value} must be ≥ 1, or left out for no limit")
        if self.at_cap not in ("shrink", "cancel"):
            raise InputError(f"at_cap {self.at_cap!r} must be 'shrink' or 'cancel'")
        for name in ("cool_down", "tolerance", "drain", "max_age"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name} {value} must be a finite number ≥ 0")
        if not (math.isfinite(self.over_provisioning) and self.over_provisioning > 0):
            raise InputError(f"over_provisioning {self.over_provisioning} must be above 0")

    def apply(
        self, proposal: Proposal, seen: Snapshot, last_action: float | None
    ) -> tuple[dict[str, Change], tuple[Effect, ...]]:
        """The target of every pool, and what each guard did on the way.

        Sum the needs per pool, round up once, then guard. A pool that keeps its size is in the
        result too, with the raw figure; ``Change.slots == Change.before`` means no action.
        """
        targets: dict[str, Change] = {}
        sized: set[str] = set()
        effects: list[Effect] = []
        for pool in seen.pipeline.pools:
            before = seen.slots(pool)
            raw, share = self._raw(pool, proposal, seen)
            if raw is None:
                # The policy says nothing of this pool; only its bounds still hold.
                slots = self._bounded(pool, before, effects)
                targets[pool] = Change(before=before, slots=slots, raw=float(before))
                continue
            sized.add(pool)
            slots = self._limited(pool, raw, before, seen, effects)
            place = proposal.place.get(pool)
            targets[pool] = Change(
                before=before,
                slots=slots,
                raw=raw,
                cpu_share=share,
                add_on=place.add_on if place else (),
                remove=place.remove if place else (),
            )
        if self.cap is not None:
            self._under_cap(targets, sized, effects)
        return self._held(targets, seen, last_action, effects), tuple(effects)

    def _raw(
        self, pool: str, proposal: Proposal, seen: Snapshot
    ) -> tuple[float | None, float | None]:
        whole = proposal.pool_needs.get(pool)
        if whole is not None:
            raw, share = whole.slots, whole.cpu_share
        else:
            raw, share, known = 0.0, None, False
            for member in seen.pipeline.members(pool):
                need = proposal.needs.get(member)
                if need is None:
                    raw += seen.operators[member].parallelism if member in seen.operators else 0.0
                    continue
                known = True
                raw += need.slots
                if need.cpu_share is not None:
                    share = max(share or 0.0, need.cpu_share)
            if not known:
                return None, None
        if not (math.isfinite(raw) and raw >= 0):
            return None, None
        return raw * self.over_provisioning, share

    def _limited(
        self, pool: str, raw: float, before: int, seen: Snapshot, effects: list[Effect]
    ) -> int:
        if self.tolerance and abs(raw / before - 1) <= self.tolerance:
            if math.ceil(raw - 1e-9) != before:
                why = f"within {self.tolerance:.0%} of the present size"
                effects.append(_effect("tolerance", pool, math.ceil(raw - 1e-9), before, why))
            return self._bounded(pool, before, effects)
        slots = math.ceil(min(raw, 1e9) - 1e-9)
        useful = seen.pipeline.useful_slots(pool) if self.useful else None
        if useful is not None and slots > useful:
            why = f"only {useful} partitions can be worked on at once"
            effects.append(_effect("useful-parallelism", pool, slots, useful, why))
            slots = useful
        if self.step_up is not None and slots > before + self.step_up:
            why = f"at most +{self.step_up} per action"
            effects.append(_effect("step-limit", pool, slots, before + self.step_up, why))
            slots = before + self.step_up
        if self.step_down is not None and slots < before - self.step_down:
            why = f"at most −{self.step_down} per action"
            effects.append(_effect("step-limit", pool, slots, before - self.step_down, why))
            slots = before - self.step_down
        if slots < before and self.drain is not None:
            waiting = lag_seconds(seen)
            if waiting is not None and waiting > self.drain:
                why = f"the backlog of {waiting:.0f} s of input drains first"
                effects.append(_effect("drain", pool, slots, before, why))
                slots = before
        return self._bounded(pool, slots, effects)

    def _bounded(self, pool: str, slots: int, effects: list[Effect]) -> int:
        bounded = min(max(slots, self.minimum), self.maximum)
        if bounded != slots:
            why = f"limits are {self.minimum} to {self.maximum}"
            effects.append(_effect("bounds", pool, slots, bounded, why))
        return bounded

    def _under_cap(
        self, targets: dict[str, Change], sized: set[str], effects: list[Effect]
    ) -> None:
        """p' = m + round(f·(p − m)), f = (cap − k·m) / (Σp − k·m); m the minimum, k the pools.

        With m = 1 this is the thesis's rule. Rounding may exceed the cap by one: trimmed from
        the largest. Pools that the policy did not size keep what they have.
        """
        assert self.cap is not None
        total = sum(c.slots for c in targets.values())
        if total <= self.cap or not sized:
            return
        planned = {pool: targets[pool].slots for pool in targets if pool in sized}
        room = self.cap - (total - sum(planned.values()))
        floor = self.minimum * len(planned)
        if self.at_cap == "cancel" or floor > room:
            shrunk = {pool: min(slots, targets[pool].before) for pool, slots in planned.items()}
            why = f"the plan needs {total} slots, the cap is {self.cap}: no growth"
        else:
            f = (room - floor) / (sum(planned.values()) - floor)
            shrunk = {
                pool: self.minimum + round(f * (slots - self.minimum))
                for pool, slots in planned.items()
            }
            while sum(shrunk.values()) > room:
                shrunk[max(shrunk, key=lambda pool: shrunk[pool])] -= 1
            why = f"the plan needs {total} slots, the cap is {self.cap}: shrunk in proportion"
        for pool, slots in shrunk.items():
            change = targets[pool]
            if slots != change.slots:
                effects.append(_effect("cap", pool, change.slots, slots, why))
                targets[pool] = replace(change, slots=slots)

    def _held(
        self,
        targets: dict[str, Change],
        seen: Snapshot,
        last_action: float | None,
        effects: list[Effect],
    ) -> dict[str, Change]:
        """Cancel every change while the time is not right; outside the bounds need not wait."""
        guard = why = None
        if seen.acting:
            guard, why = "in-flight", "the last action is still in flight"
        elif any(b.covers(seen.time) for b in self.blackouts):
            guard, why = "blackout", "no actions in this blackout window"
        elif last_action is not None and seen.time - last_action < self.cool_down:
            left = self.cool_down - (seen.time - last_action)
            guard, why = "cool-down", f"{left:.0f} s of the cool-down left"
        if guard is None or why is None:
            return targets
        held = {}
        for pool, change in targets.items():
            urgent = guard == "cool-down" and not self.minimum <= change.before <= self.maximum
            if urgent or not is_action(change, seen, pool):
                held[pool] = change
                continue
            effects.append(_effect(guard, pool, change.slots, change.before, why))
            held[pool] = Change(before=change.before, slots=change.before, raw=change.raw)
        return held


def is_action(change: Change, seen: Snapshot, pool: str) -> bool:
    """Whether a change asks for anything that is not so already."""
    if change.slots != change.before or change.add_on or change.remove:
        return True
    share = change.cpu_share
    return share is not None and any(s.cpu_share != share for s in seen.pools[pool])


def lag_seconds(seen: Snapshot) -> float | None:
    """The lag at the sources in seconds of the rate that is offered; the largest of them."""
    worst: float | None = None
    for name in seen.pipeline.sources:
        o = seen.operators.get(name)
        if o is None or o.lag is None:
            continue
        rate = o.offered_rate or o.arrival_rate
        if rate:
            worst = max(worst or 0.0, o.lag / rate)
        elif o.lag == 0:
            worst = worst or 0.0
    return worst


def _effect(guard: str, pool: str, before: float, after: float, why: str) -> Effect:
    return Effect(guard=guard, pool=pool, before=before, after=after, why=why)
