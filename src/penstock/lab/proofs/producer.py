"""How fast Nexmark's events are written to Kafka, beside a broker on the same machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import EngineError, InputError
from penstock.lab.host.processes import own_cpu_seconds
from penstock.lab.kafka.broker import LocalBroker
from penstock.lab.kafka.producer import NexmarkProducer, Progress
from penstock.lab.proofs.proof import Check, Proof, Say
from penstock.report.statistics import estimate
from penstock.workloads.nexmark import NexmarkStream
from penstock.workloads.patterns import Constant

MOST_REPEATS = 100
BUDGET = 100_000.0  # events/s
EVENTS = 500_000  # of a repeat; 140 MB
PARTITIONS = 8
RELEASED = 100_000.0  # events/s by the pattern, long ago: all of them are late at the start
WARM_UP = 1  # repeats
LONGEST = 300.0  # seconds for a repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """Times that half a million bids are written, and the processes that write them."""

    repeats: int = 5
    processes: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.repeats <= MOST_REPEATS:
            raise InputError(f"--repeats {self.repeats} must lie between 1 and {MOST_REPEATS}")


def prove(spec: ProducerSettings, *, folder: Path, say: Say) -> Proof:
    """Measure beside a broker of its own, and put the figure beside its budget."""
    return judge(measure(spec, say), spec.processes)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRate:
    """Events per second of one repeat: by the clock, and by the CPU time of all involved.

    Those are this process, the producer's and the broker; their start is among the CPU time.
    """

    wall: float
    cpu: float


def measure(spec: ProducerSettings, say: Say) -> list[ProducerRate]:
    """The rate of each repeat, each into a new topic of one broker, after one that warms up."""
    stream = NexmarkStream(
        pattern=Constant(rps=RELEASED),
        start=1.7e9,
        seconds=EVENTS / RELEASED,
        partitions=PARTITIONS,
    )
    rates = []
    with LocalBroker(say=say) as broker:
        for number in range(-WARM_UP, spec.repeats):
            writing = NexmarkProducer(
                stream,
                bootstrap_servers=broker.bootstrap_servers,
                prefix=f"speed{number}",
                processes=spec.processes,
            )
            rate = _one(writing)
            if number >= 0:
                rates.append(rate)
                say(f"repeat {number + 1} of {spec.repeats}: {rate.wall:,.0f} events/s")
    return rates


def _one(writing: NexmarkProducer) -> ProducerRate:
    samples: list[tuple[float, int]] = []

    def watch(progress: Progress) -> None:
        samples.append((time.monotonic(), progress.written))

    before = own_cpu_seconds()
    with writing as producer:
        done = producer.wait(within=LONGEST, watch=watch)
    return ProducerRate(wall=rate_of(samples), cpu=done.written / (own_cpu_seconds() - before))


def rate_of(samples: Sequence[tuple[float, int]]) -> float:
    """Events per second between the first sample with events and the first with all of them.

    ``samples`` are times in seconds and events written until then. How long the processes took
    to start does not count, nor how long they took to end.

    >>> rate_of([(0.0, 0), (2.0, 100), (3.0, 300), (4.0, 500), (9.0, 500)])
    200.0
    """
    last = max((written for _, written in samples), default=0)
    some = [(moment, written) for moment, written in samples if written > 0]
    whole = [(moment, written) for moment, written in some if written == last]
    if not some or whole[0][0] <= some[0][0]:
        raise EngineError(
            f"{last:,} events were written between two looks: too few to tell a rate. Write more"
        )
    (began, first), (ended, _) = some[0], whole[0]
    return (last - first) / (ended - began)
