"""What to run, where, and how long to wait for whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.core.errors import InputError
from penstock.lab.agents.pipeline.operators import Pipeline
from penstock.lab.agents.pipeline.sites import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run of agents.

    ``most`` instances that a site can hold · ``patience`` seconds of silence after which a peer is
    dialled again · ``grace`` seconds after the load within which everything must be done · ``kill``
    which instance is killed half-way: any but a keeper, a keeper, or none.
    """

    pipeline: Pipeline = field(default_factory=Pipeline)
    sites: tuple[Site, ...] = (Site(),)
    seed: int = 0
    most: int = 100
    patience: float = 5.0
    grace: float = 120.0
    kill: Literal["any", "keeper"] | None = None

    def __post_init__(self) -> None:
        first = sum(self.pipeline.sizes.values())
        if not self.sites:
            raise InputError("a run needs a site; 127.0.0.1 is one")
        if self.most * len(self.sites) < first:
            raise InputError(
                f"{first} instances at the start, but room for {self.most} at each of "
                f"{len(self.sites)} sites; give --most"
            )
        if not self.patience > 0.0 or not self.grace > 0.0:
            raise InputError(
                f"patience {self.patience} and grace {self.grace} must be above 0 seconds"
            )
