"""Experience: what windows taught about the throughput of a pool, as plain JSON."""

from __future__ import annotations

from typing import Any, TypedDict

from penstock.capacity.exchange import Exchange
from penstock.capacity.learning import learn, teaches
from penstock.capacity.readings import Reading, remember
from penstock.core.codec import from_json, to_json
from penstock.core.model import Snapshot
from penstock.policies.gesscale.units import Unit


class Experience(TypedDict):
    """``readings`` of the pool, the last renewed last · ``count`` of them so far · ``error`` sum of
    the relative errors of ``compared`` predictions, of sizes that had not been seen."""

    readings: list[Any]
    count: int
    compared: int
    error: float


def no_experience() -> Experience:
    """Before the first window."""
    return {"readings": [], "count": 0, "compared": 0, "error": 0.0}


def readings_of(known: Experience) -> tuple[Reading, ...]:
    """As values."""
    return tuple(from_json(Reading, row) for row in known["readings"])


def sizes_tried(known: Experience) -> frozenset[int]:
    """Numbers of slots with which the pool could do no more."""
    return frozenset(r.layout.slots for r in readings_of(known) if r.full)


def model_of(seen: Snapshot, unit: Unit, known: Experience) -> Exchange | None:
    """The model of what was read; ``None`` while nothing teaches anything."""
    readings = tuple(filter(teaches, readings_of(known)))
    if not readings:
        return None
    stateful = any(seen.pipeline.operators[name].stateful for name in unit.members)
    return learn(readings, stateful=stateful)


def with_reading(seen: Snapshot, unit: Unit, known: Experience, new: Reading) -> Experience:
    """One more, after the model of those before has been held against it.

    Only where the pool could do no more, with a number of slots that had not been seen.
    """
    readings = readings_of(known)
    compared, error = known["compared"], known["error"]
    if new.full and all(r.layout.slots != new.layout.slots for r in readings):
        model = model_of(seen, unit, known)
        if model is not None:
            compared += 1
            error += abs(model.at(new.layout) / new.rate - 1.0)
    return {
        "readings": [to_json(r) for r in remember(readings, new)],
        "count": known["count"] + 1,
        "compared": compared,
        "error": error,
    }
