"""The tables of the extended sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from penstock.comparison.cell import Cell
from penstock.comparison.results import Results
from penstock.papers.thesis import cells, convergence, published
from penstock.papers.thesis.tables import Compared, Line, compare, measured
from penstock.report.statistics import Difference
from penstock.report.table import Table, interval, number, percent
from penstock.simulator import FluidEngine, FluidSpec, queries
from penstock.workloads.patterns import Constant

LATENCY, SLOTS = "latency_mean", "slots_mean"


def standings(results: Results) -> list[Table]:
    """Every auto-scaler on every scene.

    Late: the share of the time with a queue latency above the SLO. Done: consumed / offered.
    Regret: slot-seconds beyond the oracle's.
    """
    header = ("", "slots", "latency s", "p95 s", "late", "done", "acts", "regret")
    grids = []
    for title, group in _by_scene(results.cells).items():
        rows: list[tuple[str, ...]] = []
        for cell in group:
            seconds = cell.seconds
            rows.append(
                (
                    cell.policy,
                    interval(results.estimate(cell.key, SLOTS)),
                    interval(results.estimate(cell.key, LATENCY)),
                    number(_mean(results, cell.key, "latency_p95")),
                    percent(_mean(results, cell.key, "slo_seconds") / seconds),
                    percent(_mean(results, cell.key, "throughput")),
                    number(_mean(results, cell.key, "actions")),
                    percent(_mean(results, cell.key, "regret")),
                )
            )
        oracle = number(_mean(results, group[0].key, "oracle_slots_mean"))
        rows.append(("oracle", oracle, *("–" for _ in header[2:])))
        faint = frozenset({len(rows) - 1})
        grids.append(Table(title=title, header=header, rows=tuple(rows), faint=faint))
    return grids


def stages(results: Results) -> list[Table]:
    """Which auto-scaler came to rest in which stage."""
    grids = []
    for query in dict.fromkeys(cell.query for cell in results.cells):
        rows = [(c.policy, c.key, None) for c in results.cells if c.query == query]
        grids.append(convergence.grid(results, f"query {query[1:]}", rows))
    return grids


def distances(results: Results) -> list[Table]:
    """Slots beyond the best fixed size, and the latency that came with them."""
    grids = []
    seeds = results.seeds[:2]
    for title, group in _by_scene(results.cells).items():
        cell = group[0]
        seconds = min(3600, cell.seconds)
        rate = cell.workload_parameters["rps"]
        best = optimum(cell.query, rate, seeds, seconds)
        slots = sum(best.values())
        sizes = ", ".join(f"{pool} {size}" for pool, size in best.items())
        rows = tuple(
            (
                c.policy,
                interval(results.estimate(c.key, SLOTS)),
                percent(_mean(results, c.key, SLOTS) / slots - 1, sign=True),
                interval(results.estimate(c.key, LATENCY)),
                number(_mean(results, c.key, "latency_p95")),
                number(_mean(results, c.key, "actions")),
            )
            for c in group
        )
        header = ("", "slots", "from the optimum", "latency s", "p95 s", "acts")
        scene = f"{title}: {rate:,.0f} records/s, optimum {slots} ({sizes})"
        grids.append(Table(title=scene, header=header, rows=rows))
    return grids


def limits(results: Results) -> list[Table]:
    """A table of what changes without the limit, paired by seed."""
    rows = []
    for cell in results.cells:
        free = f"{cell.key}-free"
        if free not in {c.key for c in results.cells}:
            continue
        slots = results.paired(free, cell.key, SLOTS)
        latency = results.paired(free, cell.key, LATENCY)
        rows.append(
            (
                f"{cell.query.upper()} {cell.workload} {published.NAMES[cell.policy]}",
                number(_mean(results, cell.key, SLOTS)),
                _marked(slots),
                number(_mean(results, cell.key, LATENCY)),
                _marked(latency),
            )
        )
    header = ("", "slots", "Δ slots", "latency s", "Δ latency")
    title = "Change without the limit (free − limited; * where it is more than chance)"
    return [Table(title=title, header=header, rows=tuple(rows))]


def best_values(results: Results) -> list[Table]:
    """The fastest and the most frugal value of each auto-scaler on each query and workload."""
    grids = []
    for policy, name in published.NAMES.items():
        rows = []
        for title, group in _by_scene(results.cells).items():
            mine = {_value(c): c.key for c in group if c.policy == policy}
            chosen = mine[published.CHOSEN[policy]]
            latency = {value: _mean(results, key, LATENCY) for value, key in mine.items()}
            slots = {value: _mean(results, key, SLOTS) for value, key in mine.items()}
            fastest = min(mine, key=lambda v: latency[v])
            enough = [v for v in mine if latency[v] <= _mean(results, chosen, LATENCY)]
            frugal = min(enough, key=lambda v: slots[v])
            rows.append(
                (
                    title,
                    *(
                        _choice(v, slots, latency)
                        for v in (published.CHOSEN[policy], fastest, frugal)
                    ),
                )
            )
        header = ("value: slots, latency s", "the thesis's", "fastest", "frugal")
        grids.append(Table(title=name, header=header, rows=tuple(rows)))
    return grids


def every_table(results: Results, *, policies: Sequence[str]) -> list[Table]:
    """The thesis's tables with the repaired and improved auto-scalers below the thesis's."""
    grids = []
    for id in published.TABLES:
        table = compare(id, results)
        scenes = dict.fromkeys((line.query, line.workload) for line in table.lines)
        several = len(scenes) > 1
        lines: list[Line] = []
        for query, workload in scenes:
            own = [x for x in table.lines if x.query == query]
            prefix = f"{query.upper()} " if several else ""
            more = [
                Line(
                    label=prefix + policy,
                    query=query,
                    workload=workload,
                    cell=(key := cells.cell(query, workload, policy).key),
                    policy=policy,
                    ours=measured(key, results),
                )
                for policy in policies
            ]
            lines += [*own[:-1], *more, own[-1]]  # the oracle last
        wider = Compared(id=id, title=table.title, lines=tuple(lines), seeds=table.seeds)
        grids.append(wider.compact())
    for query in dict.fromkeys(row.query for row in published.CONVERGENCE):
        rows = [(p, cells.cell(query, "convergence", p).key, None) for p in policies]
        title = f"Table {published.CONVERGENCE_ID}, query {query[1:]}"
        grids.append(convergence.grid(results, title, rows))
    return grids


def _by_scene(found: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Cells that differ only in policy and parameters; named by what is left of the key."""
    groups: dict[str, list[Cell]] = {}
    for cell in found:
        suffix = cell.key.removeprefix(f"{cell.query}-{cell.workload}-{cell.policy}").strip("-")
        swept = cell.policy_parameters  # then the suffix names the parameter
        words = [cell.query.upper(), cell.workload, "" if swept else suffix.replace("-", " ")]
        groups.setdefault(" ".join(w for w in words if w), []).append(cell)
    return groups


