"""How fast the simulator and the loop are, and that their cost grows in proportion to the work.

``python -m benchmarks.speed`` prints the budgets beside what was measured; exit code 1 when
one of them is missed. Times are CPU time of this one process. Other work on the machine slows it
down all the same (shared caches, stolen time), so a budget is judged by the fastest quarter of the
runs; the mean of all, and by the clock on the wall, stand beside it.

``python -m benchmarks.speed spread`` measures runs on Spark: ``benchmarks.spread``.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec

from rich.console import Console
from rich.table import Table

from benchmarks import spread
from penstock.core.errors import InputError
from penstock.core.guards import Guards
from penstock.core.loop import Loop, State, plan
from penstock.core.model import Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies.ds2 import DS2
from penstock.simulator import queries
from penstock.simulator.fluid import FluidEngine
from penstock.simulator.spec import FluidSpec
from penstock.workloads.patterns import Cosine

RUN_BUDGET_MS = 30.0  # one run of query 1
DECISION_BUDGET_MS = 20.0  # one decision on a graph of GRAPH operators
MOST_GROWTH = 2.0  # of the cost per unit, over sixteen times the size; a square would be 16
PERIOD = 15
MINUTES = 140
OPERATORS = 3
GRAPH = 1000
WIDTH = 10
FACTORS = (1, 4, 16)

P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Milliseconds of one piece of work, over several runs after a warm-up.

    ``quiet`` mean of the fastest quarter · ``part_mean`` the same without the loop: of a run the
    engine alone, of a decision the policy alone · ``wall_mean`` by the clock on the wall; all
    others are CPU time.
    """

    what: str
    part: str
    runs: int
    mean: float
    median: float
    quiet: float
    part_mean: float
    wall_mean: float
    budget: float

    @property
    def within_budget(self) -> bool:
        """Whether the quiet runs keep the budget."""
        return self.quiet <= self.budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Cost of some work against its size.

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

    @property
    def linear(self) -> bool:
        """Whether the cost per unit stays about the same."""
        return max(self.relative) <= MOST_GROWTH


def chain(operators: int) -> FluidSpec:
    """Query 1 of the thesis, its middle operator repeated."""
    if operators < 2:
        raise InputError(f"a chain of {operators} operators needs a source and a sink: at least 2")
    rates = queries.create("q1").spec.service_rates
    middle = {f"map-{i}": rates["map"] for i in range(1, operators - 1)}
    names = ["source", *middle, "sink"]
    return FluidSpec(
        pipeline=Pipeline(
            operators={name: Operator(pool=name) for name in names},
            edges=list(itertools.pairwise(names)),
        ),
        service_rates={"source": rates["source"], **middle, "sink": rates["sink"]},
        start=dict.fromkeys(names, 5),
    )


def graph(operators: int) -> FluidSpec:
    """Layers of ten operators; each reads from two of the layer above and halves what it reads.

    The first layer are the sources. Every operator has the same demand and a pool of its own.
    """
    if operators < WIDTH:
        raise InputError(f"a graph of {operators} operators needs a whole layer: at least {WIDTH}")
    names = [f"o{i}" for i in range(operators)]
    edges = [
        (names[i - i % WIDTH - WIDTH + column], names[i])
        for i in range(WIDTH, operators)
        for column in (i % WIDTH, (i + 1) % WIDTH)
    ]
    return FluidSpec(
        pipeline=Pipeline(
            operators={name: Operator(pool=name, selectivity=0.5) for name in names}, edges=edges
        ),
        service_rates=dict.fromkeys(names, 100e3),
        start=dict.fromkeys(names, 3),
    )


