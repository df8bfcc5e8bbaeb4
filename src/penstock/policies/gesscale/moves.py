"""Moves: what becomes of each unit, and the proposal that they make together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.core.model import Need, Placement, Proposal, Snapshot
from penstock.network.placement import Draws, Step, drawn, leaving, ranked
from penstock.policies.gesscale.units import Unit
from penstock.policies.signals.backlog import stopped
from penstock.policies.signals.reason import NAMED

PERIOD = 60.0  # seconds between two looks                              [arkian21, IV-B]
EARLY = 0.05  # share of it by which a look may come too soon: loops are not exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A unit's new number of ``slots``, where (``None``: it stays as it is), and why.

    ``known`` whether its figures were there to decide on.
    """

    unit: Unit
    why: str
    slots: int | None = None
    place: Placement | None = None
    known: bool = True


def not_now(seen: Snapshot, looked: float | None, period: float) -> str | None:
    """Why this snapshot is not looked at; ``None`` if it is.

    Not more often than every ``period`` seconds, and not one whose window holds a rescale.
    """
    if stopped(seen):
        return "the window of this look holds a rescale"
    if looked is not None and 0.0 <= seen.time - looked < period * (1.0 - EARLY):
        return f"looked {seen.time - looked:.0f} s ago, every {period:.0f} s"
    return None


def proposal_of(seen: Snapshot, moves: Sequence[Move]) -> Proposal:
    """The moves as needs, places and one reason: of those that act, or why none does."""
    acting = [move for move in moves if move.slots is not None]
    needs: dict[str, Need] = {}
    pool_needs: dict[str, Need] = {}
    place: dict[str, Placement] = {}
    for move in acting:
        unit, need = move.unit, Need(slots=float(move.slots or 0))
        if len(unit.members) == 1:
            needs[unit.members[0]] = need
        else:
            pool_needs[unit.pool] = need
        if move.place is not None:
            place[unit.pool] = move.place
    words = [_words(seen, move) for move in acting or moves]
    more = f"; and {len(words) - NAMED} more" if len(words) > NAMED else ""
    reason = ("" if acting else "no change: ") + "; ".join(words[:NAMED]) + more
    term = "move" if acting else "no-move" if all(m.known for m in moves) else "not-measured"
    return Proposal(reason=reason, needs=needs, pool_needs=pool_needs, place=place, term=term)


def check_period(policy: str, period: float) -> None:
    """Refuse a time between looks that is none."""
    if not (math.isfinite(period) and period >= 0):
        raise InputError(f"{policy}: period = {period} s must be ≥ 0")


def _words(seen: Snapshot, move: Move) -> str:
    if move.slots is None:
        return f"{move.unit.name}: {move.why}"
    return f"{move.unit.name} {seen.slots(move.unit.pool)}→{move.slots}{move.why}"


class Nodes:
    """The free nodes of one decision; each is handed out once.

    ``aware`` chooses by the round trips between nodes, else at random. Where an engine tells no
    round trips (an unaware policy: no nodes), which to use is left to it.
    """

    def __init__(self, seen: Snapshot, draws: Draws, *, aware: bool) -> None:
        self._seen = seen
        self._aware = aware
        self._free = list(seen.free_nodes)
        self.draws = draws

    def candidates(self, pool: str) -> tuple[Step, ...] | None:
        """Free nodes for one more slot of a pool, best first; ``None``: the engine chooses."""
        rtt = self._seen.rtt
        if self._aware:
            if rtt is None:
                return None
            used = [node for node in nodes_of(self._seen, pool) if node in rtt]
            return ranked(rtt, used, [node for node in self._free if node in rtt])
        if rtt is None and not self._seen.free_nodes:
            return None
        return self._drawn(self._free)

    @property
    def none(self) -> str:
        """Why there is no candidate."""
        return "no free node is in the latency map" if self._free else "no node is free"

    def take(self, node: str) -> None:
        """From now on it is not free."""
        self._free.remove(node)

    def leavers(self, pool: str) -> Iterator[Step] | None:
        """Slots of a pool in the order in which to remove them; ``None``: the engine chooses."""
        rtt, slots = self._seen.rtt, self._seen.pools[pool]
        if self._aware:
            if rtt is None or unknown_nodes(self._seen, pool):
                return None
            return leaving(rtt, [(slot.id, slot.node) for slot in slots])
        if rtt is None and not self._seen.free_nodes:
            return None
        return iter(self._drawn([slot.id for slot in slots])[:-1])

    def _drawn(self, names: list[str]) -> tuple[Step, ...]:
        chosen, self.draws = drawn(names, self.draws)
        return tuple(Step(name=name) for name in chosen)


def nodes_of(seen: Snapshot, pool: str) -> list[str]:
    """The nodes that the slots of a pool are on."""
    return [slot.node for slot in seen.pools[pool]]


def unknown_nodes(seen: Snapshot, pool: str) -> tuple[str, ...]:
    """Nodes of a pool that the latency map does not know; none where there is no map."""
    if seen.rtt is None:
        return ()
    return tuple(dict.fromkeys(n for n in nodes_of(seen, pool) if n not in seen.rtt))


def delay_of(seen: Snapshot, pool: str) -> float | None:
    """NDmax, the greatest round trip among a pool's nodes; 0 without a map, ``None``: not known."""
    if seen.rtt is None:
        return 0.0
    if unknown_nodes(seen, pool):
        return None
    return seen.rtt.worst(nodes_of(seen, pool))


def farther(before: float | None, after: float | None) -> str:
    """How the greatest round trip changes, for a person.

    >>> farther(0.14, 0.18)
    ' (+40 ms → 180 ms at most)'
    """
    if before is None or after is None:
        return ""
    return f" ({(after - before) * 1e3:+.0f} ms → {after * 1e3:.0f} ms at most)"


def rate_words(value: float) -> str:
    """Records/s for a person.

    >>> rate_words(12345.6), rate_words(1.2345)
    ('12,346', '1.23')
    """
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
