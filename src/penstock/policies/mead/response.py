"""Response times of a path by three queueing models, under the arrivals of some windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.core.model import Arrivals
from penstock.queueing import MarkovianArrivalProcess
from penstock.queueing.fitting import LEAST, alternatives
from penstock.queueing.intervals import Intervals
from penstock.queueing.map_ph_1 import MOST
from penstock.queueing.paths import Station, path_response
from penstock.queueing.simple import kingman_mean, mg1_mean

FITTED = 2048  # windows whose fits are kept


@dataclass(frozen=True)
class Load:
    """The windows of arrivals that a response time is to be kept under, and fits per window."""

    windows: tuple[Arrivals, ...]
    maps: int

    @cached_property
    def processes(self) -> tuple[MarkovianArrivalProcess, ...]:
        """Processes like the arrivals of the windows."""
        return tuple(p for window in self.windows for p in fitted(window, self.maps))

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """Arrivals per second, by window."""
        return tuple(1.0 / float(w.intervals.mean()) for w in self.windows)

    @cached_property
    def scvs(self) -> tuple[float, ...]:
        """Squared coefficients of variation, by window."""
        return tuple(Intervals(w.intervals).scv for w in self.windows)


def by_process(load: Load, path: tuple[Station, ...], percentile: float) -> float:
    """The response time by MAP/PH/1 queues, the worst of the fits."""
    if overloaded(path, [process.rate for process in load.processes]):
        return math.inf
    laws = [path_response(process, path) for process in load.processes]
    return max(law.percentile(percentile) if percentile else law.mean for law in laws)


def by_mg1(load: Load, path: tuple[Station, ...], percentile: float) -> float:
    """The response time by M/G/1 queues, one after the other."""
    if overloaded(path, load.rates):
        return math.inf
    if percentile:
        poisson = [MarkovianArrivalProcess.poisson(rate) for rate in load.rates]
        return max(path_response(p, path).percentile(percentile) for p in poisson)
    return max(
        sum(mg1_mean(rate * s.visits, s.service.mean, s.service.scv) for s in path)
        for rate in load.rates
    )


def by_kingman(load: Load, path: tuple[Station, ...], percentile: float) -> float:
    """The mean by Kingman's approximation of GI/G/1 queues, one after the other."""
    if overloaded(path, load.rates):
        return math.inf
    return max(
        sum(kingman_mean(rate * s.visits, scv, s.service.mean, s.service.scv) for s in path)
        for rate, scv in zip(load.rates, load.scvs, strict=True)
    )


def overloaded(path: tuple[Station, ...], rates: Sequence[float]) -> bool:
    """Whether there is no steady state at one of these rates."""
    return any(station.load(rate) >= MOST for station in path for rate in rates)


def fitted(window: Arrivals, maps: int) -> tuple[MarkovianArrivalProcess, ...]:
    """Processes like a window, some alternatives; kept by its digest, without the window."""
    key = window.digest, maps
    if key not in _fits:
        if len(_fits) >= FITTED:
            del _fits[next(iter(_fits))]  # the oldest
        _fits[key] = tuple(f.process for f in alternatives(Intervals(window.intervals), maps))
    return _fits[key]


_fits: dict[tuple[str, int], tuple[MarkovianArrivalProcess, ...]] = {}


def unfit(arrivals: Arrivals | None) -> str | None:
    """Why nothing can be said by a window of arrivals; ``None`` if something can."""
    if arrivals is None:
        return "single arrivals are not measured"
    values = arrivals.intervals
    if len(values) < LEAST:
        return f"{len(values)} arrivals seen, {LEAST} are needed"
    if not np.isfinite(values).all():
        return "some times between arrivals are not numbers"
    if (least := float(values.min())) < 0.0:
        return f"arrivals are not in order (a time of {least:g} s between two)"
    if least == float(values.max()):
        return f"all {len(values)} times between arrivals are {least:g} s"
    return None
