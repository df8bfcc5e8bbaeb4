"""The parameters that all variants of MEAD have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from penstock.core.errors import InputError
from penstock.policies.mead.levels import LEVELS, levels_of, numbers
from penstock.queueing.fitting import LEAST

WINDOWS = "50000,25000"  # arrivals [russo21, §VII]

__all__ = ["LEVELS", "WINDOWS", "Terms", "terms_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The parameters of MEAD in any variant, parsed."""

    target: float
    percentile: float
    levels: tuple[float, ...]
    windows: tuple[int, ...]
    maps: int
    delta: float
    service_scv: float
    gradual: bool


class Parameters(Protocol):
    """What all of them have."""

    @property
    def target(self) -> float: ...
    @property
    def levels(self) -> str: ...
    @property
    def windows(self) -> str: ...
    @property
    def delta(self) -> float: ...
    @property
    def service_scv(self) -> float: ...
    @property
    def gradual(self) -> bool: ...


def terms_of(name: str, policy: Parameters, percentile: float, maps: int = 1) -> Terms:
    """The parameters, checked."""
    if not (math.isfinite(policy.target) and policy.target > 0.0):
        raise InputError(f"{name}: target = {policy.target} s must be > 0")
    if not 0.0 <= percentile < 1.0:
        raise InputError(f"{name}: percentile = {percentile} must be in [0, 1); 0 is the mean")
    if not 0.0 <= policy.delta < 1.0:
        raise InputError(f"{name}: delta = {policy.delta} must be in [0, 1)")
    if not (math.isfinite(policy.service_scv) and policy.service_scv > 0.0):
        raise InputError(f"{name}: service_scv = {policy.service_scv} must be > 0")
    windows = numbers(f"{name}: windows", policy.windows)
    if not all(math.isfinite(w) and w >= LEAST for w in windows):
        raise InputError(f"{name}: windows = {policy.windows!r} must be of ≥ {LEAST} arrivals")
    return Terms(
        target=policy.target,
        percentile=percentile,
        levels=levels_of(name, policy.levels),
        windows=tuple(sorted({int(w) for w in windows}, reverse=True)),
        maps=maps,
        delta=policy.delta,
        service_scv=policy.service_scv,
        gradual=policy.gradual,
    )
