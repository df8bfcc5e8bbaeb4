"""What a simulated pipeline is made of: service rates, start sizes, noise, cost of a change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.core.errors import InputError, unknown
from penstock.core.pipeline import Pipeline


def _number(
    what: str,
    value: Any,
    *,
    low: float,
    high: float = math.inf,
    open_low: bool = False,
    unit: str = "",
) -> None:
    good = (
        isinstance(value, int | float)
        and math.isfinite(value)
        and (low < value if open_low else low <= value)
        and value <= high
    )
    if not good:
        above = f"above {low:g}" if open_low else f"≥ {low:g}"
        below = f" and ≤ {high:g}" if math.isfinite(high) else ""
        raise InputError(f"{what} = {value!r} must be a finite number {above}{below}{unit}")


def _names(
    what: str, given: Mapping[str, Any], known: Iterable[str], *, complete: bool = False
) -> None:
    names = tuple(known)
    for name in given:
        if name not in names:
            raise unknown(f"name in {what}:", name, names)
    if complete and (missing := [name for name in names if name not in given]):
        raise InputError(f"{what}: nothing is given for {', '.join(missing)}; add it")


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleProfile:
    """What a change of size costs, in seconds after it was asked for.

    ``downtime`` the whole job stops for so long · ``start`` until the first added slot works ·
    ``per_slot`` more for each further one · ``drain`` until the removed slots are gone (they
    work on until then) · ``jitter`` each action's times vary by this share, evenly.

    New sizes are never in force before the downtime is over.

    >>> LIVE.join_times(3)
    (2.8, 4.699999999999999, 6.6)
    """

    name: str
    downtime: float = 0.0
    start: float = 0.0
    per_slot: float = 0.0
    drain: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for key in ("downtime", "start", "per_slot", "drain"):
            _number(f"profile {self.name}: {key}", getattr(self, key), low=0.0, unit=" s")
        _number(f"profile {self.name}: jitter", self.jitter, low=0.0, high=1.0)

    def join_times(self, added: int) -> tuple[float, ...]:
        """When each of the added slots begins to work, without jitter."""
        return tuple(max(self.downtime, self.start + self.per_slot * k) for k in range(added))


RESTART = RescaleProfile(name="restart", downtime=37.0, jitter=0.1)
"""Flink-like: the job stops, 37 s ± 10 % as the thesis's runs show (notes/fluid-simulator.md)."""

LIVE = RescaleProfile(name="live", start=2.8, per_slot=1.9, drain=5.0, jitter=0.1)
"""Spark-like: nothing stops. Growing by 1, 2, 4 executors took 2.8, 4.2, 8.5 s, here 2.8, 4.7,
8.5 s; two decommissioned executors were gone after 5 s (notes/spark.md)."""

PROFILES: Mapping[str, RescaleProfile] = {"restart": RESTART, "live": LIVE}


@dataclass(frozen=True, slots=True, kw_only=True)
class FluidSpec:
    """A pipeline with everything the fluid simulator needs to know about it.

    ``service_rates`` μ, records/s of one slot, by operator · ``start`` slots by pool at the
    beginning · ``profile`` what a change costs · ``buffer_seconds`` size of an operator's input
    buffer, in seconds of its own capacity · ``source_shares`` each source's part of the offered
    records, evenly if left out.

    CPU: cpu = b + (c·k − b)·ρ with ρ the utilisation, b ``cpu_base``, c ``cpu_ceiling`` and k the
    operator's ``cpu_factors`` (1 if left out). ``busy_ceilings`` what an operator's busy share
    reads at saturation (1 if left out); below 1 it reads too small throughout, so the measured
    service rate is too large.

    ``capacity_noise`` relative deviation of an operator's speed, an AR(1) process that forgets
    within ``noise_memory`` seconds · ``metric_noise`` relative deviation of each measured rate
    and share. Both as in notes/fluid-simulator.md; 0 switches them off.
    """

    pipeline: Pipeline
    service_rates: Mapping[str, float]
    start: Mapping[str, int]
    profile: RescaleProfile = RESTART
    buffer_seconds: float = 0.25
    source_shares: Mapping[str, float] = field(default_factory=dict)
    cpu_base: float = 0.22
    cpu_ceiling: float = 0.94
    cpu_factors: Mapping[str, float] = field(default_factory=dict)
    busy_ceilings: Mapping[str, float] = field(default_factory=dict)
    capacity_noise: float = 0.03
    noise_memory: float = 30.0
    metric_noise: float = 0.01

    def __post_init__(self) -> None:
        pipeline = self.pipeline
        _names("service_rates", self.service_rates, pipeline.operators, complete=True)
        _names("start", self.start, pipeline.pools, complete=True)
        _names("source_shares", self.source_shares, pipeline.sources)
        _names("cpu_factors", self.cpu_factors, pipeline.operators)
        _names("busy_ceilings", self.busy_ceilings, pipeline.operators)
        for name, rate in self.service_rates.items():
            _number(f"service_rates: {name}", rate, low=0.0, open_low=True, unit=" records/s")
        for pool, slots in self.start.items():
            if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
                raise InputError(f"start: {pool} = {slots!r} must be a whole number ≥ 1")
        for name, share in self.source_shares.items():
            _number(f"source_shares: {name}", share, low=0.0)
        if self.source_shares:
            _names("source_shares", self.source_shares, pipeline.sources, complete=True)
            if not math.isclose(total := sum(self.source_shares.values()), 1.0):
                raise InputError(f"source_shares sum to {total}; they must sum to 1")
        for name, factor in self.cpu_factors.items():
            _number(f"cpu_factors: {name}", factor, low=0.0, high=1.0, open_low=True)
        for name, ceiling in self.busy_ceilings.items():
            _number(f"busy_ceilings: {name}", ceiling, low=0.0, high=1.0, open_low=True)
        _number("buffer_seconds", self.buffer_seconds, low=0.0, open_low=True, unit=" s")
        _number("cpu_base", self.cpu_base, low=0.0, high=1.0)
        _number("cpu_ceiling", self.cpu_ceiling, low=self.cpu_base, high=1.0)
        _number("capacity_noise", self.capacity_noise, low=0.0, high=0.3)
        _number("metric_noise", self.metric_noise, low=0.0, high=0.3)
        _number("noise_memory", self.noise_memory, low=0.0, unit=" s")
