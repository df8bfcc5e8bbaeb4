"""Every run of the study, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.papers.geo.simulated import published
from penstock.simulator.geo import GeoSpec
from penstock.simulator.geo.setups import DELAY, Case, study_spec

Scaler = Literal["levels", "gesscale", "gesscale+"]
CASES: tuple[Case, ...] = ("none", "fixed", "jitter")
HALF, MOST = 0.5, 0.7  # of the nodes get their packets late: Figures 7 to 9, Figure 10
FAR = 0.05  # seconds, the other delay of Figure 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A job on a network: ``delayed`` of the nodes get their packets ``delay`` seconds late."""

    job: str
    case: Case
    delayed: float = HALF
    delay: float = DELAY

    @property
    def key(self) -> str:
        """A name for files."""
        if self.delayed == HALF:
            return f"{self.job}-{self.case}"
        return f"{self.job}-{self.case}-{100 * self.delayed:.0f}-{1e3 * self.delay:.0f}ms"

    @property
    def words(self) -> str:
        """The network in words, for a table."""
        if self.delayed == HALF:
            return published.CASES[self.case]
        return f"{1e3 * self.delay:.0f} ms on {self.delayed:.0%}"

    def spec(self, seed: int) -> GeoSpec:
        """The set-up of the simulator."""
        return study_spec(self.job, self.case, delayed=self.delayed, delay=self.delay, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeoCell:
    """A condition with every level of parallelism in turn, or with an auto-scaler."""

    condition: Condition
    scaler: Scaler

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.condition.key}-{self.scaler}"


def studied() -> list[Condition]:
    """Figures 6 to 9: three jobs, three networks."""
    return [Condition(job=job, case=case) for job in published.JOBS for case in CASES]


def mostly_delayed() -> list[Condition]:
    """Figure 10: 70 % of the nodes are delayed, by 25 or by 50 ms."""
    return [
        Condition(job="id-id", case="fixed", delayed=MOST, delay=delay) for delay in (DELAY, FAR)
    ]


def all_cells() -> list[GeoCell]:
    """All levels, Gesscale and ``gesscale+`` under all conditions."""
    scalers: tuple[Scaler, ...] = ("levels", "gesscale", "gesscale+")
    return [
        GeoCell(condition=condition, scaler=scaler)
        for condition in [*studied(), *mostly_delayed()]
        for scaler in scalers
    ]


def of(job: str, case: Case) -> Condition:
    """A condition of Figures 6 to 9."""
    return Condition(job=job, case=case)
