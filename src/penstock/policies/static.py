"""Static: a fixed size, the baseline that every auto-scaler has to beat."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.core.model import Need, Proposal, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """Every pool has ``slots`` slots; without it, every pool stays as it is.

    >>> Static(slots=4)
    Static(slots=4)
    """

    slots: int | None = None

    def __post_init__(self) -> None:
        if self.slots is not None and self.slots < 1:
            raise InputError(f"static: slots = {self.slots} must be ≥ 1")

    def start(self, seed: int) -> None:
        """No memory."""
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        """The same size, whatever is seen."""
        if self.slots is None:
            return Proposal(reason="the size is fixed as it is"), None
        needs = {pool: Need(slots=self.slots) for pool in seen.pipeline.pools}
        return Proposal(pool_needs=needs, reason=f"the size is fixed at {self.slots}"), None
