"""How much more eight executors take than one; by ``penstock.lab.calibrate.throughput``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import InputError
from penstock.lab.calibrate.throughput import Calibration, CalibrationSpec, calibrate
from penstock.lab.proofs.proof import Check, Proof, Say

BOUNDS = {"q1": 5.5, "q5": 4.0}  # times what one executor takes, at eight


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSettings:
    """How often each size is measured, and the sizes; the last is judged."""

    repeats: int = 3
    sizes: tuple[int, ...] = (1, 2, 4, 8)

    def __post_init__(self) -> None:
        if not 1 <= self.repeats <= 100:
            raise InputError(f"--repeats {self.repeats} must lie between 1 and 100")


def prove(spec: ScalingSettings, *, folder: Path, say: Say) -> Proof:
    """Calibrate both queries."""

    def measured(size: int, rate: float) -> None:
        say(f"{query}, {size} executors: {rate:,.0f} records/s")

    found = []
    for query in BOUNDS:
        once = CalibrationSpec(query=query, repeats=spec.repeats, sizes=spec.sizes)
        found.append(calibrate(once, say=say, measured=measured))
    return judge(found)


def judge(found: Sequence[Calibration]) -> Proof:
    """The speed-up of the largest size of each query beside its bound."""
    checks = []
    rows = []
    notes = ["a batch gives every executor as many records, whatever the size"]
    for one in found:
        query, largest = one.spec.query, one.sizes[-1]
        checks.append(
            Check.of(
                f"{query}, {largest.executors} executors over {one.sizes[0].executors}",
                largest.speedup,
                BOUNDS[query],
                at_most=False,
                unit="times",
            )
        )
        rows += [
            {
                "query": query,
                "executors": size.executors,
                "records/s": round(size.throughput.mean),
                "speed-up": round(size.speedup.mean, 2),
                "curve": None if one.curve is None else round(one.curve.at(size.executors)),
            }
            for size in one.sizes
        ]
        if one.curve is not None:
            notes.append(f"{query}: {one.curve} records/s")
        if not one.limited:
            notes.append("executors could not be limited: they shared the cores of this machine")
    return Proof(
        name="scaling",
        title="Scaling: records/s of a query that has more to read than it takes",
        checks=tuple(checks),
        details=tuple(rows),
        notes=tuple(notes),
    )
