"""The load of a Spark run: the workload's pattern, squeezed in time and scaled to the capacity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.comparison.cell import Cell
from penstock.lab.rig.settings import SparkSettings
from penstock.workloads import patterns
from penstock.workloads.patterns import Pattern, per_second
from penstock.workloads.trace import SHIPPED

TIMES: Mapping[str, tuple[str, ...]] = {
    "constant": (),
    "step": ("at", "hold"),
    "cosine": ("period", "minute"),
    "random": ("minute",),
    "increasing": ("minute",),
    "decreasing": ("minute",),
    "convergence": ("wait", "stage"),
    "spikes": ("spacing", "length", "minute"),
}
"""Parameters that are seconds, by pattern."""
RATES: Mapping[str, tuple[str, ...]] = {
    "constant": ("rps",),
    "step": ("low", "high"),
    "cosine": ("low", "high", "noise"),
    "random": ("start", "change", "maximum"),
    "increasing": ("maximum",),
    "decreasing": ("maximum",),
    "convergence": ("high", "low"),
    "spikes": ("base", "noise"),
}
"""Parameters that are records/s, by pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a run is offered.

    ``thesis`` the workload in thesis time · ``pattern`` the same on the clock · ``rate``
    records/s on the clock for one record/s of the workload · ``peak`` the highest of them.
    """

    thesis: Pattern
    pattern: Pattern
    rate: float
    peak: float


def load_of(cell: Cell, settings: SparkSettings, seed: int, capacity: float) -> Load:
    """The load of a cell and a seed, the same for every policy.

    ``capacity`` records/s that all executors can do. The highest second of the run needs the
    share ``peak`` of it, or is ``peak_rate``.
    """
    thesis = cell.pattern(seed)
    highest = float(per_second(thesis, cell.seconds).max())
    peak = settings.peak * capacity if settings.peak_rate is None else settings.peak_rate
    rate = peak / highest
    pattern = squeezed(thesis, speed=settings.speed, rate=rate)
    return Load(thesis=thesis, pattern=pattern, rate=rate, peak=peak)


def squeezed(pattern: Pattern, *, speed: float, rate: float) -> Pattern:
    """The pattern r′(t) = rate · r(speed · t): by its parameters, so that a source can be told it.

    >>> squeezed(patterns.Step(low=10.0, high=50.0, at=60.0), speed=20.0, rate=0.5)
    Step(low=5.0, high=25.0, at=3.0, hold=0.0)
    """
    if isinstance(pattern, patterns.Trace):
        file = pattern.file if pattern.file in SHIPPED else str(Path(pattern.file).resolve())
        return replace(pattern, file=file, scale=pattern.scale * rate, speed=pattern.speed * speed)
    name = str(patterns.describe(pattern)["name"])
    changes = {field: getattr(pattern, field) / speed for field in TIMES[name]}
    changes |= {field: getattr(pattern, field) * rate for field in RATES[name]}
    made: Any = pattern
    scaled: Pattern = replace(made, **changes)
    return scaled
