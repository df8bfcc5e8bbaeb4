"""Simulated engines: how a pipeline behaves, by mechanism. Never imports ``capacity``."""

from __future__ import annotations

from penstock.simulator.fluid import FluidEngine
from penstock.simulator.series import Series, Totals
from penstock.simulator.spec import LIVE, PROFILES, RESTART, FluidSpec, RescaleProfile

__all__ = [
    "LIVE",
    "PROFILES",
    "RESTART",
    "FluidEngine",
    "FluidSpec",
    "RescaleProfile",
    "Series",
    "Totals",
]
