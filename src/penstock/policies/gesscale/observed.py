"""Observed: who is at the limit, back pressure or not, and what a window says of a pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.capacity.exchange import Exchange
from penstock.capacity.learning import learn, teaches
from penstock.capacity.readings import Reading, remember
from penstock.core.codec import from_json, to_json
from penstock.core.model import Snapshot
from penstock.policies.gesscale.calibration import Foretold
from penstock.policies.gesscale.layouts import Layouts
from penstock.policies.gesscale.units import ALWAYS_BUSY, HELD_BACK, Unit, limit_of, throughput_of
from penstock.policies.signals.bottleneck import shares_add_up
from penstock.policies.signals.learned import supplied
from penstock.policies.signals.turns import pooled

WORKING = 0.9  # busy share of a source that is slow itself
BEHIND = 0.95  # of what is offered: a source that takes in less leaves records behind


def at_limit(seen: Snapshot, units: Sequence[Unit]) -> dict[str, str]:
    """Why a pool can do no more than it does, by pool, empty if it can; none that is not known.

    Those that back pressure points at can not. It points at nobody where slots wait for each other
    over the network [arsalane24, IV-C]: then records wait in front of a source all the time though
    nobody is held back, and what they wait for is the busiest of the units below (where nobody
    tells who is busy, one with state).
    """
    found: dict[str, str] = {}
    seen = pooled(seen)
    for unit in units:
        limit = limit_of(seen, unit, HELD_BACK)
        if limit is None:
            continue
        idles = not unit.above and unit.below and _busy(seen, unit) < WORKING
        found[unit.pool] = limit.why if limit.reached and not idles else ""
    below = [unit for unit in units if unit.above and unit.pool in found]
    if below and not any(found.values()) and any(_waits_at(seen, n) for n in seen.pipeline.sources):
        slowest = max(below, key=lambda unit: (_busiest(seen, unit), _stateful(seen, unit)))
        held = max(seen.operators[name].backpressured or 0.0 for name in slowest.above)
        found[slowest.pool] = f"records waited all the time, though back pressure is {held:.2f}"
    return found


def reading_of(seen: Snapshot, unit: Unit, layouts: Layouts, *, full: bool) -> Reading | None:
    """What a pool did in the window; ``None`` where throughput or round trips are not known."""
    seen = pooled(seen)
    rate = throughput_of(seen, unit)
    if not rate or not layouts.known:
        return None
    layout = layouts.here()
    loads = _loads(seen, unit)
    if not loads:
        return Reading(layout=layout, rate=rate, full=full)
    beside = frozenset(layouts.hosts)
    hosts = [load for i, load in enumerate(loads) if i in beside]
    rest = [load for i, load in enumerate(loads) if i not in beside]
    total = sum(loads)
    batched = seen.execution == "micro-batch"  # then slots take turns
    last = layout.rest * total if batched else max(loads)
    return Reading(
        layout=layout,
        rate=rate,
        full=full,
        busiest=min(1.0, last),
        host=max(hosts, default=None),
        rest=sum(rest) if rest else None,
        rest_share=max(0.0, 1.0 - layout.host * len(hosts)),
        source=_source(seen, unit) if hosts else None,
        waits=_waits(seen, unit) if full else None,
    )


def _loads(seen: Snapshot, unit: Unit) -> list[float]:
    """The load of every slot; the same for all where only the operator's busy time is known."""
    slots = seen.pools[unit.pool]
    loads = [slot.load for slot in slots if slot.load is not None]
    operators = [o for name in unit.members if (o := seen.operators.get(name)) is not None]
    if seen.execution == "micro-batch":  # not their loads: these depend on when a task ended
        busy = max((o.busy for o in operators if o.busy), default=0.0)
        return [busy] * len(slots) if busy else []
    if len(loads) == len(slots) and any(loads):
        return loads
    if len(operators) == 1 and operators[0].busy and shares_add_up(operators[0]):
        return [operators[0].busy] * len(slots)
    return []


def _busy(seen: Snapshot, unit: Unit) -> float:
    loads = _loads(seen, unit)
    return sum(loads) / len(loads) if loads else 0.0


def _busiest(seen: Snapshot, unit: Unit) -> float:
    return max(_loads(seen, unit), default=0.0)


def _stateful(seen: Snapshot, unit: Unit) -> bool:
    return any(seen.pipeline.operators[name].stateful for name in unit.members)


def _waits_at(seen: Snapshot, name: str) -> bool:
    """Whether records waited at a source throughout; by what it left behind if lag is not told."""
    o = seen.operators.get(name)
    if o is None or o.lag is not None:
        return o is not None and supplied(seen, o)
    return bool(o.offered_rate and o.arrival_rate and o.arrival_rate < BEHIND * o.offered_rate)


def _source(seen: Snapshot, unit: Unit) -> float | None:
    """Busy seconds per second of what hands records to a unit."""
    above = [seen.operators.get(name) for name in unit.above]
    if any(o is None or o.busy is None or not shares_add_up(o) for o in above):
        return None
    return sum((o.busy or 0.0) * o.parallelism for o in above if o is not None)


def _waits(seen: Snapshot, unit: Unit) -> float | None:
    """The share that nobody held them, of the time in which the operators above did not work."""
    above = [seen.operators.get(name) for name in unit.above]
    if seen.execution == "micro-batch" or not above:
        return None
    idle = held = 0.0
    for o in above:
        if o is None or o.idle is None or o.backpressured is None or not shares_add_up(o):
            return None
        idle, held = idle + o.idle, held + o.backpressured
    return idle / (idle + held) if idle + held > ALWAYS_BUSY else None


class Experience(Foretold):
    """What windows have taught of a pool, and how well sizes that had not been seen were foretold.

    ``readings`` of the pool, the last renewed last.
    """

    readings: list[Any]


def no_experience() -> Experience:
    """The experience before the first window."""
    return {"readings": [], "count": 0, "compared": 0, "error": 0.0}


def readings_of(known: Experience) -> tuple[Reading, ...]:
    """The readings that were kept, as values."""
    return tuple(from_json(Reading, row) for row in known["readings"])


def sizes_tried(known: Experience) -> frozenset[int]:
    """Numbers of slots with which the pool could do no more."""
    return frozenset(r.layout.slots for r in readings_of(known) if r.full)


def model_of(seen: Snapshot, unit: Unit, known: Experience) -> Exchange | None:
    """The model of what was read; ``None`` while nothing teaches anything."""
    readings = tuple(filter(teaches, readings_of(known)))
    if not readings:
        return None
    return learn(readings, stateful=_stateful(seen, unit))


def with_reading(seen: Snapshot, unit: Unit, known: Experience, new: Reading) -> Experience:
    """One more, after the model of those before has been held against it.

    Only where the pool could do no more, with a number of slots that had not been seen.
    """
    readings = readings_of(known)
    compared, error = known["compared"], known["error"]
    if new.full and all(r.layout.slots != new.layout.slots for r in readings):
        model = model_of(seen, unit, known)
        if model is not None:
            compared += 1
            error += abs(model.at(new.layout) / new.rate - 1.0)
    return {
        "readings": [to_json(r) for r in remember(readings, new)],
        "count": known["count"] + 1,
        "compared": compared,
        "error": error,
    }
