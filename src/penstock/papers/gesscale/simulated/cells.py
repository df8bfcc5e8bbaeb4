"""Every run of the Gesscale experiments, by name."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.papers.gesscale.simulated import published
from penstock.papers.gesscale.simulated.setups import MAIN, SETUPS, FogSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class GesscaleCell:
    """A policy in a set-up."""

    setup: str
    policy: str

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.setup}-{self.policy}"

    @property
    def how(self) -> FogSetup:
        """The set-up itself."""
        return SETUPS[self.setup]


def of(setup: str = MAIN.name) -> list[GesscaleCell]:
    """The four policies in a set-up."""
    return [GesscaleCell(setup=setup, policy=policy) for policy in published.NAMES]


def all_cells(*, extended: bool = False) -> list[GesscaleCell]:
    """Table III, then the other set-ups; ``extended`` also ``gesscale+`` in the first."""
    more = [GesscaleCell(setup=MAIN.name, policy=published.PLUS)] if extended else []
    return [cell for setup in SETUPS for cell in of(setup)] + more
