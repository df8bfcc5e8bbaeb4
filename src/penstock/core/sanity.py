"""Which readings can be believed.

Everything a policy sees has passed through here, so a policy only has to know that a value may
be missing. A reading that cannot be true becomes ``None`` (*not measured*), and a snapshot that
is stale as a whole is not shown to the policy at all.
"""

from __future__ import annotations

import dataclasses
import operator
from math import inf
from typing import Any, Literal, NamedTuple, get_args

from penstock.core.facts import PoolFacts
from penstock.core.findings import TriggerKind
from penstock.core.model import OperatorSeen, QuerySeen, Slot, Snapshot, SourceSeen

MOST_RECORDS = 1e15  # more than any cluster moves in a second, or holds
MOST_SHARE = 1.05  # shares of time may overshoot by clock jitter
MOST_CORES = 1e5  # of one executor
MOST_JOIN = 86400.0  # seconds that a new slot takes to be there: not a day
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
_WORDS = {"trigger_kind": get_args(TriggerKind)}
_OF_QUERY = {
    f.name: MOST_SHARE if f.name in _SHARES else MOST_RECORDS
    for f in dataclasses.fields(QuerySeen)
    if f.default is None and f.name not in _WORDS  # the others are always known
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
            if "sources" in gone:
                gone["sources"] = ()
            q = dataclasses.replace(q, **gone)
        if not all(map(_believable_limits, q.sources)):
            notes.append(f"{name}: the limits of some sources cannot be true, ignored")
            q = dataclasses.replace(q, sources=tuple(map(_without_limits, q.sources)))
        queries[name] = q
    facts = {}
    for pool, known in seen.facts.items():
        if wrong_facts := _doubtful_facts(known):
            notes.append(f"{pool}: {', '.join(wrong_facts)} cannot be true, ignored")
            unknown: dict[str, Any] = dict.fromkeys(wrong_facts)
            known = dataclasses.replace(known, **unknown)
        facts[pool] = known
    groups = {name: values for name, values in seen.groups.items() if _believable_groups(values)}
    wrong = seen.groups.keys() - groups.keys()
    notes += [f"{name}: work by key group cannot be true, ignored" for name in sorted(wrong)]
    seen = dataclasses.replace(
        seen, operators=operators, pools=pools, queries=queries, groups=groups, facts=facts
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
    if seen.facts and any(map(_doubtful_facts, seen.facts.values())):
        return False
    for query in seen.queries.values():
        if _doubtful_of_query(query) or not all(map(_believable_limits, query.sources)):
            return False
    return True


def _doubtful_of_query(query: QuerySeen) -> list[str]:
    doubtful = []
    for name, most in _OF_QUERY.items():
        value = getattr(query, name)
        values = value if isinstance(value, tuple) else (value,)
        if not all(_in(v, most) for v in values):
            doubtful.append(name)
    for name, known in _WORDS.items():
        value = getattr(query, name)
        if value is not None and value not in known:
            doubtful.append(name)
    if not all(_believable_source(source) for source in query.sources):
        doubtful.append("sources")
    return doubtful


def _believable_source(source: SourceSeen) -> bool:
    values = (source.lag, source.lag_seconds, *source.partitions.values())
    return all(_in(value, MOST_RECORDS) for value in values)


def _doubtful_facts(facts: PoolFacts) -> list[str]:
    """Fields that cannot be true; limits that contradict each other both."""
    doubtful = []
    if facts.cores is not None and not 1 <= facts.cores <= MOST_CORES:
        doubtful.append("cores")
    least, most = facts.minimum, facts.maximum
    if not (_in(least, MOST_RECORDS) and _in(most, MOST_RECORDS)) or (
        least is not None and most is not None and least > most
    ):
        doubtful += ["minimum", "maximum"]
    if facts.join is not None and not 0 <= facts.join.seconds <= MOST_JOIN:
        doubtful.append("join")
    return doubtful


def _believable_limits(source: SourceSeen) -> bool:
    return all(_in(v, MOST_RECORDS) for v in (source.most_rows, source.most_files)) and _in(
        source.most_bytes, MOST_RECORDS
    )


def _without_limits(source: SourceSeen) -> SourceSeen:
    if _believable_limits(source):
        return source
    return dataclasses.replace(source, most_rows=None, most_files=None, most_bytes=None)


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
