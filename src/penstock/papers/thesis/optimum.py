"""The best fixed size under a constant rate, found by sweeping each operator's size.

The thesis asks for it as the measure of an auto-scaler's accuracy. [kanis23, 8.3]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.simulator import FluidEngine, FluidSpec, queries
from penstock.workloads.patterns import Constant

SECONDS = 3600
BEHIND = 5.0  # seconds of input; a larger lag at the end means that a size does not keep up
AMPLE = 2  # times the need: what the other operators have while one is swept
SWEEP = 6  # sizes above the need that are tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """The smallest size of each operator that keeps up for an hour with every seed tried."""

    query: str
    rate: float
    sizes: Mapping[str, int]
    tried: int

    @property
    def slots(self) -> int:
        """Slots of all operators."""
        return sum(self.sizes.values())


def optimum(query: str, rate: float, seeds: Sequence[int], seconds: int = SECONDS) -> Optimum:
    """Sweep each operator from one below its need upwards, the others being ample.

    The sizes found are then tried together; where noise makes them fall behind, all grow by one
    in turn, the largest first.
    """
    spec = queries.create(query).spec
    need = spec.fewest_slots(_rates(spec, rate))
    ample = {pool: AMPLE * slots + 1 for pool, slots in need.items()}
    tried = 0
    sizes: dict[str, int] = {}
    for pool, slots in need.items():
        for size in range(max(1, slots - 1), slots + SWEEP):
            tried += 1
            if keeps_up(spec, {**ample, pool: size}, rate, seeds, seconds):
                break
        sizes[pool] = size
    for pool in sorted(sizes, key=lambda name: -sizes[name]) * SWEEP:
        tried += 1
        if keeps_up(spec, sizes, rate, seeds, seconds):
            break
        sizes[pool] += 1
    return Optimum(query=query, rate=rate, sizes=sizes, tried=tried)


def keeps_up(
    spec: FluidSpec, sizes: Mapping[str, int], rate: float, seeds: Sequence[int], seconds: int
) -> bool:
    """Whether a fixed size ends without a lag worth mentioning, with every seed."""
    fixed = replace(spec, start=dict(sizes))
    for seed in seeds:
        engine = FluidEngine(fixed, Constant(rps=rate), seconds=seconds, seed=seed)
        engine.advance(seconds)
        lag = float(np.asarray(engine.series.lag)[-1])
        if lag > BEHIND * rate or float(engine.series.expired.sum()) > 0:
            return False
    return True


def _rates(spec: FluidSpec, rate: float) -> dict[str, float]:
    sources = spec.pipeline.sources
    return {name: rate * spec.source_shares.get(name, 1 / len(sources)) for name in sources}
