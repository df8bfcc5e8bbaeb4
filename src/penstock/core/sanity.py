"""Which readings can be believed.

Everything a policy sees has passed through here, so a policy only has to know that a value may
be missing. A reading that cannot be true becomes ``None`` (*not measured*), and a snapshot that
is stale as a whole is not shown to the policy at all.
"""

from __future__ import annotations

import dataclasses
import operator
from math import inf
from typing import Any, Literal, NamedTuple

from penstock.core.model import OperatorSeen, QuerySeen, Slot, Snapshot

MOST_RECORDS = 1e15  # more than any cluster moves in a second, or holds
MOST_SHARE = 1.05  # shares of time may overshoot by clock jitter
MOST_CPU = 2.0  # a quota is enforced per 100 ms period, so short windows overshoot

_BOUNDS = {
    "offered_rate": MOST_RECORDS,
    "arrival_rate": MOST_RECORDS,
    "output_rate": MOST_RECORDS,
    "service_rate": MOST_RECORDS,
    "busy": MOST_SHARE,
    "idle": MOST_SHARE,
    "backpressured": MOST_SHARE,
    "cpu": MOST_CPU,
    "buffer": MOST_SHARE,
    "lag": MOST_RECORDS,
    "latency": MOST_RECORDS,
}
_READ = operator.attrgetter(*_BOUNDS)
_LIMITS = tuple(_BOUNDS.values())
_SHARES = ("busy", "backpressured")
_OF_QUERY = {
    f.name: MOST_SHARE if f.name in _SHARES else MOST_RECORDS
    for f in dataclasses.fields(QuerySeen)
    if f.default is None  # the others are always known
}
_NEVER_ZERO = ("cpu", "service_rate")  # of something that runs: a zero is a broken reading


