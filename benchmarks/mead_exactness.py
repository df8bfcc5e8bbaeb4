"""Whether MAP/PH/1 is exact: its mean and 95th percentile beside a long simulation of the queue.

``python -m benchmarks.mead_exactness`` prints the table; exit code 1 when the model is outside
what the simulation leaves possible. One path of ten million arrivals per process is replayed at
every utilisation, in twenty batches that carry phase and work over; a batch lasts dozens of times
as long as the queue remembers, so that batches are as good as independent.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from scipy.special import stdtrit

from penstock.papers.mead.traces import live_maps
from penstock.queueing import MarkovianArrivalProcess, PhaseType
from penstock.queueing.map2 import hyperexponential
from penstock.queueing.map_ph_1 import solve
from penstock.queueing.matrices import Floats
from penstock.queueing.replay import departures
from penstock.queueing.simple import kingman_mean, mg1_mean
from penstock.report.statistics import CONFIDENCE, Estimate, estimate
from penstock.report.table import Table, percent

ARRIVALS = 10_000_000
BATCHES = 20
LOADS = (0.5, 0.7, 0.85)
HIGH = 0.95
SEED = 1
PHASES = 2  # of the service, an Erlang law: its SCV is 0.5


def _block(scv: float, tau: float) -> MarkovianArrivalProcess:
    r2 = (1.0 + scv) / 2.0
    return hyperexponential(r2=r2, low=0.3, gamma=float(np.exp(-1.0 / tau)))


PROCESSES: Mapping[str, MarkovianArrivalProcess] = {
    "SCV 4": _block(4.0, 10.0),
    "SCV 10": _block(10.0, 5.0),
    "SCV 20": _block(20.0, 2.0),
    "LM": live_maps().scaled(1.0),
}
"""Two phases whose correlation fades with 10, 5 and 2 arrivals; eight phases with up to 150."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One queue: model and simulation, in mean times between arrivals, and means of others."""

    process: str
    load: float
    mean: float
    p95: float
    seen_mean: Estimate
    seen_p95: Estimate
    mg1: float
    kingman: float


def measure(
    name: str,
    *,
    loads: Sequence[float] = LOADS,
    arrivals: int = ARRIVALS,
    batches: int = BATCHES,
    seed: int = SEED,
) -> tuple[Row, ...]:
    """A process at several utilisations, the same arrivals and services at all of them."""
    process = PROCESSES[name]
    rng = np.random.default_rng([seed, list(PROCESSES).index(name)])
    found: dict[float, list[tuple[float, float]]] = {load: [] for load in loads}
    for batch, stays in enumerate(_simulated(process, loads, arrivals // batches, rng)):
        for load in loads:
            if batch:  # the first one only fills the queue
                figures = float(stays[load].mean()), float(np.quantile(stays[load], HIGH))
                found[load].append(figures)
        if batch == batches:
            break
    return tuple(_row(name, load, found[load]) for load in loads)


def _simulated(
    process: MarkovianArrivalProcess, loads: Sequence[float], size: int, rng: np.random.Generator
) -> Iterator[dict[float, Floats]]:
    """Response times of batch after batch of one path, by utilisation."""
    free = dict.fromkeys(loads, 0.0)  # seconds after the last arrival
    for gaps in process.stream(size, rng):
        times = np.cumsum(gaps)  # since the last arrival of the batch before: precise for ever
        services = rng.gamma(PHASES, process.mean / PHASES, len(gaps))
        stays = {}
        for load in loads:
            ends = departures(times, services * load, free[load])
            stays[load] = ends - times
            free[load] = float(ends[-1] - times[-1])
        yield stays


def _row(name: str, load: float, found: Sequence[tuple[float, float]]) -> Row:
    process = PROCESSES[name]
    service = PhaseType.erlang(PHASES, mean=load * process.mean)
    law = solve(process, service)
    means, highs = zip(*found, strict=True)
    return Row(
        process=name,
        load=load,
        mean=law.mean,
        p95=law.percentile(HIGH),
        seen_mean=estimate(means),
        seen_p95=estimate(highs),
        mg1=mg1_mean(process.rate, service.mean, service.scv),
        kingman=kingman_mean(process.rate, process.scv, service.mean, service.scv),
    )


def outside(rows: Sequence[Row]) -> list[str]:
    """Where the model is outside the intervals that hold all together with 95 %.

    Of many intervals of 95 % each some miss by chance; these are of 1 − 5 %/n (Bonferroni).
    """
    figures = [
        (f"{what} of {row.process} at {row.load:g}", model, seen)
        for row in rows
        for what, model, seen in (
            ("mean", row.mean, row.seen_mean),
            ("95th percentile", row.p95, row.seen_p95),
        )
    ]
    return [
        f"{what}: {model:.4g} is not in {seen.mean:.4g} ± {half:.2g}"
        for what, model, seen in figures
        if not abs(model - seen.mean) <= (half := _joint(seen, len(figures)))
    ]


def _joint(seen: Estimate, count: int) -> float:
    """Half-width of one of so many intervals that hold together."""
    alone, joint = (
        float(stdtrit(seen.count - 1, 1.0 - (1.0 - CONFIDENCE) / 2.0 / n)) for n in (1, count)
    )
    return (seen.half_width or 0.0) * joint / alone


def table(rows: Sequence[Row]) -> Table:
    """Model beside simulation, and what models without bursts make of the mean."""
    return Table(
        title="MAP/PH/1 beside simulation, times in services",
        header=("MAP", "load", "mean", "seen", "p95", "seen", "inside", "M/PH/1", "Kingman"),
        rows=tuple(_texts(row) for row in rows),
        notes=(
            f"± 95 % by batch means; of {2 * len(rows)} such intervals about one in twenty misses "
            "by chance",
            "M/PH/1 and Kingman: error of their means",
        ),
    )


def _texts(row: Row) -> tuple[str, ...]:
    cells, inside = [], []
    for model, seen in ((row.mean, row.seen_mean), (row.p95, row.seen_p95)):
        half = seen.half_width or 0.0
        cells += [f"{model / row.load:.1f}", f"{seen.mean / row.load:.1f} ±{half / row.load:.1f}"]
        inside.append(seen.low <= model <= seen.high)
    return (
        row.process,
        f"{row.load:g}",
        *cells,
        "both" if all(inside) else "mean" if inside[0] else "p95" if inside[1] else "none",
        percent(row.mg1 / row.seen_mean.mean - 1.0, sign=True),
        percent(row.kingman / row.seen_mean.mean - 1.0, sign=True),
    )


def main() -> int:
    """Simulate, print, and say by the exit code whether the model is what it claims to be."""
    progress = Console(stderr=True)
    rows: list[Row] = []
    for name in PROCESSES:
        progress.print(f"{name}: {ARRIVALS:,} arrivals at {len(LOADS)} utilisations …")
        rows.extend(measure(name))
    console = Console()
    console.print(table(rows).rich())
    missed = outside(rows)
    for line in missed:
        console.print(f"[red]outside: {line}")
    if not missed:
        console.print("inside: all intervals together, with 95 %")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
