"""The set-ups in which the four policies are compared: that of the paper's text, and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np

from penstock.core.guards import Guards
from penstock.papers.gesscale.simulated import published
from penstock.simulator.geo import GeoSpec
from penstock.simulator.geo.setups import FOG_RESTART, TAXI, fog_spec
from penstock.simulator.series import Floats
from penstock.simulator.spec import RescaleProfile
from penstock.workloads.trace import Trace

PERIOD = 60  # seconds between two looks                                  [arkian21, IV-B]
WARM_UP = 300.0  # seconds after a restart without a look, in the public code
LEAST = 2  # replicas, in the public code
NODES = 8
LOAD = Trace(file="taxi", scale=30.0, speed=10.0)  # three records per trip, ten times as fast
SECONDS = int(LOAD.duration)


@dataclass(frozen=True, slots=True, kw_only=True)
class FogSetup:
    """What differs from one set-up to the next.

    warm_up: seconds after a restart without a look; ``None``: none, a look every minute
    least, most: replicas
    downtime: seconds that a change stops the job for
    credit: factor on the records under way: half of it, and distance costs twice as much
    waiting_cpu: share of its CPU that a node uses while it waits for others
    """

    name: str
    words: str
    warm_up: float | None = None
    least: int = 1
    most: int = NODES
    downtime: float = FOG_RESTART.downtime
    credit: float = 1.0
    waiting_cpu: float = TAXI.waiting_cpu

    @property
    def guards(self) -> Guards:
        """The limits that hold for all policies."""
        bounds = Guards(minimum=self.least, maximum=self.most)
        if self.warm_up is None:
            return bounds
        return replace(bounds, cool_down=self.downtime + self.warm_up, sleep=True)

    def spec(self, seed: int) -> GeoSpec:
        """The fog of a seed."""
        spec = fog_spec(seed)
        profile = RescaleProfile(name=FOG_RESTART.name, downtime=self.downtime)
        credit = (TAXI.credit or 0.0) * self.credit
        job = replace(TAXI, credit=credit, waiting_cpu=self.waiting_cpu)
        return replace(spec, job=job, profile=profile)


MAIN = FogSetup(name="text", words="as in the paper: a look every minute, no other guard")
CODE = FogSetup(
    name="code",
    words="as in its public code: no look for 300 s after a restart, at least 2 replicas",
    warm_up=WARM_UP,
    least=LEAST,
)
OTHERS = (
    CODE,
    FogSetup(name="instant", words="changes take no time", downtime=0.0),
    FogSetup(name="six", words="six nodes, as in the public code", most=6),
    FogSetup(name="nearer", words="distance costs half as much", credit=2.0),
    FogSetup(name="farther", words="distance costs twice as much", credit=0.5),
    FogSetup(name="idle", words="waiting for far nodes leaves the CPU idle", waiting_cpu=0.0),
)  # fmt: skip
SETUPS: Mapping[str, FogSetup] = {setup.name: setup for setup in (MAIN, *OTHERS)}


# The ideal auto-scaler: the fewest replicas, on the best nodes, for the input of this second.
#
# It knows the load and the fog, changes at once and for nothing. [arkian21, Figure 6]


@lru_cache(maxsize=64)
def most(setup: FogSetup, seed: int) -> tuple[float, ...]:
    """Records/s that 1, 2, … replicas carry on the best nodes for so many, without noise.

    Of all sets of nodes; never less than fewer replicas carry.
    """
    spec = setup.spec(seed)
    best = [
        max(spec.capacity(nodes) for nodes in combinations(spec.nodes, count))
        for count in range(1, setup.most + 1)
    ]
    return tuple(np.maximum.accumulate(best).tolist())


def replicas(setup: FogSetup, seed: int, offered: Floats) -> Floats:
    """The ideal number for each of a series of rates; if none is enough, as many as there may be.

    Never below the least that all policies must keep.
    """
    wanted = np.searchsorted(most(setup, seed), offered * (1.0 - 1e-12)) + 1.0
    return np.clip(wanted, setup.least, setup.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class GesscaleCell:
    """A policy in a set-up."""

    setup: str
    policy: str

    @property
    def key(self) -> str:
        """Its name in files."""
        return f"{self.setup}-{self.policy}"

    @property
    def how(self) -> FogSetup:
        """The set-up itself."""
        return SETUPS[self.setup]


def key(policy: str, setup: str = MAIN.name) -> str:
    """The key of a policy's cell in a set-up."""
    return GesscaleCell(setup=setup, policy=policy).key


def of(setup: str = MAIN.name) -> list[GesscaleCell]:
    """The four policies in a set-up."""
    return [GesscaleCell(setup=setup, policy=policy) for policy in published.NAMES]


def all_cells(*, extended: bool = False) -> list[GesscaleCell]:
    """Table III, then the other set-ups; ``extended`` also ``gesscale+`` in the first."""
    more = [GesscaleCell(setup=MAIN.name, policy=published.PLUS)] if extended else []
    return [cell for setup in SETUPS for cell in of(setup)] + more
