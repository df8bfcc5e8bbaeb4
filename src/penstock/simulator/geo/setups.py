"""The two published set-ups, frozen: a fog of eight nodes, and ten nodes of a rack.

Where their figures come from, and on what they were calibrated: docs/geo-simulator.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from penstock.core.errors import unknown
from penstock.core.latency import LatencyMap
from penstock.network.maps import Fluctuating, fog, from_inbound
from penstock.simulator.geo.job import Job, Keys, Windows
from penstock.simulator.geo.spec import GeoSpec
from penstock.simulator.spec import RescaleProfile

FOG_RESTART = RescaleProfile(name="fog", downtime=120.0)
"""The job stops for 120 s. [arkian21, Figure 3]"""

TAXI = Job(
    name="taxi",
    work=1 / 82,
    source_cost=1e-4,
    beside=False,
    channel_cost=0.03,
    credit=74.0,
    waiting_cpu=0.8,
    cpu_base=0.1,
)
"""The nearest of three attractions to a taxi's trip, on a single-board computer. [arkian21, V-A]"""

STUDY_RESTART = RescaleProfile(name="study", downtime=40.0, jitter=0.1)

MAP = Job(name="map", work=57.2e-6, source_cost=0.3e-6, exchange_cost=0.67e-6, credit=20_000.0)
ID_ID = Job(
    name="id-id",
    work=77.9e-6,
    source_cost=0.6e-6,
    exchange_cost=2.72e-6,
    credit=20_000.0,
    keys=Keys(),
    windows=Windows(every=4.0, rounds=90.0, part=2400.0, spread=0.6, between_runs=0.25),
)
ID_VALUE = Job(
    name="id-value",
    work=14e-6,
    source_cost=0.6e-6,
    exchange_cost=2.0e-6,
    credit=20_000.0,
    keys=Keys(hot=(21, 61, 91, 107, 122), hot_work=36e-6),
    windows=Windows(every=4.0, rounds=30.0, part=6000.0, spread=0.6, between_runs=0.25),
)
JOBS: Mapping[str, Job] = {job.name: job for job in (MAP, ID_ID, ID_VALUE)}
"""The jobs of [arsalane24]: stateless, a join on the key, a join on a value."""

RATE = 100_000.0  # records/s offered, of both streams of a join together
NODES = 10
RACK = 0.0005  # seconds there and back, "lower than 1 ms"
Case = Literal["none", "fixed", "jitter"]
DELAY, SWING = 0.025, 0.010  # seconds inbound


def fog_spec(seed: int) -> GeoSpec:
    """Eight nodes with random round trips of up to 300 ms, two instances at the beginning."""
    return GeoSpec(job=TAXI, network=fog(seed), start=2, profile=FOG_RESTART, capacity_noise=0.02)


def study_spec(
    job: str, case: Case, *, delayed: float = 0.5, delay: float = DELAY, seed: int = 0
) -> GeoSpec:
    """A job of the study; packets to the last ``delayed`` of the ten nodes come ``delay`` late.

    ``case``: no delay, a fixed one, or one that goes up and down by 10 ms (drawn by ``seed``).
    """
    if job not in JOBS:
        raise unknown("job", job, JOBS)
    return GeoSpec(
        job=JOBS[job], network=study_network(case, delayed, delay, seed), profile=STUDY_RESTART
    )


def study_network(
    case: Case, delayed: float = 0.5, delay: float = DELAY, seed: int = 0
) -> LatencyMap | Fluctuating:
    """The ten nodes: near each other, but for the last of them."""
    if case not in get_args(Case):
        raise unknown("case", case, get_args(Case))
    far = 0 if case == "none" else round(delayed * NODES)
    nodes = [f"node-{i}" for i in range(1, NODES + 1)]
    late = nodes[NODES - far :]
    base = from_inbound({node: RACK / 2 + (delay if node in late else 0.0) for node in nodes})
    if case != "jitter":
        return base
    return Fluctuating(base=base, swing=dict.fromkeys(late, SWING), seed=seed)
