"""A job, the nodes it may run on, and how far these are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.core.errors import InputError
from penstock.core.latency import LatencyMap
from penstock.core.pipeline import Operator, Pipeline
from penstock.network.maps import Fluctuating
from penstock.simulator.checks import names, number
from penstock.simulator.geo import kernel as k
from penstock.simulator.geo.deployment import deployed
from penstock.simulator.geo.job import Job
from penstock.simulator.spec import RESTART, RescaleProfile

SOURCE, SINK = "source", "sink"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeoSpec:
    """What the geo simulator needs to know.

    ``network`` the nodes and the round trips between them, fixed or fluctuating · ``start``
    instances at the beginning, on the first nodes · ``profile`` what a change costs · ``prices``
    of an instance by node, 1 where nothing is said.

    ``capacity_noise`` relative deviation of each node's speed, an AR(1) process that forgets
    within ``noise_memory`` seconds · ``metric_noise`` relative deviation of each measured rate
    and share; 0 switches them off.
    """

    job: Job
    network: LatencyMap | Fluctuating
    start: int = 1
    profile: RescaleProfile = RESTART
    prices: Mapping[str, float] = field(default_factory=dict)
    capacity_noise: float = 0.03
    noise_memory: float = 30.0
    metric_noise: float = 0.01
    pipeline: Pipeline = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nodes = self.nodes
        if not nodes:
            raise InputError("a job needs at least one node")
        if isinstance(self.start, bool) or not 1 <= self.start <= len(nodes):
            raise InputError(f"start {self.start} must be 1 to {len(nodes)}, the number of nodes")
        names("prices", self.prices, nodes)
        for node, price in self.prices.items():
            number(f"price of {node}", price, low=0.0)
        number("capacity_noise", self.capacity_noise, low=0.0, high=0.3)
        number("metric_noise", self.metric_noise, low=0.0, high=0.3)
        number("noise_memory", self.noise_memory, low=0.0, unit=" s")
        if self.job.channel_cost * (len(nodes) - 1) >= 1.0:
            most = math.ceil(1.0 / self.job.channel_cost)
            raise InputError(
                f"job {self.job.name}: channels at {self.job.channel_cost} of a CPU each leave "
                f"nothing on {len(nodes)} nodes; lower channel_cost, or have at most {most} nodes"
            )
        object.__setattr__(self, "pipeline", self._pipeline())

    @property
    def nodes(self) -> tuple[str, ...]:
        """All of them, in order."""
        return self.map.nodes

    @property
    def map(self) -> LatencyMap:
        """The round trips, those around which they fluctuate."""
        return self.network.base if isinstance(self.network, Fluctuating) else self.network

    def capacity(self, nodes: Sequence[str]) -> float:
        """Records/s that the job does with an instance on each of some nodes, the source beside
        the first: by CPU and credit, without noise and windows.
        """
        if not nodes or len(set(nodes)) < len(nodes):
            raise InputError(f"instances on {', '.join(nodes) or 'no node'}: one each, at least 1")
        plan = deployed(self.job, self.map.rows(nodes))
        found = np.empty((len(nodes), k.FOUND_COLUMNS))
        speeds = np.ones(len(self.nodes))
        most, _ = k.limit(plan.rows, plan.loads, plan.fixed, self.map.rtt, speeds, found)
        return float(most)

    def _pipeline(self) -> Pipeline:
        name = self.job.name
        operators = {
            SOURCE: Operator(pool=SOURCE, partitions=1),
            name: Operator(
                pool=name, stateful=self.job.windows is not None, partitions=len(self.nodes)
            ),
            SINK: Operator(pool=SINK, partitions=1),
        }
        return Pipeline(operators=operators, edges=[(SOURCE, name), (name, SINK)])
