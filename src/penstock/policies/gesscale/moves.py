"""Moves: what becomes of each unit, and the proposal that they make together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.core.model import Need, Placement, Proposal, Snapshot
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
    return Proposal(reason=reason, needs=needs, pool_needs=pool_needs, place=place)


def check_period(policy: str, period: float) -> None:
    """Refuse a time between looks that is none."""
    if not (math.isfinite(period) and period >= 0):
        raise InputError(f"{policy}: period = {period} s must be ≥ 0")


def _words(seen: Snapshot, move: Move) -> str:
    if move.slots is None:
        return f"{move.unit.name}: {move.why}"
    return f"{move.unit.name} {seen.slots(move.unit.pool)}→{move.slots}{move.why}"
