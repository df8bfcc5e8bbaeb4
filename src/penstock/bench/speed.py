"""How fast the simulator is, and that its cost grows in proportion to what is simulated.

``python -m penstock.bench.speed`` prints both; exit code 1 when the budget is missed.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Loop
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies.ds2 import DS2
from penstock.simulator.fluid import FluidEngine
from penstock.simulator.spec import FluidSpec
from penstock.workloads.patterns import Cosine

BUDGET_MS = 60.0
PERIOD = 15
MINUTES = 140
OPERATORS = 3
FACTORS = (1, 4, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Wall-clock milliseconds of one run, over several runs after a warm-up.

    ``engine_mean`` the same run without policy, guards and loop: advance and observe only.
    """

    runs: int
    mean: float
    median: float
    fastest: float
    engine_mean: float
    budget: float

    @property
    def within_budget(self) -> bool:
        """Whether the mean keeps the budget."""
        return self.mean <= self.budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Cost of one run against its size.

    ``ms`` of the fastest of several runs · ``relative`` cost per unit of size relative to the
    smallest: 1 is linear, below 1 better.
    """

    what: str
    sizes: tuple[int, ...]
    ms: tuple[float, ...]

    @property
    def relative(self) -> tuple[float, ...]:
        """(ms / size) / (ms / size of the smallest)."""
        unit = self.ms[0] / self.sizes[0]
        return tuple(ms / size / unit for ms, size in zip(self.ms, self.sizes, strict=True))


def chain(operators: int) -> FluidSpec:
    """Q1 of the thesis, its middle operator repeated: slots per million records/s from notes."""
    if operators < 2:
        raise InputError(f"a chain of {operators} operators needs a source and a sink: at least 2")
    names = ["source", *(f"map-{i}" for i in range(1, operators - 1)), "sink"]
    rates = dict.fromkeys(names, 1e6 / 3.0) | {"source": 1e6 / 0.60, "sink": 1e6 / 1.45}
    return FluidSpec(
        pipeline=Pipeline(
            operators={name: Operator(pool=name) for name in names},
            edges=list(itertools.pairwise(names)),
        ),
        service_rates=rates,
        start=dict.fromkeys(names, 5),
    )


def simulate(spec: FluidSpec, minutes: int, seed: int) -> FluidEngine:
    """One run as in the thesis: DS2, a decision every 15 s, its guards, a cosine of an hour."""
    engine = _engine(spec, minutes, seed)
    guards = Guards(cool_down=300.0, step_up=15, cap=80 * len(spec.start))
    loop = Loop(engine, DS2(), guards, mode="act", seed=seed)
    loop.run(period=PERIOD, ticks=minutes * 60 // PERIOD)
    return engine


def measure_speed(*, runs: int = 100, minutes: int = MINUTES, budget: float = BUDGET_MS) -> Speed:
    """Mean cost of one run of three operators, one process, seeds 1 to ``runs``."""
    spec = chain(OPERATORS)
    simulate(spec, minutes, 0)  # compile, fill caches
    times = [_milliseconds(simulate, spec, minutes, seed) for seed in range(1, runs + 1)]
    bare = [_milliseconds(_observe_only, spec, minutes, seed) for seed in range(1, runs + 1)]
    return Speed(
        runs=runs,
        mean=sum(times) / runs,
        median=sorted(times)[runs // 2],
        fastest=min(times),
        engine_mean=sum(bare) / runs,
        budget=budget,
    )


def measure_scaling(*, runs: int = 5, factors: Sequence[int] = FACTORS) -> tuple[Scaling, Scaling]:
    """Cost against the number of operators, and against the simulated time."""
    by_operators, by_time = [], []
    for factor in factors:
        by_operators.append(_fastest(chain(OPERATORS * factor), MINUTES, runs))
        by_time.append(_fastest(chain(OPERATORS), MINUTES * factor, runs))
    return (
        Scaling(
            what="operators",
            sizes=tuple(OPERATORS * f for f in factors),
            ms=tuple(by_operators),
        ),
        Scaling(
            what="simulated minutes",
            sizes=tuple(MINUTES * f for f in factors),
            ms=tuple(by_time),
        ),
    )


def _engine(spec: FluidSpec, minutes: int, seed: int) -> FluidEngine:
    pattern = Cosine(low=200e3, high=2.5e6, period=3600.0)
    return FluidEngine(spec, pattern, seconds=minutes * 60, seed=seed)


def _observe_only(spec: FluidSpec, minutes: int, seed: int) -> None:
    engine = _engine(spec, minutes, seed)
    for _ in range(minutes * 60 // PERIOD):
        engine.advance(PERIOD)
        engine.observe()


def _fastest(spec: FluidSpec, minutes: int, runs: int) -> float:
    simulate(spec, minutes, 0)
    return min(_milliseconds(simulate, spec, minutes, seed) for seed in range(1, runs + 1))


def _milliseconds(
    run: Callable[[FluidSpec, int, int], object], spec: FluidSpec, minutes: int, seed: int
) -> float:
    began = time.perf_counter()
    run(spec, minutes, seed)
    return (time.perf_counter() - began) * 1e3


def main() -> int:
    """Measure, print, and say by the exit code whether the budget was kept."""
    speed = measure_speed()
    console = Console()
    table = Table(title=f"{MINUTES} minutes, {OPERATORS} operators, DS2 every {PERIOD} s")
    for column in ("runs", "mean ms", "median ms", "fastest ms", "engine alone ms", "budget ms"):
        table.add_column(column, justify="right")
    figures = (speed.mean, speed.median, speed.fastest, speed.engine_mean, speed.budget)
    table.add_row(str(speed.runs), *(f"{ms:.1f}" for ms in figures))
    console.print(table)
    for scaling in measure_scaling():
        table = Table(title=f"Cost against {scaling.what}")
        for column in (scaling.what, "ms per run", "cost per unit, relative"):
            table.add_column(column, justify="right")
        for row in zip(scaling.sizes, scaling.ms, scaling.relative, strict=True):
            table.add_row(str(row[0]), f"{row[1]:.1f}", f"{row[2]:.2f}")
        console.print(table)
    if not speed.within_budget:
        console.print(f"[red]missed: {speed.mean:.1f} ms a run, the budget is {speed.budget:g} ms")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
