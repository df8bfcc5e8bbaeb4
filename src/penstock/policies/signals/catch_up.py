"""Catching up: what a backlog and a stop add to the load, and when a rescale is worth its stop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Need, Snapshot
from penstock.policies.signals.backlog import Backlog, lag_words

FULL = 1.03  # utilisation: 1, and what the noise of the figures adds
PATIENCE = 1.5  # a backlog may take so many times the catch-up time before it causes an action
GAP = 600.0  # seconds without a look after which nothing is said of the time between


class Waste(TypedDict):
    """``wasted`` slot-seconds that a smaller size would have saved so far; when that was last
    looked at, what it would have saved then (``spare`` slots), and of how many (``slots``)."""

    wasted: float
    time: float | None
    spare: float
    slots: int


def no_waste() -> Waste:
    """The waste before anything was seen."""
    return {"wasted": 0.0, "time": None, "spare": 0.0, "slots": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What to do about the size of a pipeline.

    needs: by operator; none if it is better to wait
    up: whether the pipeline is too small
    why: in words
    waste: to remember
    term: what decided, in a word
    """

    needs: Mapping[str, Need]
    up: bool
    why: str
    waste: Waste
    term: str = ""


class _Paced(Protocol):
    """A policy to which a rescale has to be worth its stop; times in seconds.

    ``catch_up`` in which a backlog is to be gone · ``pay_back`` share of the cost of a stop that a
    smaller size has to have saved · ``calm`` input that is no backlog · ``downtime`` that a stop
    takes, before one was measured.
    """

    @property
    def catch_up(self) -> float: ...
    @property
    def pay_back(self) -> float: ...
    @property
    def calm(self) -> float: ...
    @property
    def downtime(self) -> float: ...


def move_of(
    policy: _Paced,
    seen: Snapshot,
    load: Mapping[str, float],
    spare: Mapping[str, float],
    backlog: Backlog,
    memory: Waste,
) -> Move:
    """What to do about the size.

    ``load`` slots that each operator would keep busy all the time with the input as it is ·
    ``spare`` factor on the need of each, for room.

    Up, if the pipeline is too small for the input, or its backlog takes far longer than
    ``catch_up`` seconds to drain. Down, if there is no backlog (less than ``calm`` seconds of
    input), and what the smaller size would have saved so far makes up for a part of the stop:
    ∫ spare slots dt ≥ ``pay_back`` · downtime · slots, in slot-seconds. So a large saving is taken
    soon, a small one later, and one that comes and goes never.
    """
    pool, use = fullest(seen, load)
    if backlog.use > use > 0.0:  # seen at work, it does less than its figures say
        members = seen.pipeline.members(pool)
        more = backlog.use / use
        load = {n: slots * more if n in members else slots for n, slots in load.items()}
        use = backlog.use
    factor = backlog.factor(policy.catch_up)
    needs = {n: Need(slots=slots * factor * spare[n]) for n, slots in load.items()}
    now, then = whole_slots(seen, needs)
    waste = _waste(memory, seen.time, now, max(0, now - then))
    at = f"{pool} at {use:.0%} of what it can do"
    stay = Move(needs={}, up=False, why=f"no change: {at}", waste=waste, term="enough")
    work = _work(policy, backlog)
    if use > FULL:
        return replace(stay, needs=needs, up=True, why=f"too small: {at}{work}", term="too-small")
    if backlog.seconds > policy.calm:
        drain = backlog.drains_in(use)
        if drain <= PATIENCE * policy.catch_up + backlog.downtime:
            why = f"no change: {lag_words(backlog)} gone in {drain:,.0f} s"
            return replace(stay, why=why, term="draining")
        slow = f"would take {drain:,.0f} s to drain" if use < 1.0 else "would never drain"
        why = f"too small: {at}, its backlog {slow}{work}"
        return replace(stay, needs=needs, up=True, why=why, term="backlog")
    if then >= now:
        return stay
    price = policy.pay_back * backlog.downtime * now
    if waste["wasted"] < price:
        saved = f"{now - then} of {now} slots less would have saved {waste['wasted']:,.0f}"
        why = f"no change: {saved} slot-seconds, a stop has to pay {price:,.0f}"
        return replace(stay, why=why, term="not-worth-a-stop")
    return replace(stay, needs=needs, why=f"too large: {at}{work}", term="too-large")


def _work(policy: _Paced, backlog: Backlog) -> str:
    what = f"a stop of {backlog.downtime:.0f} s"
    if backlog.seconds > policy.calm:
        what = f"{lag_words(backlog)} and {what}"
    return f"; {what} to work off in {policy.catch_up:,.0f} s"


def fullest(seen: Snapshot, load: Mapping[str, float]) -> tuple[str, float]:
    """The pool with the highest utilisation, and that: slots kept busy over slots."""
    name, most = "nothing", 0.0
    for pool in seen.pipeline.pools:
        use = sum(load.get(m, 0.0) for m in seen.pipeline.members(pool)) / seen.slots(pool)
        if use > most:
            name, most = pool, use
    return name, most


def whole_slots(seen: Snapshot, needs: Mapping[str, Need]) -> tuple[int, int]:
    """Slots of all pools now, and once the core has rounded the needs of each up."""
    now = then = 0
    for pool in seen.pipeline.pools:
        size = seen.slots(pool)
        members = seen.pipeline.members(pool)
        now += size
        if not any(m in needs for m in members):
            then += size
            continue
        slots = 0.0
        for m in members:
            o = seen.operators.get(m)
            slots += needs[m].slots if m in needs else o.parallelism if o else 0.0
        then += max(1, math.ceil(slots - 1e-9))
    return now, then


def check_pace(name: str, policy: _Paced) -> None:
    """Refuse parameters that make no sense; ``name`` of the policy, for the message."""
    if not (math.isfinite(policy.catch_up) and policy.catch_up > 0):
        raise InputError(f"{name}: catch_up = {policy.catch_up} s must be a finite number above 0")
    if not (math.isfinite(policy.pay_back) and policy.pay_back >= 0):
        raise InputError(f"{name}: pay_back = {policy.pay_back} must be a finite number ≥ 0")
    if not (math.isfinite(policy.calm) and policy.calm >= 0):
        raise InputError(f"{name}: calm = {policy.calm} s must be a finite number ≥ 0")
    if not (math.isfinite(policy.downtime) and policy.downtime >= 0):
        raise InputError(
            f"{name}: downtime = {policy.downtime} s must be a finite number ≥ 0; "
            "0 where a rescale stops nothing"
        )


def _waste(memory: Waste, time: float, now: int, spare: int) -> Waste:
    """∫ spare dt by trapezoids, from nothing when nothing would be saved or the size is new."""
    wasted, before = memory["wasted"], memory["spare"]
    if memory["slots"] != now:
        wasted = before = 0.0
    if not spare:
        wasted = 0.0
    elif memory["time"] is not None and time - memory["time"] <= GAP:
        wasted += (before + spare) / 2.0 * (time - memory["time"])
    return {"wasted": wasted, "time": time, "spare": float(spare), "slots": now}
