"""How long the computations of geo-distributed scaling take on one core, beside their budgets.

``python -m benchmarks.geo`` prints the table; exit code 1 when a budget is missed.
How costs are judged is in ``benchmarks.costs``; linear algebra runs on one thread.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from rich.console import Console

from benchmarks.costs import Cost, Piece, Work, measure, on_one_thread, verdict
from benchmarks.vivaldi import plane
from penstock.capacity import readings
from penstock.capacity.learning import learn
from penstock.capacity.measurements import MOST, Measurement
from penstock.capacity.mst import calibrate
from penstock.capacity.readings import Layout, Reading
from penstock.capacity.slowest import slowest
from penstock.core.codec import to_json
from penstock.core.latency import LatencyMap
from penstock.core.model import OperatorSeen, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.network.maps import from_inbound, random_pairs
from penstock.network.placement import joining, leaving, ranked
from penstock.policies.gesscale.calibration import no_calibration, with_measurement
from penstock.policies.gesscale.gesscale import Gesscale, Memory
from penstock.policies.gesscale.gesscale_plus import GesscalePlus
from penstock.policies.gesscale.observed import Experience
from penstock.report.table import NONE, Table

FIT_MS, PLACEMENT_MS = 5.0, 50.0
NODES = 1000
FEW, MANY = 20, 500  # nodes in use of them
SIZES = (1, 2, 3, 8, MOST)  # configurations that were measured
LAYOUTS = (1, 3, 8, readings.MOST)  # that were read
ALPHA, BETA, GAMMA = 100.0, 0.85, 40.0
SHAPE = Pipeline(
    operators={"source": Operator(pool="source"), "map": Operator(pool="map")},
    edges=(("source", "map"),),
)


def networks(nodes: int = NODES, seed: int = 1) -> dict[str, LatencyMap]:
    """Of the kinds that differ in what is hard: no order at all, hubs, ties, a metric."""
    names = [f"node-{i}" for i in range(nodes)]
    inbound = np.random.default_rng(seed).uniform(0.0, 0.15, nodes).tolist()
    return {
        "random pairs": random_pairs(names, 0.0, 0.3, seed),
        "inbound delays": from_inbound(dict(zip(names, inbound, strict=True))),
        "all alike": from_inbound(dict.fromkeys(names, 0.01)),
        "plane": plane(seed, nodes),
    }


def measure_fits(sizes: Sequence[int] = SIZES, *, runs: int = 40) -> list[Cost]:
    """Calibrations with ever more configurations, of readings that are off by 5 %."""
    numbers = itertools.count(1)
    return [
        measure(f"fit of {size}", [_fit_of(size, numbers)], runs=runs, budget=FIT_MS)
        for size in sizes
    ]


def measure_learning(sizes: Sequence[int] = LAYOUTS, *, runs: int = 40) -> list[Cost]:
    """Models of work, waiting and exchange from ever more layouts, read with errors of 5 %."""
    numbers = itertools.count(1)
    return [
        measure(f"learning from {size}", [_learning_of(size, numbers)], runs=runs, budget=FIT_MS)
        for size in sizes
    ]


def measure_placements(maps: Mapping[str, LatencyMap], *, runs: int = 12) -> list[Cost]:
    """One node more, the order of all free ones, one slot less, half of them less."""
    table: dict[str, Callable[[LatencyMap, list[str]], object]] = {
        "the best node": lambda rtt, nodes: ranked(rtt, nodes[:FEW], nodes[FEW:]),
        "the best node, many in use": lambda rtt, nodes: ranked(rtt, nodes[:MANY], nodes[MANY:]),
        "all nodes, one by one": lambda rtt, nodes: list(joining(rtt, nodes[:FEW], nodes[FEW:])),
        "the first slot to leave": lambda rtt, nodes: next(leaving(rtt, _slots(nodes))),
        "half the slots to leave": lambda rtt, nodes: _half(leaving(rtt, _slots(nodes))),
    }
    return [
        measure(
            what,
            [_placement(work, rtt) for rtt in maps.values()],
            runs=runs,
            budget=PLACEMENT_MS,
        )
        for what, work in table.items()
    ]


def measure_decisions(maps: Mapping[str, LatencyMap], *, runs: int = 12) -> list[Cost]:
    """Whole decisions of Gesscale and of gesscale+: nodes more of many, most of many slots less."""
    found = []
    for name, decision in (("gesscale", _decision), ("gesscale+", _decision_plus)):
        up = [decision(_seen(rtt, FEW, held=0.9)) for rtt in maps.values()]
        down = [decision(_seen(rtt, MANY, held=0.0)) for rtt in maps.values()]
        found += [
            measure(f"{name} adds", up, runs=runs, budget=PLACEMENT_MS),
            measure(f"{name} removes many", down, runs=runs, budget=PLACEMENT_MS),
        ]
    return found


def table(costs: Sequence[Cost], nodes: int = NODES) -> Table:
    """Measured beside budget."""
    return Table(
        title="Geo-distributed scaling on one core, ms of CPU",
        header=("what", "pieces", "quiet", "mean", "worst", "budget"),
        rows=tuple(
            (
                cost.what,
                str(cost.pieces),
                *(f"{ms:.1f}" for ms in (cost.quiet, cost.mean, cost.worst)),
                NONE if cost.budget is None else f"{cost.budget:g}",
            )
            for cost in costs
        ),
        notes=(
            "quiet: the slowest piece, fastest quarter of its runs",
            f"fits of so many configurations; all others among {nodes:,} nodes",
        ),
    )


def _fit_of(size: int, numbers: Iterator[int]) -> Piece:
    def prepare() -> Work:
        random = np.random.default_rng([size, next(numbers)])  # never seen before: fits are kept
        measured = [
            Measurement(
                slots=slots,
                delay=0.01 * slots,
                rate=_mst(slots, 0.01 * slots) * random.uniform(0.95, 1.05),
            )
            for slots in range(1, size + 1)
        ]
        return lambda: calibrate(measured)

    return prepare


def _learning_of(size: int, numbers: Iterator[int]) -> Piece:
    def prepare() -> Work:
        random = np.random.default_rng([size, next(numbers)])
        read = [
            _reading(slots, 0.01 * slots, random.uniform(0.95, 1.05))
            for slots in range(1, size + 1)
        ]
        return lambda: learn(read)

    return prepare


def _placement(work: Callable[[LatencyMap, list[str]], object], rtt: LatencyMap) -> Piece:
    nodes = list(rtt.nodes)
    return lambda: lambda: work(rtt, nodes)


def _decision(seen: Snapshot) -> Piece:
    policy = Gesscale()
    memory: Memory = policy.start(0)
    known = no_calibration()
    for slots in range(1, FEW):
        new = Measurement(slots=slots, delay=0.01 * slots, rate=_mst(slots, 0.01 * slots))
        known = with_measurement(known, new, parameters=3)
    memory = {**memory, "pools": {"map": known}}
    return lambda: lambda: policy.decide(seen, memory)


def _decision_plus(seen: Snapshot) -> Piece:
    policy = GesscalePlus()
    known: Experience = {
        "readings": [to_json(_reading(slots, 0.01 * slots, 1.0)) for slots in range(1, FEW)],
        "count": FEW,
        "compared": 0,
        "error": 0.0,
    }
    memory = policy.start(0)
    memory["pools"] = {"map": known}
    return lambda: lambda: policy.decide(seen, memory)


def _reading(slots: int, delay: float, factor: float) -> Reading:
    """Every slot with its even part of the work; the first has the source beside it."""
    layout = Layout(
        slots=slots,
        hosts=1,
        host=1 / slots,
        rest=1 / slots if slots > 1 else 0.0,
        delay=delay,
        exchange=slowest([delay / 2] * slots),
    )
    return Reading(
        layout=layout,
        rate=_mst(slots, delay) * factor,
        full=True,
        busiest=0.95,
        host=0.95,
        rest=0.9 * (slots - 1),
        rest_share=1.0 - 1 / slots,
        source=0.1,
        waits=0.1,
    )


def _seen(rtt: LatencyMap, used: int, *, held: float) -> Snapshot:
    """A map on the first nodes; without back pressure it needs the throughput of ten."""
    nodes = rtt.nodes[:used]
    rate = _mst(used, rtt.worst(nodes)) if held else _mst(10, 0.0)
    offered = 2.0 * rate if held else rate
    busy = 1.0 if held else 10 / used
    seen = OperatorSeen(
        parallelism=1.0,
        arrival_rate=rate,
        output_rate=rate,
        busy=busy,
        idle=1.0 - busy,
        backpressured=0.0,
    )
    source = replace(
        seen, offered_rate=offered, lag=0.0, busy=1.0 - held, idle=0.0, backpressured=held
    )
    return Snapshot(
        time=60.0,
        window=60.0,
        pipeline=SHAPE,
        operators={"source": source, "map": seen},
        pools={
            "source": (Slot(id="source", node=nodes[0]),),
            "map": tuple(Slot(id=f"map-{node}", node=node) for node in nodes),
        },
        free_nodes=rtt.nodes[used:],
        rtt=rtt,
    )


def _mst(slots: int, delay: float) -> float:
    return float(ALPHA * slots**BETA - GAMMA * delay)


def _slots(nodes: Sequence[str]) -> list[tuple[str, str]]:
    return [(node, node) for node in nodes]


def _half(steps: Iterator[object]) -> list[object]:
    return list(itertools.islice(steps, MANY))


def main() -> int:
    """Measure, print, and say by the exit code whether the budgets were kept."""
    progress, console = Console(stderr=True), Console()
    progress.print("fits …")
    costs = measure_fits() + measure_learning()
    progress.print(f"placements among {NODES:,} nodes …")
    maps = networks()
    costs += measure_placements(maps)
    costs += measure_decisions(maps)
    console.print(table(costs).rich())
    return verdict(costs, console)


if __name__ == "__main__":
    on_one_thread("benchmarks.geo")
    sys.exit(main())
