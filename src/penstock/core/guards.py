"""Guards: what stands between a policy's proposal and the cluster.

They are chosen per experiment and live outside the policies, so that a comparison compares
ideas and not cool-downs. Each one that changes a figure leaves an ``Effect``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, isfinite
from typing import Literal

from penstock.core.errors import InputError
from penstock.core.findings import ENDING, LONG_LIVED
from penstock.core.model import Change, Need, Placement, Proposal, Snapshot, lag_seconds
from penstock.core.quick import maker
from penstock.core.sizing import need_of, shrunk

__all__ = ["Blackout", "Effect", "GuardName", "Guards", "is_action"]

Row = tuple[str, int, Need | None, int]  # pool, slots before, its need, slots planned
Hold = Literal["in-flight", "blackout", "cool-down", "real-time"]  # may cancel every change
GuardName = Literal[
    Hold,
    "tolerance",
    "useful-parallelism",
    "step-limit",
    "drain",
    "backfill",
    "unmeasured",
    "bounds",
    "cap",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one guard did to the target of a pool: slots before it and after it, and why."""

    guard: GuardName
    pool: str
    before: float
    after: float
    why: str


_change, _made_effect = maker(Change), maker(Effect)  # for every pool at every tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The limits of one experiment or one production query.

    The defaults limit nothing but 1 to 80 slots, as in the thesis.

    minimum, maximum: slots of each pool; the minimum as far as they are useful
    cap: slots of all pools together
    at_cap: whether too large a plan is shrunk in proportion or cancelled
    step_up, step_down: most slots added or removed by one action
    cool_down: seconds without another action
    tolerance: relative distance from the present size that is not worth an action
    over_provisioning: factor on every need
    blackouts: daily times without actions
    drain: no scale-down while the lag is worth more seconds of input than this
    useful: whether slots are refused beyond those that work on all partitions at once
    max_age: seconds after which a reading is stale
    sleep: whether the loop sleeps through the cool-down, as the thesis's does: no decision is
        made until more than ``cool_down`` seconds after the last action
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
    sleep: bool = False

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
            if value is not None and not (isfinite(value) and value >= 0):
                raise InputError(f"{name} {value} must be a finite number ≥ 0")
        if not (isfinite(self.over_provisioning) and self.over_provisioning > 0):
            raise InputError(f"over_provisioning {self.over_provisioning} must be above 0")

    def asleep(self, now: float, last_action: float | None) -> float | None:
        """Seconds of the cool-down left while the loop sleeps through it; ``None`` if awake.

        A loop that looks every 15 s and sleeps for 300 s decides 315 s after an action: it is
        still asleep at the look after 300 s.
        """
        if not self.sleep or last_action is None or now - last_action > self.cool_down:
            return None
        return self.cool_down - (now - last_action)

    def apply(
        self, proposal: Proposal, seen: Snapshot, last_action: float | None
    ) -> tuple[dict[str, Change], tuple[Effect, ...]]:
        """The target of every pool, and what each guard did on the way.

        Sum the needs per pool, round up once, then guard. A pool that keeps its size is in the
        result too, with the raw figure; ``Change.slots == Change.before`` means no action.
        """
        effects: list[Effect] = []
        rows: list[Row] = []
        total = 0
        for pool, members, useful in seen.pipeline.shares:
            before = len(seen.pools.get(pool, ()))
            need = need_of(pool, members, proposal, seen)
            if need is None:
                # The policy says nothing of this pool; only its bounds still hold.
                slots = before
            else:
                slots = self._limited(pool, need.slots, before, useful, seen, effects)
            if seen.queries or seen.unmeasured:
                slots = self._kept(pool, slots, before, seen, effects)
            slots = self._bounded(pool, slots, useful, effects)
            rows.append((pool, before, need, slots))
            total += slots
        if self.cap is not None and total > self.cap:
            rows = self._under_cap(rows, total, self.cap, effects)
        return self._targets(rows, proposal, seen, last_action, effects), tuple(effects)

    def _targets(
        self,
        rows: list[Row],
        proposal: Proposal,
        seen: Snapshot,
        last_action: float | None,
        effects: list[Effect],
    ) -> dict[str, Change]:
        """The plan as changes; those that the time is not right for are cancelled."""
        hold = self._hold(seen, last_action)
        why = ""
        targets: dict[str, Change] = {}
        for pool, before, need, slots in rows:
            if need is None:
                if slots == before:
                    targets[pool] = _unchanged(before)
                    continue
                raw, share, place = float(before), None, None
            else:
                raw, share = need.slots * self.over_provisioning, need.cpu_share
                place = proposal.place.get(pool)
            if (
                hold is not None
                and (slots != before or _reshapes(share, place, seen, pool))
                # Outside the bounds need not wait for the cool-down.
                and (hold != "cool-down" or self.minimum <= before <= self.maximum)
            ):
                why = why or self._why_held(hold, seen, last_action)
                effects.append(_effect(hold, pool, slots, before, why))
                slots, share, place = before, None, None
            if share is None and place is None:
                targets[pool] = _change(before=before, slots=slots, raw=raw)
            else:
                add_on, remove = _fitting(place, slots - before)
                targets[pool] = _change(
                    before=before,
                    slots=slots,
                    raw=raw,
                    cpu_share=share,
                    add_on=add_on,
                    remove=remove,
                )
        return targets

    def _limited(
        self,
        pool: str,
        need: float,
        before: int,
        useful: int | None,
        seen: Snapshot,
        effects: list[Effect],
    ) -> int:
        raw = need * self.over_provisioning
        slots = ceil(raw - 1e-9) if raw < 1e9 else 10**9
        if self.tolerance and abs(raw / before - 1) <= self.tolerance:
            if slots != before:
                why = f"within {self.tolerance:.0%} of the present size"
                effects.append(_effect("tolerance", pool, slots, before, why))
            return before
        if useful is not None and slots > useful and self.useful:
            why = _why_useful(useful, seen.pipeline.slot_tasks.get(pool, 1.0))
            effects.append(_effect("useful-parallelism", pool, slots, useful, why))
            slots = useful
        if slots > before:
            if self.step_up is not None and slots > before + self.step_up:
                why = f"at most +{self.step_up} per action"
                effects.append(_effect("step-limit", pool, slots, before + self.step_up, why))
                slots = before + self.step_up
        elif slots < before:
            slots = self._lowered(pool, slots, before, seen, effects)
        return slots

    def _lowered(
        self, pool: str, slots: int, before: int, seen: Snapshot, effects: list[Effect]
    ) -> int:
        if self.step_down is not None and slots < before - self.step_down:
            why = f"at most −{self.step_down} per action"
            effects.append(_effect("step-limit", pool, slots, before - self.step_down, why))
            slots = before - self.step_down
        if self.drain is not None:
            # A batch that takes up a backlog leaves nothing waiting, and has it all to do.
            overdue = max((q.overdue or 0.0 for q in seen.queries.values()), default=0.0)
            waiting = (lag_seconds(seen) or 0.0) + overdue
            if waiting > self.drain:
                why = f"the backlog of {waiting:.0f} s of input drains first"
                effects.append(_effect("drain", pool, slots, before, why))
                slots = before
        return slots

    def _kept(
        self, pool: str, slots: int, before: int, seen: Snapshot, effects: list[Effect]
    ) -> int:
        """Slots that are not taken from queries that would be harmed, or that no need counts."""
        if slots < before:
            ending = [name for name, q in seen.queries.items() if q.trigger_kind in ENDING]
            if ending:
                why = f"{ending[0]} works off a backlog and then ends"
                effects.append(_effect("backfill", pool, slots, before, why))
                slots = before
            elif seen.unmeasured:
                why = f"nothing is known yet of {', '.join(seen.unmeasured)}"
                effects.append(_effect("unmeasured", pool, slots, before, why))
                slots = before
        least = _least_for_long_tasks(seen)
        if least is not None and slots < least <= self.maximum:
            why = f"{least} are held by tasks that live as long as their query"
            effects.append(_effect("real-time", pool, slots, least, why))
            slots = least
        return slots

    def _bounded(self, pool: str, slots: int, useful: int | None, effects: list[Effect]) -> int:
        least = self.minimum
        if least > 1 and useful is not None and self.useful:
            least = min(least, useful)  # no slot is forced on a pool that could not use it
        if least <= slots <= self.maximum:
            return slots
        bounded = min(max(slots, least), self.maximum)
        why = f"limits are {least} to {self.maximum}"
        effects.append(_effect("bounds", pool, slots, bounded, why))
        return bounded

    def _under_cap(self, rows: list[Row], total: int, cap: int, effects: list[Effect]) -> list[Row]:
        """The plan under the cap. Pools that the policy did not size keep what they have."""
        sized = {pool: slots for pool, _, need, slots in rows if need is not None}
        room = cap - (total - sum(sized.values()))
        if self.at_cap == "cancel" or self.minimum * len(sized) > room:
            fitted = {
                pool: min(slots, before) for pool, before, need, slots in rows if need is not None
            }
            why = f"the plan needs {total} slots, the cap is {cap}: no growth"
        else:
            fitted = shrunk(sized, room, self.minimum)
            why = f"the plan needs {total} slots, the cap is {cap}: shrunk in proportion"
        effects += [
            _effect("cap", pool, sized[pool], slots, why)
            for pool, slots in fitted.items()
            if slots != sized[pool]
        ]
        return [(pool, before, need, fitted.get(pool, slots)) for pool, before, need, slots in rows]

    def _hold(self, seen: Snapshot, last_action: float | None) -> Hold | None:
        """The guard that cancels every change because the time is not right."""
        if seen.acting:
            return "in-flight"
        if self.blackouts and any(b.covers(seen.time) for b in self.blackouts):
            return "blackout"
        if seen.queries and self._why_only_advice(seen):
            return "real-time"
        if last_action is not None and seen.time - last_action < self.cool_down:
            return "cool-down"
        return None

    def _why_only_advice(self, seen: Snapshot) -> str | None:
        """Why nothing may be done to queries with long-lived tasks, if so.

        Spark fails such a query when it has fewer cores than tasks, so without knowing the number,
        or without being allowed as many, every change is a risk.
        """
        long_lived = _long_lived(seen)
        if not long_lived:
            return None
        names = ", ".join(long_lived)
        least = _least_for_long_tasks(seen)
        if least is None:
            return f"only advice: how many slots the tasks of {names} hold is not known"
        most = min(self.maximum, self.cap or self.maximum)
        if least > most:
            return f"only advice: {names} cannot run with fewer than {least}, at most {most}"
        return None

    def _why_held(self, hold: Hold, seen: Snapshot, last_action: float | None) -> str:
        if hold == "in-flight":
            return "the last action is still in flight"
        if hold == "blackout":
            return "no actions in this blackout window"
        if hold == "real-time":
            return self._why_only_advice(seen) or ""
        left = self.cool_down - (seen.time - (last_action or 0.0))
        return f"{left:.0f} s of the cool-down left"


