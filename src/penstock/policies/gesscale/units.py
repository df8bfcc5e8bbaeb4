"""Units: what is scaled as one, and whether it is at its limit. [arkian21, algorithm 1]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.core.model import OperatorSeen, Snapshot
from penstock.core.pipeline import Pipeline
from penstock.policies.signals.backlog import consumed_rate
from penstock.policies.signals.bottleneck import shares_add_up
from penstock.policies.signals.learned import supplied
from penstock.policies.signals.turns import pooled

HELD_BACK = 0.5  # share of time above which back pressure is high             [arkian21, II-B]
ALWAYS_BUSY = 0.02  # share of time not busy below which there is nothing to tell by it


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The operators of one pool: one operator, or all that share the slots.

    ``entries`` read from no other member, ``exits`` are read by none · ``above`` operators of other
    pools that the entries read from · ``below`` whether operators of other pools read from it.
    """

    pool: str
    members: tuple[str, ...]
    entries: tuple[str, ...]
    exits: tuple[str, ...]
    above: tuple[str, ...]
    below: bool

    @property
    def name(self) -> str:
        """The operator, where there is only one; else the pool."""
        return self.members[0] if len(self.members) == 1 else self.pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Whether a unit can do no more than it does, and the figure that says so, in words."""

    reached: bool
    why: str


def units_of(pipeline: Pipeline) -> tuple[Unit, ...]:
    """Every pool of a pipeline as a unit."""
    units = []
    for pool, members, _ in pipeline.shares:
        mine = set(members)
        entries = tuple(m for m in members if mine.isdisjoint(pipeline.upstream[m]))
        exits = tuple(m for m in members if mine.isdisjoint(pipeline.downstream[m]))
        above = dict.fromkeys(u for m in entries for u in pipeline.upstream[m])
        below = any(d not in mine for m in members for d in pipeline.downstream[m])
        units.append(
            Unit(
                pool=pool,
                members=members,
                entries=entries,
                exits=exits,
                above=tuple(above),
                below=below,
            )
        )
    return tuple(units)


def limit_of(seen: Snapshot, unit: Unit, threshold: float) -> Limit | None:
    """Whether a unit is at its limit; ``None`` if that was not measured.

    With operators above: all of them were held back for more than ``threshold`` of their time, and
    the unit itself was not. A source has none above; its queue stands for them: records waited in
    front of it during the whole window. A unit that is the whole pipeline, as on Spark: records
    waited for more than ``threshold`` of the time in which its slots did not work. Where there are
    no micro-batches slots work whenever records wait, so there a queue that never ends will do.
    """
    seen = pooled(seen)
    operators = [seen.operators.get(name) for name in (*unit.entries, *unit.exits, *unit.above)]
    if any(o is None or o.backpressured is None or not shares_add_up(o) for o in operators):
        return None
    if unit.above:
        return _root(seen, unit, threshold)
    if unit.below:
        return _fed(seen, unit, threshold)
    waited = _waited(seen, unit, threshold)
    if seen.execution == "micro-batch" or waited is None or waited.reached:
        return waited
    return _fed(seen, unit, threshold) or waited


def throughput_of(seen: Snapshot, unit: Unit) -> float | None:
    """CT: records/s that a unit took in; ``None`` if not measured."""
    return consumed_rate(seen, unit.entries)


def input_of(unit: Unit, demand: Mapping[str, float]) -> float | None:
    """IR: records/s that it would have to take in if nothing held them back; ``None``: not known.

    ``demand`` by operator, as ``demand_of`` tells it.
    """
    if not all(name in demand for name in unit.entries):
        return None
    return sum(demand[name] for name in unit.entries)


def _root(seen: Snapshot, unit: Unit, threshold: float) -> Limit:
    above = min(_held(seen, seen.operators[name]) for name in unit.above)
    itself = max(_held(seen, seen.operators[name]) for name in unit.exits)
    why = f"back pressure {above:.2f} upstream"
    if above > threshold and itself > threshold:
        why += f", {itself:.2f} of its own"
    return Limit(reached=above > threshold >= itself, why=why)


def _fed(seen: Snapshot, unit: Unit, threshold: float) -> Limit | None:
    sources = [seen.operators[name] for name in unit.entries]
    if any(o.lag is None or o.offered_rate is None or o.arrival_rate is None for o in sources):
        return None
    fed = any(supplied(seen, o) for o in sources)
    if unit.below:  # then it is held back by others, if it is
        fed = fed and max(_held(seen, seen.operators[name]) for name in unit.exits) <= threshold
    return Limit(
        reached=fed, why=f"{_lag(sources):,.0f} records are left, some waited all the time"
    )


def _waited(seen: Snapshot, unit: Unit, threshold: float) -> Limit | None:
    sources = [seen.operators[name] for name in unit.entries]
    known = [o for o in sources if o.lag is not None and o.idle is not None]
    behind = [o for o in known if o.lag]
    share = max(map(_waiting, behind), default=0.0)
    if share <= threshold and len(known) < len(sources):
        return None  # what waits at the others is not known
    why = f"records waited {share:.0%} of the time not busy, {_lag(known):,.0f} are left"
    return Limit(reached=share > threshold, why=why)


def _lag(sources: list[OperatorSeen]) -> float:
    return sum(o.lag or 0.0 for o in sources)


def _held(seen: Snapshot, o: OperatorSeen) -> float:
    """Share of time held back; of micro-batches the share of the time in which it did not work."""
    held = o.backpressured or 0.0
    if seen.execution != "micro-batch" or o.idle is None:
        return held
    rest = held + o.idle
    return held / rest if rest > ALWAYS_BUSY else 0.0


def _waiting(o: OperatorSeen) -> float:
    """The share of the time not busy in which records waited; all of it where there is none."""
    rest = (o.backpressured or 0.0) + (o.idle or 0.0)
    return (o.backpressured or 0.0) / rest if rest > ALWAYS_BUSY else 1.0
