"""What a record takes at each operator, learnt while it runs."""

from __future__ import annotations

from typing import TypedDict

from penstock.core.model import Snapshot

FADE = 0.5**0.1  # of what was seen one window ago: half of it is gone after ten


class Demands(TypedDict):
    """Records served and the seconds of full CPU that they took, by operator; fading."""

    served: dict[str, float]
    worked: dict[str, float]


def no_demands() -> Demands:
    """The demands before anything was seen."""
    return {"served": {}, "worked": {}}


def remember_demands(seen: Snapshot, demands: Demands) -> Demands:
    """Regression through the origin: seconds of CPU over records, recent windows first.

    The paper measured demands beforehand; here a change of the code or of the data shows.
    """
    served, worked = dict(demands["served"]), dict(demands["worked"])
    for name, o in seen.operators.items():
        if o.service_rate and o.arrival_rate:
            count = o.arrival_rate * seen.window
            served[name] = FADE * served.get(name, 0.0) + count
            worked[name] = FADE * worked.get(name, 0.0) + count / o.service_rate
    return {"served": served, "worked": worked}


def demand_seconds(demands: Demands) -> dict[str, float]:
    """Seconds of full CPU per record, of the operators that are known."""
    served, worked = demands["served"], demands["worked"]
    return {name: worked[name] / served[name] for name in worked if served[name] > 0.0}


def visits(seen: Snapshot) -> dict[str, float]:
    """Records at each operator for one at the source."""
    found: dict[str, float] = {}
    for name in seen.pipeline.order:
        above = seen.pipeline.upstream[name]
        share = sum(found[n] * seen.pipeline.operators[n].selectivity for n in above)
        found[name] = share if above else 1.0
    return found
