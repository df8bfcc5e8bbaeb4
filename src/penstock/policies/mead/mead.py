"""MEAD: the least CPU that keeps a response time when arrivals come in bursts. [russo21]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.core.errors import InputError
from penstock.core.model import Proposal, Snapshot
from penstock.policies.mead.batched import like_process, poisson, renewal, under
from penstock.policies.mead.decision import Model, attempt
from penstock.policies.mead.demands import Demands, no_demands
from penstock.policies.mead.parameters import LEVELS, WINDOWS, terms_of
from penstock.policies.mead.response import by_kingman, by_mg1, by_process

MARKOVIAN = Model(queues=by_process, batches=under(like_process))
MG1 = Model(queues=by_mg1, batches=under(poisson))
KINGMAN = Model(queues=by_kingman, batches=under(renewal))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mead:
    """The lowest CPU shares with which R ≤ ``target`` on every path.              [russo21]

    R is the mean response time, or a ``percentile`` if that is above 0, of MAP/PH/1 queues under
    arrivals like the newest ``windows`` of them; the worst over these windows and up to ``maps``
    fits of each. A record takes 1/(share · service rate) on average, with the squared coefficient
    of variation ``service_scv``. The search stops where a step gains less than ``delta`` of the
    target. ``gradual``: at most one of the ``levels`` down at a time. Where full CPU is not
    enough, one slot more.

    >>> Mead(target=0.5).levels
    '0.4,0.55,0.7,0.85,1'
    """

    single_arrivals: ClassVar[bool] = True

    target: float = 0.3
    percentile: float = 0.0
    levels: str = LEVELS
    windows: str = WINDOWS
    maps: int = 5
    delta: float = 0.05
    service_scv: float = 0.5
    gradual: bool = False

    def __post_init__(self) -> None:
        if self.maps < 1:
            raise InputError(f"mead: maps = {self.maps} must be ≥ 1")
        terms_of("mead", self, self.percentile)

    def start(self, seed: int) -> Demands:
        """No demand is known yet."""
        return no_demands()

    def decide(self, seen: Snapshot, memory: Demands) -> tuple[Proposal, Demands]:
        """Shares by the search, or full CPU and why."""
        terms = terms_of("mead", self, self.percentile, self.maps)
        found = attempt(terms, MARKOVIAN, seen, memory)
        return found.proposal, found.demands


@dataclass(frozen=True, slots=True, kw_only=True)
class MeadMg1:
    """MEAD with M/G/1 queues: as if arrivals were independent and exponential. [russo21, §VII]

    Parameters as of ``mead``.
    """

    single_arrivals: ClassVar[bool] = True

    target: float = 0.3
    percentile: float = 0.0
    levels: str = LEVELS
    windows: str = WINDOWS
    delta: float = 0.05
    service_scv: float = 0.5
    gradual: bool = False

    def __post_init__(self) -> None:
        terms_of("mead-mg1", self, self.percentile)

    def start(self, seed: int) -> Demands:
        """No demand is known yet."""
        return no_demands()

    def decide(self, seen: Snapshot, memory: Demands) -> tuple[Proposal, Demands]:
        """Shares by the search, or full CPU and why."""
        found = attempt(terms_of("mead-mg1", self, self.percentile), MG1, seen, memory)
        return found.proposal, found.demands


@dataclass(frozen=True, slots=True, kw_only=True)
class MeadKingman:
    """MEAD with Kingman's formula: independent arrivals of any variability. [russo21, §VII]

    Parameters as of ``mead``; it knows means only.
    """

    single_arrivals: ClassVar[bool] = True

    target: float = 0.3
    levels: str = LEVELS
    windows: str = WINDOWS
    delta: float = 0.05
    service_scv: float = 0.5
    gradual: bool = False

    def __post_init__(self) -> None:
        terms_of("mead-kingman", self, 0.0)

    def start(self, seed: int) -> Demands:
        """No demand is known yet."""
        return no_demands()

    def decide(self, seen: Snapshot, memory: Demands) -> tuple[Proposal, Demands]:
        """Shares by the search, or full CPU and why."""
        found = attempt(terms_of("mead-kingman", self, 0.0), KINGMAN, seen, memory)
        return found.proposal, found.demands
