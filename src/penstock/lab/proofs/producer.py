"""How fast Nexmark's events are written to Kafka; by :mod:`penstock.lab.kafka.speed`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.compare.statistics import estimate
from penstock.core.errors import InputError
from penstock.lab.kafka.speed import BUDGET, ProducerRate, measure_producer
from penstock.lab.proofs.proof import Check, Proof, Say

MOST_REPEATS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Times that half a million bids are written, and the processes that write them."""

    repeats: int = 5
    processes: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.repeats <= MOST_REPEATS:
            raise InputError(f"--repeats {self.repeats} must lie between 1 and {MOST_REPEATS}")


def prove(spec: Spec, *, folder: Path, say: Say) -> Proof:
    """Measure beside a broker of its own, and put the figure beside its budget."""
    return judge(
        measure_producer(repeats=spec.repeats, processes=spec.processes, say=say), spec.processes
    )


def judge(rates: Sequence[ProducerRate], processes: int) -> Proof:
    """The mean rate beside its budget."""
    return Proof(
        name="producer",
        title=f"Producer: bids with every column into a broker beside it, {processes} processes",
        checks=(
            Check.of(
                "events/s",
                estimate([rate.wall for rate in rates]),
                BUDGET,
                at_most=False,
                unit="events/s",
            ),
        ),
        details=tuple(
            {
                "repeat": number,
                "events/s": round(rate.wall),
                "events/s of CPU, broker included": round(rate.cpu),
            }
            for number, rate in enumerate(rates, start=1)
        ),
        notes=("a budget is kept by the mean, by the clock on the wall: let nothing else run",),
    )
