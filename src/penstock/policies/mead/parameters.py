"""The parameters that all variants of MEAD have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from penstock.core.errors import InputError

__all__ = ["LEVELS", "WINDOWS", "Terms", "terms_of"]


WINDOWS = "50000,25000"  # arrivals [russo21, §VII]


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
    """The fields that all variants of MEAD have."""

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
    """The parameters of a policy, checked and parsed."""
    from penstock.queueing.fitting import LEAST  # here: cpu-threshold has no use for scipy

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


LEVELS = "0.4,0.55,0.7,0.85,1"  # [russo21, §VII]


def levels_of(policy: str, text: str) -> tuple[float, ...]:
    """Shares of a slot's nominal CPU that rise.

    >>> levels_of("mead", "0.5,1")
    (0.5, 1.0)
    """
    levels = numbers(f"{policy}: levels", text)
    if any(not 0.0 < level <= 1.0 for level in levels) or list(levels) != sorted(set(levels)):
        raise InputError(f"{policy}: levels = {text!r} must be shares in (0, 1] that rise")
    return levels


def numbers(what: str, text: str) -> tuple[float, ...]:
    """The numbers of a text that has commas between them."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{what} = {text!r} must be numbers with commas between") from None
