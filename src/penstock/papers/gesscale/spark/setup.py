"""The fog of eight sites, the taxi operator on it, and the load, compressed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from penstock.lab.queries.geo_jobs import GeoJob, JobSettings, create
from penstock.lab.sites.spec import Site, SitesSpec
from penstock.simulator.series import Floats
from penstock.workloads.patterns import per_second
from penstock.workloads.trace import Trace

NODES, START = 8, 2  # sites, and executors at the beginning
FARTHEST = 0.15  # seconds one way: round trips of up to 300 ms              [arkian21, V-A]
FOG_SEED = 11  # of the delays, the same in all runs
CPU = 0.18  # of a core, each executor: together they leave room for the driver
WORK = 8_000  # additions per ride
ROWS = 7_200  # most of a micro-batch
TRIGGER = 5.0  # seconds: one executor alone needs about four for a batch of nothing

PERIOD = 10.0  # seconds between two looks, and of what they look at
LEAD, SECONDS = 30, 180  # seconds in which executors warm up, and then of the load
SPEED = 86_400 / SECONDS  # a day in that time
CARRIED = 6  # executors on the nearest sites that just carry the peak
SPARE = 0.95  # of what they carry
LONGEST_DRAIN = 120.0  # seconds after the load has ended


def fog() -> SitesSpec:
    """The first site is home; the others are as far away as they are drawn."""
    delays = np.random.default_rng(FOG_SEED).uniform(0.0, FARTHEST, NODES)
    delays[0] = 0.0
    return SitesSpec(
        sites=tuple(
            Site(name=f"fog-{n}", delay=round(float(delay), 3), cpu=CPU)
            for n, delay in enumerate(delays, 1)
        )
    )


def taxi(seed: int) -> GeoJob:
    """The operator with the rides of a seed."""
    return create("taxi", JobSettings(work=WORK, seed=seed))


def load(carried: Sequence[float]) -> Trace:
    """Taxi drop-offs from 1 May 2013 on, their peak at what six executors carry.

    ``carried`` records/s that 1, 2, … executors on the nearest sites were measured to take.
    """
    return Trace(file="taxi", speed=SPEED, scale=SPARE * carried[CARRIED - 1] / _peak())


def offered(pattern: Trace) -> Floats:
    """Records/s of every second that counts."""
    return per_second(pattern, LEAD + SECONDS)[LEAD:]


def ideal(carried: Sequence[float], rates: Floats) -> Floats:
    """The fewest executors that carry each of some rates; all where none are enough."""
    most = np.maximum.accumulate(carried)
    found = np.searchsorted(most, rates * (1.0 - 1e-12)) + 1.0
    return np.asarray(np.minimum(found, float(len(most))), dtype=np.float64)


@lru_cache(maxsize=1)
def _peak() -> float:
    return float(offered(Trace(file="taxi", speed=SPEED)).max())
