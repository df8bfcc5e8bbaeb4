"""Static: a fixed size, the baseline that every auto-scaler has to beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.core.model import Need, Proposal, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """Every pool has ``slots`` slots; without it, every pool stays as it is.

    ``pools`` names sizes of single pools, which are then there from the beginning of a simulated
    run.

    >>> Static(pools="map=3 sink=1").sizes
    {'map': 3, 'sink': 1}
    """

    slots: int | None = None
    pools: str = ""

    def __post_init__(self) -> None:
        for text in self.pools.split():
            pool, equals, size = text.rpartition("=")
            if not (pool and equals and size.isdecimal() and int(size) >= 1):
                raise InputError(
                    f"static: pools = {self.pools!r}: {text!r} must look like map=3 (a size ≥ 1)"
                )
        if self.slots is not None and self.slots < 1:
            raise InputError(f"static: slots = {self.slots} must be ≥ 1")

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of ``pools``."""
        found = (text.rpartition("=") for text in self.pools.split())
        return {pool: int(size) for pool, _, size in found}

    def start(self, seed: int) -> None:
        """No memory."""
        return

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        """The same size, whatever is seen."""
        sizes = dict(self.sizes)
        if self.slots is not None:
            sizes = dict.fromkeys(seen.pipeline.pools, self.slots) | sizes
        needs = {p: Need(slots=n) for p, n in sizes.items() if p in seen.pipeline.pools}
        if not needs:
            return Proposal(reason="the size is fixed as it is"), None
        at = ", ".join(dict.fromkeys(str(need.slots) for need in needs.values()))
        return Proposal(pool_needs=needs, reason=f"the size is fixed at {at}"), None