@lru_cache(maxsize=1024)
def _unchanged(slots: int) -> Change:
    """A pool of which nothing was said: at most ticks every pool of a loop that sleeps."""
    return Change(before=slots, slots=slots, raw=float(slots))


def is_action(change: Change, seen: Snapshot, pool: str) -> bool:
    """Whether a change asks for anything that is not so already."""
    if change.slots != change.before:
        return True
    if change.cpu_share is None and not change.add_on and not change.remove:
        return False
    return _reshapes(change.cpu_share, change, seen, pool)


def _reshapes(
    share: float | None, place: Placement | Change | None, seen: Snapshot, pool: str
) -> bool:
    """Whether a CPU share or named nodes and slots ask for anything, the size apart."""
    if place is not None and (place.add_on or place.remove):
        return True
    return share is not None and any(s.cpu_share != share for s in seen.pools[pool])


def _fitting(place: Placement | None, growth: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first of the named nodes and slots, as many as the guards left room for.

    A policy names them in the order of its preference. Naming fewer is its right: the engine
    chooses the others.
    """
    if place is None:
        return (), ()
    add_on, remove = place.add_on, place.remove
    if len(add_on) - len(remove) > growth:
        add_on = add_on[: max(0, growth + len(remove))]
    if len(remove) > len(add_on) - growth:
        remove = remove[: max(0, len(add_on) - growth)]
    return add_on, remove


def _why_useful(slots: int, tasks: float) -> str:
    if tasks == 1:
        return f"only {slots} partitions can be worked on at once"
    return f"{slots} slots of {tasks:g} cores work on all partitions at once"


def _long_lived(seen: Snapshot) -> list[str]:
    return [name for name, q in seen.queries.items() if q.trigger_kind in LONG_LIVED]


def _least_for_long_tasks(seen: Snapshot) -> int | None:
    """Slots for all long-lived tasks, and one more for other queries; ``None`` if not known.

    In a pipeline of several pools it is not known which of them holds the tasks.
    """
    long_lived = _long_lived(seen)
    held = [seen.queries[name].held_slots for name in long_lived]
    known = [h for h in held if h is not None]
    if not known or len(known) < len(held) or len(seen.pipeline.pools) > 1:
        return None
    others = len(seen.queries) > len(long_lived) or bool(seen.unmeasured)
    return ceil(sum(known) - 1e-9) + others


def _effect(guard: GuardName, pool: str, before: float, after: float, why: str) -> Effect:
    return _made_effect(guard=guard, pool=pool, before=before, after=after, why=why)


DAY = 86400.0


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

    def __str__(self) -> str:
        times = (divmod(round(t / 60), 60) for t in (self.start, self.end))
        return "-".join(f"{hours:02}:{minutes:02}" for hours, minutes in times)

    def covers(self, time: float) -> bool:
        """Whether a time (seconds since an epoch at midnight UTC) falls into it."""
        now = time % DAY
        if self.start < self.end:
            return self.start <= now < self.end
        return now >= self.start or now < self.end
