"""What a simulated pipeline is made of: service rates, start sizes, noise, cost of a change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.core.errors import InputError
from penstock.core.pipeline import Pipeline
from penstock.simulator.checks import names, number
from penstock.simulator.series import Floats

Ints = npt.NDArray[np.int64]
MOST_SLOTS = 1024  # of a pool, that the fewest are looked for among


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleProfile:
    """What a change of size costs, in seconds after it was asked for.

    ``downtime`` the whole job stops for so long · ``per_state`` and longer by this for each
    record of state that has to move · ``start`` until the first added slot works ·
    ``per_slot`` more for each further one · ``drain`` until the removed slots are gone (they
    work on until then) · ``jitter`` each action's times vary by this share, evenly.

    New sizes are never in force before the downtime is over.

    >>> LIVE.join_times(3)
    (2.8, 4.699999999999999, 6.6)
    """

    name: str
    downtime: float = 0.0
    per_state: float = 0.0
    start: float = 0.0
    per_slot: float = 0.0
    drain: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for key in ("downtime", "per_state", "start", "per_slot", "drain"):
            number(f"profile {self.name}: {key}", getattr(self, key), low=0.0, unit=" s")
        number(f"profile {self.name}: jitter", self.jitter, low=0.0, high=1.0)

    def stops_for(self, state: float) -> float:
        """Seconds without processing when so many records of state move, without jitter."""
        return self.downtime + self.per_state * state

    def join_times(self, added: int) -> tuple[float, ...]:
        """When each of the added slots begins to work, without jitter."""
        return tuple(max(self.downtime, self.start + self.per_slot * k) for k in range(added))


RESTART = RescaleProfile(name="restart", downtime=40.0, per_state=1.5e-6, jitter=0.1)
"""Flink-like: the job stops for 40 s ± 10 %, and 1.5 s longer per million records of state."""

LIVE = RescaleProfile(name="live", start=2.8, per_slot=1.9, drain=5.0, jitter=0.1)
"""Spark-like: nothing stops. Growing by 1, 2, 4 executors took 2.8, 4.2, 8.5 s, here 2.8, 4.7,
8.5 s; two decommissioned executors were gone after 5 s."""

PROFILES: Mapping[str, RescaleProfile] = {"restart": RESTART, "live": LIVE}


@dataclass(frozen=True, slots=True, kw_only=True)
class FluidSpec:
    """A pipeline with everything the fluid simulator needs to know about it.

    ``service_rates`` μ, records/s of one slot, by operator · ``start`` slots by pool at the
    beginning · ``profile`` what a change costs · ``buffer_seconds`` size of an operator's input
    buffer, in seconds of its own capacity · ``source_shares`` each source's part of the offered
    records, evenly if left out.

    Capacity of p slots (``capacity``): μ · p^β · balance. β ``exponents`` (1 if left out) is the
    speed-up · ``key_groups`` G groups of keys are dealt out whole, so the fullest slot has ⌈G/p⌉
    of them · ``hot_shares`` the share of all records that carry the hottest key.

    CPU: cpu = b + (c·k − b)·ρ with ρ the utilisation, b ``cpu_base``, c ``cpu_ceiling`` and k the
    operator's ``cpu_factors`` (1 if left out). ``busy_ceilings`` what an operator's busy share
    reads at saturation (1 if left out); below 1 it reads too small throughout, so the measured
    service rate is too large.

    Windows: ``fires_every`` seconds; results are held until then · State: each input record of an
    operator adds ``state_per_record`` records of state, which are forgotten at the rate
    1/``state_seconds`` (never, if left out) · Checkpoints: every ``checkpoint_every`` seconds, for
    ``checkpoint_seconds`` and ``checkpoint_per_state`` seconds per record of state, all operators
    lose the share ``checkpoint_slowdown`` of their speed · The log in front of the sources drops
    whole segments of ``segment`` seconds when all records in them are older than ``retention``
    (0: never).

    ``capacity_noise`` relative deviation of an operator's speed, an AR(1) process that forgets
    within ``noise_memory`` seconds · ``metric_noise`` relative deviation of each measured rate
    and share; 0 switches them off.
    """

    pipeline: Pipeline
    service_rates: Mapping[str, float]
    start: Mapping[str, int]
    profile: RescaleProfile = RESTART
    buffer_seconds: float = 0.25
    source_shares: Mapping[str, float] = field(default_factory=dict)
    exponents: Mapping[str, float] = field(default_factory=dict)
    key_groups: Mapping[str, int] = field(default_factory=dict)
    hot_shares: Mapping[str, float] = field(default_factory=dict)
    cpu_base: float = 0.22
    cpu_ceiling: float = 0.94
    cpu_factors: Mapping[str, float] = field(default_factory=dict)
    busy_ceilings: Mapping[str, float] = field(default_factory=dict)
    fires_every: Mapping[str, float] = field(default_factory=dict)
    state_per_record: Mapping[str, float] = field(default_factory=dict)
    state_seconds: Mapping[str, float] = field(default_factory=dict)
    checkpoint_every: float = 0.0
    checkpoint_seconds: float = 1.0
    checkpoint_per_state: float = 0.0
    checkpoint_slowdown: float = 0.1
    retention: float = 0.0
    segment: float = 300.0
    capacity_noise: float = 0.03
    noise_memory: float = 30.0
    metric_noise: float = 0.01

    def __post_init__(self) -> None:
        pipeline = self.pipeline
        names("service_rates", self.service_rates, pipeline.operators, complete=True)
        names("start", self.start, pipeline.pools, complete=True)
        for pool, slots in self.start.items():
            if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
                raise InputError(f"start: {pool} = {slots!r} must be a whole number ≥ 1")
        names("source_shares", self.source_shares, pipeline.sources)
        for key, bounds in _BY_OPERATOR.items():
            values = getattr(self, key)
            names(key, values, pipeline.operators)
            for name, value in values.items():
                number(f"{key}: {name}", value, **bounds)
        for name, share in self.source_shares.items():
            number(f"source_shares: {name}", share, low=0.0)
        if self.source_shares:
            names("source_shares", self.source_shares, pipeline.sources, complete=True)
            if not math.isclose(total := sum(self.source_shares.values()), 1.0):
                raise InputError(f"source_shares sum to {total}; they must sum to 1")
        for key, bounds in _WHOLE.items():
            number(key, getattr(self, key), **bounds)
        number("cpu_ceiling", self.cpu_ceiling, low=self.cpu_base, high=1.0)

    def capacity(self, name: str, slots: float) -> float:
        """Records/s that an operator can process on so many slots of its own, without noise."""
        return float(self._capacities(name, np.array([float(slots)]))[0])

    def demand(self, rates: Mapping[str, Any]) -> dict[str, Any]:
        """λ of every operator when the sources take in ``rates``: numbers, or arrays of them."""
        demand: dict[str, Any] = {}
        for name in self.pipeline.order:
            above = self.pipeline.upstream[name]
            if not above:
                demand[name] = rates[name]
                continue
            parts = [demand[u] * self.pipeline.operators[u].selectivity for u in above]
            demand[name] = sum(parts[1:], start=parts[0])
        return demand

    def fewest_slots(self, rates: Mapping[str, float]) -> dict[str, int]:
        """The fewest slots of each pool that cover the sources' ``rates``, at least 1.

        Where skew lets no number of slots cover them, the fewest that do the most.
        """
        arrays = {name: np.array([rate]) for name, rate in rates.items()}
        return {pool: int(slots[0]) for pool, slots in self.fewest_slots_series(arrays).items()}

    def fewest_slots_series(self, rates: Mapping[str, Floats]) -> dict[str, Ints]:
        """``fewest_slots`` for each of a series of rates."""
        demand = self.demand(rates)
        return {pool: self._fewest(pool, demand) for pool in self.pipeline.pools}

    def _fewest(self, pool: str, demand: Mapping[str, Floats]) -> Ints:
        """Operators that share slots take turns: Σ λ_i / (capacity_i(p) / p) ≤ p."""
        sizes = np.arange(1.0, MOST_SLOTS + 1)
        members = self.pipeline.members(pool)
        capacity = {name: self._capacities(name, sizes) for name in members}
        if len(members) == 1:
            reached = np.maximum.accumulate(capacity[members[0]])
            most = int(reached.searchsorted(reached[-1] * (1 - 1e-9))) + 1
            wanted = reached.searchsorted(demand[members[0]] * (1 - 1e-12)) + 1
            return np.minimum(wanted, most)
        points, where = np.unique([demand[name] for name in members], axis=1, return_inverse=True)
        parts = [points[i, :, None] / capacity[name] for i, name in enumerate(members)]
        share = np.sum(parts, axis=0)
        enough = share <= 1 + 1e-12
        fewest = np.where(enough.any(axis=1), enough.argmax(axis=1), share.argmin(axis=1)) + 1
        return np.asarray(fewest[where.reshape(-1)])

    def _capacities(self, name: str, slots: Floats) -> Floats:
        """μ · p^β / (p · fullest), fullest = h + (1 − h)·⌈G/p⌉/G the largest share of a slot."""
        used = np.minimum(slots, self.pipeline.operators[name].partitions or math.inf)
        fullest = 1.0 / used
        groups = self.key_groups.get(name, 0)
        if groups:
            dealt = np.ceil(groups / used - 1e-9) / groups
            fullest = np.where(used > 1.0, np.maximum(fullest, dealt), fullest)
        hot = self.hot_shares.get(name, 0.0)
        fullest = hot + (1.0 - hot) * fullest
        speed = self.service_rates[name] * used ** (self.exponents.get(name, 1.0) - 1.0)
        return np.asarray(speed / fullest)


_BY_OPERATOR: Mapping[str, dict[str, Any]] = {
    "service_rates": {"low": 0.0, "open_low": True, "unit": " records/s"},
    "exponents": {"low": 0.0, "high": 1.0, "open_low": True},
    "key_groups": {"low": 1},
    "hot_shares": {"low": 0.0, "high": 1.0},
    "cpu_factors": {"low": 0.0, "high": 1.0, "open_low": True},
    "busy_ceilings": {"low": 0.0, "high": 1.0, "open_low": True},
    "fires_every": {"low": 1.0, "unit": " s"},
    "state_per_record": {"low": 0.0},
    "state_seconds": {"low": 0.0, "open_low": True, "unit": " s"},
}
_WHOLE: Mapping[str, dict[str, Any]] = {
    "buffer_seconds": {"low": 0.0, "open_low": True, "unit": " s"},
    "cpu_base": {"low": 0.0, "high": 1.0},
    "checkpoint_every": {"low": 0.0, "unit": " s"},
    "checkpoint_seconds": {"low": 0.0, "unit": " s"},
    "checkpoint_per_state": {"low": 0.0, "unit": " s"},
    "checkpoint_slowdown": {"low": 0.0, "high": 1.0},
    "retention": {"low": 0.0, "unit": " s"},
    "segment": {"low": 1.0, "unit": " s"},
    "capacity_noise": {"low": 0.0, "high": 0.3},
    "metric_noise": {"low": 0.0, "high": 0.3},
    "noise_memory": {"low": 0.0, "unit": " s"},
}
