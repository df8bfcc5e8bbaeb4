"""Every run of the Gesscale experiments, by name."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.papers.gesscale.simulated import published
from penstock.papers.gesscale.simulated.setups import MAIN, SETUPS, Setup


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A policy in a set-up."""

    setup: str
    policy: str

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.setup}-{self.policy}"

    @property
    def how(self) -> Setup:
        """The set-up itself."""
        return SETUPS[self.setup]


def of(setup: str = MAIN.name) -> list[Cell]:
    """The four policies in a set-up."""
    return [Cell(setup=setup, policy=policy) for policy in published.NAMES]


def all_cells(*, extended: bool = False) -> list[Cell]:
    """Table III, then the other set-ups; ``extended`` also ``gesscale+`` in the first."""
    more = [Cell(setup=MAIN.name, policy=published.PLUS)] if extended else []
    return [cell for setup in SETUPS for cell in of(setup)] + more