def _value(cell: Cell) -> float:
    return float(cell.policy_parameters[cells.PARAMETERS[cell.policy]])


def _choice(value: float, slots: dict[float, float], latency: dict[float, float]) -> str:
    return f"{value:g}: {number(slots[value])}, {number(latency[value])}"


def _marked(difference: Difference) -> str:
    return interval(difference) + "*" * (difference.verdict != "tie")


def _mean(results: Results, key: str, score: str) -> float:
    return results.estimate(key, score).mean


# The best fixed size under a constant rate, found by sweeping each operator's size.
#
# The thesis asks for it as the measure of an auto-scaler's accuracy. [kanis23, 8.3]

SECONDS = 3600
BEHIND = 5.0  # seconds of input; a larger lag at the end means that a size does not keep up
AMPLE = 2  # times the need: what the other operators have while one is swept
SWEEP = 6  # sizes above the need that are tried


def optimum(
    query: str, rate: float, seeds: Sequence[int], seconds: int = SECONDS
) -> dict[str, int]:
    """The smallest size of each operator that keeps up with every seed tried.

    Each is swept from one below its need upwards, the others being ample. The sizes found are
    then tried together; where noise makes them fall behind, all grow by one in turn, the largest
    first.
    """
    spec = queries.create(query).spec
    need = spec.fewest_slots(source_rates(spec, rate))
    ample = {pool: AMPLE * slots + 1 for pool, slots in need.items()}
    sizes: dict[str, int] = {}
    for pool, slots in need.items():
        for size in range(max(1, slots - 1), slots + SWEEP):
            if keeps_up(spec, {**ample, pool: size}, rate, seeds, seconds):
                break
        sizes[pool] = size
    for pool in sorted(sizes, key=lambda name: -sizes[name]) * SWEEP:
        if keeps_up(spec, sizes, rate, seeds, seconds):
            break
        sizes[pool] += 1
    return sizes


def keeps_up(
    spec: FluidSpec, sizes: Mapping[str, int], rate: float, seeds: Sequence[int], seconds: int
) -> bool:
    """Whether a fixed size ends without a lag worth mentioning, with every seed."""
    fixed = replace(spec, start=dict(sizes))
    for seed in seeds:
        engine = FluidEngine(fixed, Constant(rps=rate), seconds=seconds, seed=seed)
        engine.advance(seconds)
        lag = float(np.asarray(engine.series.lag)[-1])
        if lag > BEHIND * rate or float(engine.series.expired.sum()) > 0:
            return False
    return True


def source_rates(spec: FluidSpec, rate: float) -> dict[str, float]:
    """Records/s of each source of a query that gets ``rate`` in all."""
    sources = spec.pipeline.sources
    return {name: rate * spec.source_shares.get(name, 1 / len(sources)) for name in sources}