def simulate(spec: FluidSpec, minutes: int, seed: int) -> FluidEngine:
    """One run under the thesis's cosine and its limits, with a DS2 decision every 15 s.

    Nothing is slept through: this is the most that a run of this length can cost.
    """
    engine = _engine(spec, minutes, seed)
    loop = Loop(engine, DS2(), _guards(spec), mode="act", seed=seed)
    loop.run(period=PERIOD, ticks=minutes * 60 // PERIOD)
    return engine


def snapshot(spec: FluidSpec) -> Snapshot:
    """What is seen of a pipeline that has run for a minute."""
    engine = _engine(spec, 1, 0)
    engine.advance(60 - PERIOD)
    engine.observe()
    engine.advance(PERIOD)
    return engine.observe()


def measure_speed(
    *, runs: int = 100, minutes: int = MINUTES, budget: float = RUN_BUDGET_MS
) -> Speed:
    """Mean cost of one run of query 1, one process, seeds 1 to ``runs``."""
    spec = queries.create("q1").spec
    return _speed(
        what=f"query 1, {minutes} minutes, DS2 every {PERIOD} s",
        part="engine alone",
        work=lambda seed: simulate(spec, minutes, seed),
        part_of_it=lambda seed: _observe_only(spec, minutes, seed),
        runs=runs,
        budget=budget,
    )


def measure_decision(
    *, runs: int = 100, operators: int = GRAPH, budget: float = DECISION_BUDGET_MS
) -> Speed:
    """Mean cost of one DS2 decision on a large graph: sanity, policy, guards."""
    spec = graph(operators)
    seen, guards, policy = snapshot(spec), _guards(spec), DS2()
    return _speed(
        what=f"one DS2 decision on a graph of {operators} operators",
        part="policy alone",
        work=lambda _: plan(policy, guards, seen, State()),
        part_of_it=lambda _: policy.decide(seen, None),
        runs=runs,
        budget=budget,
    )


def measure_scaling(*, runs: int = 5, factors: Sequence[int] = FACTORS) -> tuple[Scaling, ...]:
    """Cost against operators, simulated time and seeds of a run; operators of a decision."""

    def decision(operators: int) -> Callable[[], object]:
        spec = graph(operators)
        seen, guards, policy = snapshot(spec), _guards(spec), DS2()
        return lambda: plan(policy, guards, seen, State())

    def run(spec: FluidSpec, minutes: int = MINUTES, seeds: int = 1) -> Callable[[], object]:
        return lambda: [simulate(spec, minutes, seed) for seed in range(1, seeds + 1)]

    small = chain(OPERATORS)
    table: dict[str, tuple[int, Callable[[int], Callable[[], object]]]] = {
        "operators": (OPERATORS, lambda size: run(chain(size))),
        "simulated minutes": (MINUTES, lambda size: run(small, minutes=size)),
        "seeds": (1, lambda size: run(small, seeds=size)),
        "operators of one decision": (GRAPH // factors[-1], decision),
    }
    scalings = []
    for what, (unit, work) in table.items():
        sizes = tuple(unit * factor for factor in factors)
        ms = tuple(_fastest(work(size), runs) for size in sizes)
        scalings.append(Scaling(what=what, sizes=sizes, ms=ms))
    return tuple(scalings)


def _guards(spec: FluidSpec) -> Guards:
    """The thesis's, without its sleep; its cap of 80 slots is for three operators."""
    return Guards(cool_down=300.0, step_up=15, cap=80 * len(spec.start) // 3)


def _engine(spec: FluidSpec, minutes: int, seed: int) -> FluidEngine:
    q1 = queries.create("q1")
    pattern = Cosine(low=q1.low, high=q1.high, noise=q1.noise, from_high=True, seed=seed)
    return FluidEngine(spec, pattern, seconds=minutes * 60, seed=seed)


def _observe_only(spec: FluidSpec, minutes: int, seed: int) -> None:
    engine = _engine(spec, minutes, seed)
    for _ in range(minutes * 60 // PERIOD):
        engine.advance(PERIOD)
        engine.observe()


def _speed(
    *,
    what: str,
    part: str,
    work: Callable[[int], object],
    part_of_it: Callable[[int], object],
    runs: int,
    budget: float,
) -> Speed:
    work(0)  # compile, fill caches
    began = time.perf_counter()
    times = sorted(_milliseconds(work, seed) for seed in range(1, runs + 1))
    wall = (time.perf_counter() - began) * 1e3
    parts = [_milliseconds(part_of_it, seed) for seed in range(1, runs + 1)]
    quiet = times[: max(1, runs // 4)]
    return Speed(
        what=what,
        part=part,
        runs=runs,
        mean=sum(times) / runs,
        median=times[runs // 2],
        quiet=sum(quiet) / len(quiet),
        part_mean=sum(parts) / runs,
        wall_mean=wall / runs,
        budget=budget,
    )


def _fastest(work: Callable[[], object], runs: int) -> float:
    work()
    return min(_milliseconds(work) for _ in range(runs))


def _milliseconds(work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> float:
    began = time.process_time()
    work(*args, **kwargs)
    return (time.process_time() - began) * 1e3


def main() -> int:
    """Measure, print, and say by the exit code whether the budgets were kept."""
    console = Console()
    missed = []
    for speed in (measure_speed(), measure_decision()):
        table = Table(title=speed.what)
        for column in ("runs", "quiet ms", "median", "mean", speed.part, "wall", "budget"):
            table.add_column(column, justify="right")
        figures = (speed.quiet, speed.median, speed.mean, speed.part_mean, speed.wall_mean)
        table.add_row(str(speed.runs), *(f"{ms:.1f}" for ms in figures), f"{speed.budget:g}")
        console.print(table)
        if not speed.within_budget:
            missed.append(f"{speed.what}: {speed.quiet:.1f} ms, the budget is {speed.budget:g} ms")
    for scaling in measure_scaling():
        table = Table(title=f"Cost against {scaling.what}")
        for column in (scaling.what, "ms", "cost per unit, relative"):
            table.add_column(column, justify="right")
        for row in zip(scaling.sizes, scaling.ms, scaling.relative, strict=True):
            table.add_row(str(row[0]), f"{row[1]:.1f}", f"{row[2]:.2f}")
        console.print(table)
        if not scaling.linear:
            missed.append(
                f"cost against {scaling.what}: {max(scaling.relative):.1f} times as much per unit, "
                f"at most {MOST_GROWTH:g} counts as linear"
            )
    for line in missed:
        console.print(f"[red]missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(spread.main() if sys.argv[1:] == ["spread"] else main())
