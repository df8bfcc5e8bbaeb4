"""MEAD: the least CPU that keeps a response time when arrivals come in bursts. [russo21]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from penstock.core.errors import InputError, unknown
from penstock.core.model import Proposal, Snapshot
from penstock.policies.mead.batched import like_process, poisson, renewal, under
from penstock.policies.mead.decision import Model, attempt
from penstock.policies.mead.demands import Demands, no_demands
from penstock.policies.mead.parameters import LEVELS, WINDOWS, Terms, terms_of
from penstock.policies.mead.response import by_kingman, by_mg1, by_process

ModelName = Literal["map", "mg1", "kingman"]
MODELS: Mapping[ModelName, Model] = {
    "map": Model(queues=by_process, batches=under(like_process)),
    "mg1": Model(queues=by_mg1, batches=under(poisson)),
    "kingman": Model(queues=by_kingman, batches=under(renewal)),
}
MAPS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Mead:
    """The lowest CPU shares with which R ≤ ``target`` on every path.              [russo21]

    R is the mean response time, or a ``percentile`` if that is above 0, of MAP/PH/1 queues under
    arrivals like the newest ``windows`` of them; the worst over these windows and up to ``maps``
    fits of each. A record takes 1/(share · service rate) on average, with the squared coefficient
    of variation ``service_scv``. The search stops where a step gains less than ``delta`` of the
    target. ``gradual``: at most one of the ``levels`` down at a time. Where full CPU is not
    enough, one slot more. With another ``model`` of the queues it is ``mead-mg1`` or
    ``mead-kingman``.

    >>> Mead(target=0.5).levels
    '0.4,0.55,0.7,0.85,1'
    """

    single_arrivals: ClassVar[bool] = True

    target: float = 0.3
    percentile: float = 0.0
    levels: str = LEVELS
    windows: str = WINDOWS
    maps: int = MAPS
    delta: float = 0.05
    service_scv: float = 0.5
    gradual: bool = False
    model: ModelName = "map"

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise unknown("model of mead", self.model, MODELS)
        if self.maps < 1:
            raise InputError(f"mead: maps = {self.maps} must be ≥ 1")
        if self.model != "map" and self.maps != MAPS:
            raise InputError(f"{self._name}: maps = {self.maps} says nothing, no process is fitted")
        if self.model == "kingman" and self.percentile:
            raise InputError(f"{self._name}: percentile = {self.percentile} must be 0, the mean")
        self._terms()

    def start(self, seed: int) -> Demands:
        """No demand is known yet."""
        return no_demands()

    def decide(self, seen: Snapshot, memory: Demands) -> tuple[Proposal, Demands]:
        """Shares by the search, or full CPU and why."""
        found = attempt(self._terms(), MODELS[self.model], seen, memory)
        return found.proposal, found.demands

    @property
    def _name(self) -> str:
        return "mead" if self.model == "map" else f"mead-{self.model}"

    def _terms(self) -> Terms:
        maps = self.maps if self.model == "map" else 1
        return terms_of(self._name, self, self.percentile, maps)


MeadMg1 = partial(Mead, model="mg1")
MeadMg1.__doc__ = """
MEAD with M/G/1 queues: as if arrivals were independent and exponential. [russo21, §VII]

Parameters as of ``mead``.
"""

MeadKingman = partial(Mead, model="kingman")
MeadKingman.__doc__ = """
MEAD with Kingman's formula: independent arrivals of any variability. [russo21, §VII]

Parameters as of ``mead``; it knows means only.
"""
