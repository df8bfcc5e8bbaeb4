"""Figure 3: what queueing models say of the matcher beside what it does. [russo21, §II]"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.core.model import Arrivals
from penstock.papers.mead.traces import arrivals
from penstock.policies.mead.response import fitted
from penstock.queueing import PhaseType
from penstock.queueing.map_ph_1 import solve
from penstock.queueing.replay import departures
from penstock.queueing.simple import kingman_mean, mg1_mean

TRACES = ("taxi", "lm")
NAMES = {"mg1": "M/PH/1", "kingman": "Kingman", "by_map": "MAP/PH/1"}
LOADS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SCV = 0.5
SECONDS = 1800.0  # of each trace [russo21, §II]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Mean response times in seconds at several utilisations, measured and by three models."""

    trace: str
    loads: tuple[float, ...]
    measured: tuple[float, ...]
    mg1: tuple[float, ...]
    kingman: tuple[float, ...]
    by_map: tuple[float, ...]

    def ratios(self, model: str) -> tuple[float, ...]:
        """What a model of ``NAMES`` says over what was measured, by utilisation."""
        said: tuple[float, ...] = getattr(self, model)
        return tuple(value / real for value, real in zip(said, self.measured, strict=True))


def compare(trace: str, seed: int, seconds: float = SECONDS) -> Comparison:
    """The matcher alone under half an hour of a trace, with ever more work per record."""
    times = arrivals(trace, seed, min(seconds, SECONDS))
    gaps = np.diff(times)
    mean, scv = float(gaps.mean()), float(gaps.var() / gaps.mean() ** 2)
    (process,) = fitted(Arrivals(gaps), 1)
    rng = np.random.default_rng([seed, 30])
    draws = rng.gamma(1.0 / SCV, SCV, len(times))
    rows = []
    for load in LOADS:
        service = load * mean
        stays = departures(times, draws * service) - times
        rows.append(
            (
                float(stays.mean()),
                mg1_mean(1.0 / mean, service, SCV),
                kingman_mean(1.0 / mean, scv, service, SCV),
                solve(process, PhaseType.of(mean=service, scv=SCV)).mean,
            )
        )
    measured, mg1, kingman, by_map = (tuple(column) for column in zip(*rows, strict=True))
    return Comparison(
        trace=trace, loads=LOADS, measured=measured, mg1=mg1, kingman=kingman, by_map=by_map
    )
