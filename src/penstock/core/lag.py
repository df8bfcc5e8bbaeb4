"""Lag in seconds: how far the sources are behind."""

from __future__ import annotations

from penstock.core.model import Snapshot


def lag_seconds(seen: Snapshot) -> float | None:
    """The lag at the sources in seconds of the rate that is offered; the largest of them."""
    worst: float | None = None
    for name in seen.pipeline.sources:
        o = seen.operators.get(name)
        if o is None or o.lag is None:
            continue
        rate = o.offered_rate or o.arrival_rate
        if rate:
            worst = max(worst or 0.0, o.lag / rate)
        elif o.lag == 0:
            worst = worst or 0.0
    return worst
