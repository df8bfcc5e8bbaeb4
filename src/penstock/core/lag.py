"""Lag in seconds: how far the sources are behind."""

from __future__ import annotations

from penstock.core.model import Snapshot


def lag_seconds(seen: Snapshot) -> float | None:
    """The lag in seconds of the rate that is offered; of the operator that is furthest behind.

    Sources have a lag, and operators that read from a topic between two applications.
    """
    worst: float | None = None
    for o in seen.operators.values():
        if o.lag is None:
            continue
        rate = o.offered_rate or o.arrival_rate
        if rate:
            worst = max(worst or 0.0, o.lag / rate)
        elif o.lag == 0:
            worst = worst or 0.0
    return worst
