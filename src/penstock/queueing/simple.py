"""Queueing models that know nothing of bursts: M/G/1 and Kingman's approximation."""

from __future__ import annotations

from penstock.core.errors import InputError
from penstock.queueing.map_ph_1 import MOST


def mg1_mean(rate: float, mean: float, scv: float) -> float:
    """E[R] = ES + λ·ES²·(1 + SCV)/2/(1 − ρ), Poisson arrivals.       [pollaczek, khinchine]

    >>> mg1_mean(0.5, 1.0, 1.0)
    2.0
    """
    load = _load(rate, mean)
    return mean + load * mean * (1.0 + scv) / 2.0 / (1.0 - load)


def kingman_mean(rate: float, arrival_scv: float, mean: float, scv: float) -> float:
    """E[R] ≈ ES + ρ/(1−ρ)·(c_a² + c_s²)/2·ES, independent arrivals.            [kingman61]

    >>> kingman_mean(0.5, 1.0, 1.0, 1.0)
    2.0
    """
    load = _load(rate, mean)
    return mean + load / (1.0 - load) * (arrival_scv + scv) / 2.0 * mean


def _load(rate: float, mean: float) -> float:
    load = rate * mean
    if not load < MOST:
        raise InputError(f"utilisation {load:.4g} must be < {MOST:g}: there is no steady state")
    return load
