"""What a model of the throughput was calibrated with, and how well it foretold: plain JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from penstock.capacity.measurements import Measurement, configurations, remember
from penstock.capacity.mst import Mst, calibrate


class Foretold(TypedDict):
    """How many readings of a pool there were so far (``count``), and how well they were foretold.

    ``error`` sum of the relative errors of ``compared`` predictions.
    """

    count: int
    compared: int
    error: float


class Calibration(Foretold):
    """What was measured of a pool at its limit, and how well that was foretold.

    ``measured`` rows of slots, delay, rate and readings, the last renewed last.
    """

    measured: list[list[float]]


def no_calibration() -> Calibration:
    """The calibration before the first measurement."""
    return {"measured": [], "count": 0, "compared": 0, "error": 0.0}


def model_of(known: Calibration, parameters: int) -> Mst | None:
    """The model, with at most so many parameters; ``None`` before the first measurement."""
    measured = _measured(known)
    return calibrate(measured, parameters=parameters) if measured else None


def with_measurement(known: Calibration, new: Measurement, parameters: int) -> Calibration:
    """One more, after the model of those before has been held against it.

    Only a model with as many configurations as parameters is, and only where the configuration
    is not the one that was measured last: that would be no prediction.
    """
    measured = _measured(known)
    compared, error = known["compared"], known["error"]
    enough = configurations(measured, most=parameters) == parameters
    if enough and not measured[-1].same_configuration(new):
        foretold = calibrate(measured, parameters=parameters).at(new.slots, new.delay)
        compared, error = compared + 1, error + abs(foretold - new.rate) / new.rate
    return {
        "measured": [
            [float(m.slots), m.delay, m.rate, m.readings] for m in remember(measured, new)
        ],
        "count": known["count"] + 1,
        "compared": compared,
        "error": error,
    }


def figures_of(pools: Iterable[Foretold]) -> dict[str, float]:
    """``measurements``, and ``model_error``: mean |predicted − measured| / measured, if any was
    predicted.

    >>> figures_of([no_calibration()])
    {'measurements': 0.0}
    """
    known = list(pools)
    figures = {"measurements": float(sum(c["count"] for c in known))}
    if compared := sum(c["compared"] for c in known):
        figures["model_error"] = sum(c["error"] for c in known) / compared
    return figures


def _measured(known: Calibration) -> tuple[Measurement, ...]:
    return tuple(
        Measurement(slots=int(slots), delay=delay, rate=rate, readings=readings)
        for slots, delay, rate, readings in known["measured"]
    )
