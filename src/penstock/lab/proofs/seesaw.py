"""A policy that never rests: up to the top, down to one, and up again, whatever the load is."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.batches.snapshot import POOL
from penstock.core.model import Need, Proposal, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Seesaw:
    """Asks for ``top`` executors until they are there, then for one until the others are gone.

    Forces actions where it is the actions that are tried. Its memory is the direction.

    >>> Seesaw(top=4).start(0)
    'up'
    """

    top: int

    def start(self, seed: int) -> str:
        """Up first."""
        return "up"

    def decide(self, seen: Snapshot, memory: str) -> tuple[Proposal, str]:
        """The end of the way that it is on."""
        here = seen.slots(POOL)
        if here >= self.top:
            memory = "down"
        elif here <= 1:
            memory = "up"
        slots = self.top if memory == "up" else 1
        return Proposal(pool_needs={POOL: Need(slots=slots)}, reason=f"on its way {memory}"), memory
