"""What a workload offers and how long it runs where nobody says: rates that fit the query."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from penstock.core.errors import unknown
from penstock.simulator.queries import Query
from penstock.workloads import patterns
from penstock.workloads.patterns import PATTERNS

THESIS_PEAK = 2.2e6  # records/s: query 1's, which the thesis's other workloads were made for
_RATES: Mapping[str, tuple[str, ...]] = {
    "random": ("start", "change", "maximum"),
    "increasing": ("maximum",),
    "decreasing": ("maximum",),
    "convergence": ("high", "low"),
    "spikes": ("base", "noise"),
}


def workload_parameters(workload: str, query: Query, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a workload on a query; what is given wins.

    Cosine: the query's low, high and noise. Step: its low and high. Constant: their mean. Trace:
    scaled so that its highest rate is the query's. Those of ``_RATES``: the pattern's own rates
    times the query's peak over that of query 1.
    """
    if workload not in PATTERNS:
        raise unknown("workload", workload, PATTERNS)
    own: dict[str, Any] = {}
    if workload == "cosine":
        own = {"low": query.low, "high": query.high, "noise": query.noise}
    elif workload == "step":
        own = {"low": query.low, "high": query.high, "at": 1200.0, "hold": 2400.0}
    elif workload == "constant":
        own = {"rps": (query.low + query.high) / 2}
    elif workload == "trace" and "scale" not in given:
        recorded = patterns.create(workload, given)
        assert isinstance(recorded, patterns.Trace)
        peak = float(recorded.curve(0.0).rates.max())
        own = {"scale": query.high / peak} if peak else {}
    elif workload in _RATES:
        fields: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(PATTERNS[workload])}
        factor = query.high / THESIS_PEAK
        own = {name: fields[name] * factor for name in _RATES[workload]}
    return own | dict(given)


def workload_minutes(workload: str, given: Mapping[str, Any]) -> float:
    """Minutes that a workload is meant to run: a trace's length, 90 for convergence, or 140."""
    return patterns.duration(patterns.create(workload, given)) / 60.0
