"""Gesscale and ``gesscale+`` look on while somebody else scales: what each says of the next level.

The same for the simulator and for Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.core.errors import EngineError
from penstock.core.model import Proposal, Snapshot
from penstock.policies.gesscale.calibration import model_of as mst_of
from penstock.policies.gesscale.gesscale import Gesscale
from penstock.policies.gesscale.gesscale_plus import Forecast, GesscalePlus, Memory, forecasts
from penstock.policies.gesscale.moves import PERIOD

PARAMETERS = 3  # of Gesscale's model


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """What is said of one slot more on ``add_on``.

    gesscale, plus: records/s that Gesscale and ``gesscale+`` expect
    plus_width: half-width of the latter's 95 % interval
    """

    slots: int
    add_on: tuple[str, ...]
    gesscale: float | None
    plus: float
    plus_width: float

    @property
    def figures(self) -> dict[str, Any]:
        """What is kept of it beside what is measured then."""
        return {"gesscale": self.gesscale, "plus": self.plus, "plus_width": self.plus_width}


class Onlookers:
    """Both policies and their memories; ``period`` seconds between two looks."""

    def __init__(self, pool: str, seed: int, *, period: float = PERIOD) -> None:
        self._pool = pool
        self._gesscale, self._plus = Gesscale(period=period), GesscalePlus(period=period)
        self._simple, self._learnt = self._gesscale.start(seed), self._plus.start(seed)

    def look(self, seen: Snapshot) -> Proposal:
        """Both look; what Gesscale would do."""
        proposal, self._simple = self._gesscale.decide(seen, self._simple)
        _, self._learnt = self._plus.decide(seen, self._learnt)
        return proposal

    def foretell(self, seen: Snapshot) -> Foretold:
        """What both say of one slot more than there are, on the nearest free node."""
        more = one_more(seen, self._learnt, self._pool)
        delay = more.candidate.layout.delay
        known = self._simple["pools"].get(self._pool)
        mst = None if known is None else mst_of(known, PARAMETERS)
        return Foretold(
            slots=more.slots,
            add_on=more.candidate.add_on,
            gesscale=None if mst is None else mst.at(more.slots, delay),
            plus=more.rate,
            plus_width=more.half_width,
        )


def one_more(seen: Snapshot, memory: Memory, pool: str) -> Forecast:
    """What ``gesscale+`` expects of one slot more."""
    slots = seen.slots(pool) + 1
    for found in forecasts(seen, memory, pool):
        if found.slots == slots:
            return found
    raise EngineError(
        f"nothing is foretold of {slots} slots of {pool}: no node is free, or nothing was learnt"
    )
