"""The fluid simulator against a discrete-event simulation of single records, by simpy."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import simpy

from penstock.core.pipeline import Operator, Pipeline
from penstock.simulator import RESTART, FluidEngine, FluidSpec
from penstock.workloads.patterns import Pattern, Step

SECONDS = 600
BUFFER = 0.25  # seconds of work


@dataclass
class Records:
    """Single records through a chain of servers with bounded buffers and blocking."""

    rates: list[float]  # records/s of each operator in all
    pattern: Pattern
    taken: list[tuple[float, float]] = field(default_factory=list)  # arrival, left the queue
    delivered: int = 0

    def run(self) -> None:
        env = simpy.Environment()
        queue: Any = simpy.Store(env)
        buffers: list[Any] = [
            simpy.Store(env, capacity=max(1, round(BUFFER * rate))) for rate in self.rates[1:]
        ]
        env.process(self._arrive(env, queue))
        stores = [queue, *buffers, None]
        for i, (rate, (above, below)) in enumerate(zip(self.rates, pairwise(stores), strict=True)):
            env.process(self._serve(env, i, rate, above, below))
        env.run(until=SECONDS)

    def _arrive(self, env: Any, queue: Any) -> Generator[Any, Any, None]:
        for second in range(SECONDS):
            records = round(self.pattern.offered(second + 1) - self.pattern.offered(second))
            for k in range(records):
                due = second + k / records
                yield env.timeout(max(0.0, due - env.now))
                yield queue.put(env.now)
        yield env.timeout(SECONDS)

    def _serve(
        self, env: Any, i: int, rate: float, above: Any, below: Any
    ) -> Generator[Any, Any, None]:
        while True:
            came = yield above.get()
            yield env.timeout(1.0 / rate)
            if i == 0:
                self.taken.append((came, env.now))
            if below is None:
                self.delivered += 1
            else:
                yield below.put(came)


def fluid(rates: list[float], pattern: Pattern, slots: int = 1) -> FluidEngine:
    names = [f"op{i}" for i in range(len(rates))]
    spec = FluidSpec(
        pipeline=Pipeline(
            operators={name: Operator(pool=name) for name in names}, edges=list(pairwise(names))
        ),
        service_rates={name: rate / slots for name, rate in zip(names, rates, strict=True)},
        start=dict.fromkeys(names, slots),
        profile=RESTART,
        buffer_seconds=BUFFER,
        capacity_noise=0.0,
        metric_noise=0.0,
    )
    engine = FluidEngine(spec, pattern, seconds=SECONDS)
    engine.advance(SECONDS)
    return engine


@pytest.mark.parametrize(
    "rates",
    [
        pytest.param([120.0, 60.0, 200.0], id="the middle is the bottleneck"),
        pytest.param([60.0, 120.0, 200.0], id="the source is the bottleneck"),
        pytest.param([120.0, 200.0, 60.0], id="the sink is the bottleneck"),
    ],
)
def test_throughput_and_mean_wait_agree_with_single_records(rates: list[float]) -> None:
    # 40/s for 100 s, then 90/s for 150 s against a bottleneck of 60/s, then it drains.
    pattern = Step(low=40.0, high=90.0, at=100.0, hold=150.0)
    records = Records(rates, pattern)
    records.run()
    engine = fluid(rates, pattern)
    series = engine.series

    assert series.delivered.sum() == pytest.approx(records.delivered, rel=0.01)
    assert series.consumed.sum() == pytest.approx(len(records.taken), rel=0.01)
    waits = np.array([left - came for came, left in records.taken])
    wait = (series.queue_latency * series.consumed).sum() / series.consumed.sum()
    assert wait == pytest.approx(waits.mean(), rel=0.03)
    assert series.queue_latency.max() == pytest.approx(waits.max(), rel=0.03)
    # While it is overloaded, the throughput is the bottleneck's.
    between = [left for _, left in records.taken if 120 <= left < 240]
    assert len(between) / 120 == pytest.approx(60.0, rel=0.02)
    assert series.consumed[120:240].mean() == pytest.approx(60.0, rel=0.02)
