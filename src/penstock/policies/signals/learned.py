"""What windows teach about operators: how busy a full one reads, how fast it is, what it passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict

from penstock.core.model import OperatorSeen, Snapshot
from penstock.policies.signals.backlog import stopped
from penstock.policies.signals.bottleneck import BACKPRESSURED, shares_add_up
from penstock.policies.signals.turns import pooled

NEW = 0.3  # weight of a new reading against all older ones
PASSED = 0.9  # weight of the records of one window against those of the next
NEVER_IDLE = 0.05  # idle share below which an operator that is held back is held back throughout
MOMENTS = 0.2  # back-pressured share up to which it is held back for moments only
QUEUE = 1.0  # seconds of work in front of a source that keep it supplied


class Learned(TypedDict):
    """What is known of one operator.

    ``ceiling`` its busy share when it could do no more · ``rate`` μ, records/s of one slot while
    busy · ``taken``, ``sent`` records, the older the less they count.
    """

    ceiling: float | None
    rate: float | None
    taken: float
    sent: float


def learn(seen: Snapshot, memory: Mapping[str, Learned]) -> dict[str, Learned]:
    """What is known after one more window; nothing is learned from one with a rescale in it."""
    learned: dict[str, Learned] = {}
    seen = pooled(seen)
    blind = stopped(seen)
    full = set() if blind else saturated(seen)
    for name, o in seen.operators.items():
        old = memory.get(name) or Learned(ceiling=None, rate=None, taken=0.0, sent=0.0)
        if blind:
            learned[name] = old
            continue
        ceiling, taken, sent = old["ceiling"], old["taken"], old["sent"]
        if o.busy and (name in full or (ceiling is not None and o.busy > ceiling)):
            ceiling = min(1.0, blend(ceiling, o.busy))
        if o.arrival_rate is not None and o.output_rate is not None:
            taken = PASSED * taken + o.arrival_rate * seen.window
            sent = PASSED * sent + o.output_rate * seen.window
        rate = blend(old["rate"], o.service_rate) if o.service_rate else old["rate"]
        learned[name] = Learned(ceiling=ceiling, rate=rate, taken=taken, sent=sent)
    return learned


def saturated(seen: Snapshot) -> set[str]:
    """The operators that could not have done more in this window.

    Records waited in front of them throughout (of a source: in its queue; of others: the
    operator above was held back all the time), and nothing below held them back but for
    moments. Where back pressure was not measured nothing is said.
    """
    full = set()
    seen = pooled(seen)  # slots that are shared can do no more, not a stage that has its turn
    for name, o in seen.operators.items():
        if o.backpressured is None or o.backpressured > MOMENTS or not shares_add_up(o):
            continue
        above = seen.pipeline.upstream[name]
        waits = any(map(_held, map(seen.operators.get, above))) if above else supplied(seen, o)
        if waits and not _held(o):
            full.add(name)
    return full


def steadied(seen: Snapshot, learned: Mapping[str, Learned], ceiling: float = 1.0) -> Snapshot:
    """The snapshot with the service rates that a full slot reaches, and steady outputs.

    Service rate: μ · κ, κ the ceiling learned, or ``ceiling`` until it is. Output: arrival times
    what the operator passed on over many windows, so that a window which fires once a minute does
    not read 0 three times and then four times too much. Where nothing arrived (below a window
    that has not fired) the rate is remembered; where it was not measured it is not known.
    """
    operators = {}
    for name, o in seen.operators.items():
        known = learned.get(name)
        if known is None:
            operators[name] = o
            continue
        rate, output = o.service_rate, o.output_rate
        if known["rate"] and (rate or o.arrival_rate == 0.0):
            rate = known["rate"] * (known["ceiling"] or ceiling)
        if output is not None and o.arrival_rate and known["taken"]:
            output = o.arrival_rate * known["sent"] / known["taken"]
        operators[name] = replace(o, service_rate=rate, output_rate=output)
    return replace(seen, operators=operators)


def blend(old: float | None, new: float) -> float:
    """Old and new reading in one; the new one alone if it is the first."""
    return new if old is None else old + NEW * (new - old)


def load_of(
    demand: Mapping[str, float], cost: Mapping[str, float], scale: float
) -> dict[str, float]:
    """Slots that each operator would keep busy all the time: demand · scale · cost, where known.

    ``cost`` slots kept busy by one record/s. Without demand there is no load, at any cost.
    """
    load: dict[str, float] = {}
    for name, rate in demand.items():
        if rate == 0.0:
            load[name] = 0.0
        elif name in cost:
            load[name] = rate * scale * cost[name]
    return load


def _held(o: OperatorSeen | None) -> bool:
    """Whether an operator was held back from below all the time."""
    return (
        o is not None
        and o.backpressured is not None
        and o.idle is not None
        and o.backpressured > BACKPRESSURED
        and o.idle < NEVER_IDLE
        and shares_add_up(o)
    )


def supplied(seen: Snapshot, o: OperatorSeen) -> bool:
    """Whether a source had records waiting throughout, more than a second of its work."""
    if o.lag is None or o.offered_rate is None or not o.arrival_rate:
        return False
    before = o.lag - (o.offered_rate - o.arrival_rate) * seen.window
    return min(before, o.lag) > QUEUE * o.arrival_rate
