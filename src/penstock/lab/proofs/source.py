"""How fast one slot reads Nexmark's events; measured by :mod:`penstock.lab.proofs.source_speed`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import InputError
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.lab.proofs.source_speed import SECONDS, measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Seconds of measured rounds; there are at least three of them."""

    seconds: float = SECONDS

    def __post_init__(self) -> None:
        if not 1 <= self.seconds <= 3599:
            raise InputError(f"--seconds {self.seconds:g} must lie between 1 and 3599")


def prove(spec: Spec, *, folder: Path, say: Say) -> Proof:
    """Measure and put the figures beside their budgets."""
    figures = measure(say=say, seconds=spec.seconds)
    return Proof(
        name="source",
        title="Source: Nexmark events read by one slot on one core",
        checks=tuple(
            Check.of(f.what, f.measured, f.budget, at_most=False, unit=f.unit) for f in figures
        ),
        details=tuple(
            {"figure": f.what, "unit": f.unit, "per second of CPU": round(f.by_cpu.mean, 1)}
            for f in figures
        ),
        notes=("a budget is kept by the mean, by the clock on the wall: let nothing else run",),
    )