def believable(seen: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
    """The snapshot with unbelievable readings removed, and a sentence about each."""
    if _all_believable(seen):
        return seen, ()
    notes: list[str] = []
    operators = {}
    for name, o in seen.operators.items():
        doubtful = _doubtful(o)
        if doubtful:
            notes += [
                f"{name}: {field} = {getattr(o, field)} cannot be true, ignored"
                for field in doubtful
            ]
            none: dict[str, Any] = dict.fromkeys(doubtful)
            o = dataclasses.replace(o, **none)
        operators[name] = o
    pools = {}
    for pool, slots in seen.pools.items():
        if not all(map(_believable_slot, slots)):
            notes.append(f"{pool}: CPU or load of some slots cannot be true, ignored")
            slots = tuple(map(_without_doubtful, slots))
        pools[pool] = slots
    queries = {}
    for name, q in seen.queries.items():
        if doubtful := _doubtful_of_query(q):
            notes += [f"{name}: {f} = {getattr(q, f)} cannot be true, ignored" for f in doubtful]
            gone: dict[str, Any] = dict.fromkeys(doubtful)
            q = dataclasses.replace(q, **gone)
        queries[name] = q
    groups = {name: values for name, values in seen.groups.items() if _believable_groups(values)}
    wrong = seen.groups.keys() - groups.keys()
    notes += [f"{name}: work by key group cannot be true, ignored" for name in sorted(wrong)]
    seen = dataclasses.replace(
        seen, operators=operators, pools=pools, queries=queries, groups=groups
    )
    return seen, tuple(notes)


def fresh(seen: Snapshot, max_age: float) -> tuple[Snapshot, tuple[str, ...]]:
    """The snapshot without the figures of queries whose newest reading is older than ``max_age``.

    One query's fresh batch does not vouch for another's. Their operators keep what they have.
    """
    old = {name: q.age for name, q in seen.queries.items() if q.age is not None and q.age > max_age}
    if not old or len(seen.queries) == 1:  # of a single one the whole snapshot is old
        return seen, ()
    operators = {
        name: OperatorSeen(parallelism=o.parallelism) if name.partition("/")[0] in old else o
        for name, o in seen.operators.items()
    }
    notes = tuple(
        f"{name}: its figures are {age:.0f} s old, at most {max_age:.0f} s allowed, ignored"
        for name, age in old.items()
    )
    return dataclasses.replace(seen, operators=operators), notes


class Doubt(NamedTuple):
    """Why a snapshot cannot be used: in one word, and in a sentence."""

    term: Literal["time", "repeated", "stale", "no-slots", "parallelism"]
    why: str


def unusable(seen: Snapshot, last_seen: float | None, max_age: float) -> Doubt | None:
    """Why nothing can be decided on a snapshot at all; ``None`` if something can."""
    if not (-inf < seen.time < inf and 0.0 < seen.window < inf):
        return Doubt("time", f"time {seen.time} or window {seen.window} s is not a measurement")
    if last_seen is not None and seen.time <= last_seen:
        why = f"stale: time {seen.time:.1f} is not after the last snapshot's {last_seen:.1f}"
        return Doubt("repeated", why)
    if not (0.0 <= seen.age <= max_age):
        old, most = f"{seen.age:.0f} s old", f"at most {max_age:.0f} s allowed"
        return Doubt("stale", f"stale: the newest reading is {old}, {most}")
    if not all(map(seen.pools.get, seen.pipeline.pools)):
        missing = [pool for pool in seen.pipeline.pools if not seen.pools.get(pool)]
        return Doubt("no-slots", f"no slot is known of {', '.join(missing)}")
    strange = []
    for name, o in seen.operators.items():
        if not 0.0 <= o.parallelism <= MOST_RECORDS:
            strange.append(f"{name} ({o.parallelism})")
    if strange:
        why = f"the parallelism of {', '.join(strange)} is not a measurement"
        return Doubt("parallelism", why)
    return None


def idle_for_sure(seen: Snapshot, name: str) -> bool:
    """Whether a source really has nothing to do, as opposed to not being measured.

    A zero alone may be a metric that broke. Three readings must agree: nothing is offered,
    nothing waits, and its slots were idle for practically the whole window.
    """
    o = seen.operators[name]
    return o.offered_rate == 0 and o.lag == 0 and o.idle is not None and o.idle >= 0.98


def _in(value: float | None, most: float) -> bool:
    return value is None or 0 <= value <= most  # false for NaN


def _all_believable(seen: Snapshot) -> bool:
    """The common case, fast: this reads every operator and every slot at every tick.

    Says the same as ``_doubtful`` and ``_believable_slot``, without a call for each reading.
    """
    for o in seen.operators.values():
        if (
            ((v := o.offered_rate) is not None and not 0.0 <= v <= MOST_RECORDS)
            or ((v := o.arrival_rate) is not None and not 0.0 <= v <= MOST_RECORDS)
            or ((v := o.output_rate) is not None and not 0.0 <= v <= MOST_RECORDS)
            or ((v := o.service_rate) is not None and not 0.0 < v <= MOST_RECORDS)
            or ((v := o.busy) is not None and not 0.0 <= v <= MOST_SHARE)
            or ((v := o.idle) is not None and not 0.0 <= v <= MOST_SHARE)
            or ((v := o.backpressured) is not None and not 0.0 <= v <= MOST_SHARE)
            or ((v := o.cpu) is not None and not 0.0 < v <= MOST_CPU)
            or ((v := o.buffer) is not None and not 0.0 <= v <= MOST_SHARE)
            or ((v := o.lag) is not None and not 0.0 <= v <= MOST_RECORDS)
            or ((v := o.latency) is not None and not 0.0 <= v <= MOST_RECORDS)
        ):
            return False
    for slots in seen.pools.values():
        for slot in slots:
            if (slot.cpu is not None or slot.load is not None) and not _believable_slot(slot):
                return False
    if seen.groups and not all(map(_believable_groups, seen.groups.values())):
        return False
    return not seen.queries or not any(map(_doubtful_of_query, seen.queries.values()))


def _doubtful_of_query(query: QuerySeen) -> list[str]:
    doubtful = []
    for name, most in _OF_QUERY.items():
        value = getattr(query, name)
        values = value if isinstance(value, tuple) else (value,)
        if not all(_in(v, most) for v in values):
            doubtful.append(name)
    return doubtful


def _believable_groups(values: tuple[float, ...]) -> bool:
    return all(_in(value, MOST_RECORDS) for value in values)


def _doubtful(o: OperatorSeen) -> list[str]:
    return [
        field
        for field, value, most in zip(_BOUNDS, _READ(o), _LIMITS, strict=True)
        if not _in(value, most) or (value == 0 and field in _NEVER_ZERO)
    ]


def _believable_slot(slot: Slot) -> bool:
    return slot.cpu != 0 and _in(slot.cpu, MOST_CPU) and _in(slot.load, MOST_SHARE)


def _without_doubtful(slot: Slot) -> Slot:
    return dataclasses.replace(
        slot,
        cpu=slot.cpu if slot.cpu and _in(slot.cpu, MOST_CPU) else None,
        load=slot.load if _in(slot.load, MOST_SHARE) else None,
    )
