"""One decision by two thresholds of CPU: a slot more, a slot less, or none. [arkian21, V-A]"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from penstock.core.errors import InputError
from penstock.core.model import Placement, Proposal, Snapshot
from penstock.network.placement import Draws, first_draw
from penstock.policies.gesscale.moves import (
    PERIOD,
    Move,
    Nodes,
    check_period,
    delay_of,
    farther,
    not_now,
    proposal_of,
)
from penstock.policies.gesscale.units import Unit, units_of
from penstock.policies.signals.cpu import pool_cpu

HIGH, LOW = 0.9, 0.5  # CPU shares


class Memory(TypedDict):
    """When a snapshot was last looked at, and random choices so far."""

    looked: float | None
    draws: Draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """CPU > ``high``: n + 1; CPU < ``low``: n − 1.                         [arkian21, V-A]

    CPU is the mean share of their allowance that the slots of a pool used. Nodes are chosen by
    latency where it is ``aware`` of them, else at random. It looks every ``period`` seconds.
    """

    high: float = HIGH
    low: float = LOW
    period: float = PERIOD
    aware: bool = True

    def __post_init__(self) -> None:
        name = "thr-nlaware" if self.aware else "thr-nlunaware"
        if not 0.0 < self.low < self.high <= 1.0:
            raise InputError(f"{name}: 0 < low {self.low} < high {self.high} ≤ 1 must hold")
        check_period(name, self.period)

    def start(self, seed: int) -> Memory:
        """No choice made yet."""
        return {"looked": None, "draws": first_draw(seed)}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """At most one slot more or less for every pool."""
        why = not_now(seen, memory["looked"], self.period)
        if why is not None:
            return Proposal(reason=f"no change: {why}"), memory
        nodes = Nodes(seen, memory["draws"], aware=self.aware)
        moves = [_move(self, seen, unit, nodes) for unit in units_of(seen.pipeline)]
        looked = seen.time if any(move.known for move in moves) else memory["looked"]
        return proposal_of(seen, moves), {"looked": looked, "draws": nodes.draws}


ThrNlaware = partial(Thresholds, aware=True)
ThrNlaware.__doc__ = """
CPU > ``high``: n + 1; CPU < ``low``: n − 1; nodes by latency.       [arkian21, V-A]

As ``thr-nlunaware``, but the node to add is the one with the least latency to the others, and
the slot to remove the one with the greatest.
"""

ThrNlunaware = partial(Thresholds, aware=False)
ThrNlunaware.__doc__ = """
CPU > ``high``: n + 1; CPU < ``low``: n − 1; nodes at random.        [arkian21, V-A]

CPU is the mean share of their allowance that the slots of a pool used. It looks every
``period`` seconds.
"""


def _move(policy: Thresholds, seen: Snapshot, unit: Unit, nodes: Nodes) -> Move:
    slots = seen.slots(unit.pool)
    cpu = pool_cpu(seen, unit.pool) if slots else None
    if not cpu:  # a running slot never reads exactly zero: then it was not measured
        return Move(unit=unit, why="CPU not measured", known=False)
    if cpu > policy.high:
        return _up(seen, unit, nodes, f"CPU {cpu:.1%}, above {policy.high:.0%}")
    if cpu >= policy.low:
        return Move(unit=unit, why=f"CPU {cpu:.1%}, between {policy.low:.0%} and {policy.high:.0%}")
    why = f"CPU {cpu:.1%}, below {policy.low:.0%}"
    if slots == 1:
        return Move(unit=unit, why=f"{why}; one slot is the least")
    return _down(seen, unit, nodes, why)


def _up(seen: Snapshot, unit: Unit, nodes: Nodes, why: str) -> Move:
    slots = seen.slots(unit.pool) + 1
    steps = nodes.candidates(unit.pool)
    if steps is None:
        return Move(unit=unit, slots=slots, why=f": {why}")
    if not steps:
        return Move(unit=unit, why=f"{why}; {nodes.none}")
    best = steps[0]
    nodes.take(best.name)
    where = f" on {best.name}{farther(delay_of(seen, unit.pool), best.worst)}"
    place = Placement(add_on=(best.name,))
    return Move(unit=unit, slots=slots, place=place, why=f"{where}: {why}")


def _down(seen: Snapshot, unit: Unit, nodes: Nodes, why: str) -> Move:
    slots = seen.slots(unit.pool) - 1
    leavers = nodes.leavers(unit.pool)
    if leavers is None:
        return Move(unit=unit, slots=slots, why=f": {why}")
    gone = next(leavers)
    node = next(slot.node for slot in seen.pools[unit.pool] if slot.id == gone.name)
    where = f" without {node}{farther(delay_of(seen, unit.pool), gone.worst)}"
    place = Placement(remove=(gone.name,))
    return Move(unit=unit, slots=slots, place=place, why=f"{where}: {why}")
