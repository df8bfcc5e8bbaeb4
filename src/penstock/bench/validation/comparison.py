"""Runs on Spark beside the same runs on its twin: figures, errors, order, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from penstock.bench.cell import SparkCell, spark_cells
from penstock.bench.twin.profiles import read_twins
from penstock.bench.validation import agreement
from penstock.bench.validation.agreement import Order, Sample, allowed_lag, orders
from penstock.comparison.cell import Cell
from penstock.comparison.groups import (
    guards_label,
    pipeline_label,
    policy_label,
    scenes,
    workload_label,
)
from penstock.comparison.results import Results
from penstock.core.errors import InputError
from penstock.lab.rig.capacity_file import CAPACITY, read_capacities
from penstock.report.statistics import Estimate, estimate
from penstock.simulator.microbatch import Profile

EXECUTORS, LAG = "slots_mean", "latency_p95"
COMPARED: Mapping[str, str] = {
    EXECUTORS: "executors",
    LAG: "p95 lag s",
    "e2e_mean": "latency s",
    "e2e_p95": "p95 latency s",
    "throughput": "throughput",
}
"""The scores that are compared, and what they are called."""
ORDERED = (EXECUTORS, LAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One score of a policy on Spark and in the twin, over the same seeds.

    ``error`` as a share of Spark's mean · ``allowed`` of it, where there is a bound.
    """

    score: str
    spark: Estimate
    twin: Estimate
    error: float | None
    allowed: float | None = None

    @property
    def held(self) -> bool | None:
        """Whether the bound holds; ``None`` where there is none."""
        return None if self.allowed is None else agreement.within(self.error, self.allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """The first seed of a policy over time: the mean distance of the twin from Spark.

    ``executors`` and ``lag`` (seconds) mean absolute errors over the ticks.
    """

    executors: float
    lag: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCompared:
    """One policy; ``over`` is ``None`` where Spark left no trace of the first seed."""

    key: str
    label: str
    seeds: int
    figures: Mapping[str, Compared]
    over: Over | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All policies on one query and workload, and the order of each pair of them by score."""

    title: str
    query: str
    workload: str
    policies: tuple[PolicyCompared, ...]
    orders: Mapping[str, tuple[Order, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """A bench on Spark against its twin; ``profiles`` by query say what they were made from."""

    name: str
    folder: Path
    complete: bool
    scenes: tuple[Scene, ...]
    profiles: Mapping[str, Profile]


def twin_cells(results: Results, profiles: Path) -> list[SparkCell]:
    """The cells of a Spark bench that have finished runs, each with the twin of its query.

    Load and batches rest on what the bench measured, so they are exactly those of its runs.
    """
    ran = []
    for cell in results.cells:
        if not isinstance(cell, SparkCell) or cell.engine != "spark":
            raise InputError(
                f'{results.folder} ran on engine = "{cell.engine}"; only runs on Spark tell how '
                "close the twin is"
            )
        ran.append(cell)
    done = [cell for cell in ran if results.seeds_of(cell.key)]
    if not done:
        raise InputError(
            f"{results.folder} has no finished run yet; go on with it by `penstock bench --resume`"
        )
    settings, folder = done[0].spark, results.folder
    assert folder is not None
    capacities = read_capacities(folder)
    queries = dict.fromkeys(cell.query for cell in done)
    if missing := [query for query in queries if query not in capacities]:
        raise InputError(
            f"{folder / CAPACITY} has no capacity of {', '.join(missing)}, which the loads of the "
            "finished runs rest on; restore the file"
        )
    twins = read_twins(profiles, queries, settings, capacities)
    return [replace(cell, twin=twins[cell.query]) for cell in done]


def validate(spark: Results, twin: Results, *, name: str) -> Validation:
    """Compare what both have finished."""
    known = {cell.key: cell for cell in twin.cells}
    groups = scenes(cell for cell in spark.cells if cell.key in known)
    titles = [f"{pipeline_label(cells[0])} · {workload_label(cells[0])}" for cells in groups]
    found = []
    for title, cells in zip(titles, groups, strict=True):
        if titles.count(title) > 1:
            title = f"{title} · guards {guards_label(cells[0].guards)}"
        found.append(_scene(spark, twin, cells, title))
    twins = {cell.query: cell.twin for cell in spark_cells(twin.cells) if cell.twin is not None}
    assert spark.folder is not None
    return Validation(
        name=name,
        folder=spark.folder,
        complete=spark.complete,
        scenes=tuple(found),
        profiles={query: double.profile for query, double in twins.items()},
    )


def _scene(spark: Results, twin: Results, cells: Sequence[Cell], title: str) -> Scene:
    policies = [_policy(spark, twin, cell) for cell in cells]
    return Scene(
        title=title,
        query=cells[0].query,
        workload=cells[0].workload,
        policies=tuple(policies),
        orders={
            score: tuple(
                orders(_samples(spark, cells, score, twin), _samples(twin, cells, score, spark))
            )
            for score in ORDERED
        },
    )


def _samples(
    results: Results, cells: Iterable[Cell], score: str, other: Results
) -> dict[str, Sample]:
    return {policy_label(cell): _sample(results, cell.key, score, other) for cell in cells}


def _sample(results: Results, key: str, score: str, other: Results) -> Sample:
    """A score by seed, of the seeds that both have finished and measured."""
    both = [seed for seed in results.seeds_of(key) if seed in other.seeds_of(key)]
    found = {seed: results.scores(key, seed).get(score) for seed in both}
    return {seed: float(value) for seed, value in found.items() if value is not None}


def _policy(spark: Results, twin: Results, cell: Cell) -> PolicyCompared:
    figures = {}
    for score in COMPARED:
        real, played = (
            _sample(spark, cell.key, score, twin),
            _sample(twin, cell.key, score, spark),
        )
        seeds = [seed for seed in real if seed in played]
        if seeds:
            figures[score] = _compared(score, [real[s] for s in seeds], [played[s] for s in seeds])
    return PolicyCompared(
        key=cell.key,
        label=policy_label(cell),
        seeds=len(spark.seeds_of(cell.key)),
        figures=figures,
        over=_over(spark, twin, cell.key),
    )


def _compared(score: str, spark: Sequence[float], twin: Sequence[float]) -> Compared:
    real, played = estimate(spark), estimate(twin)
    allowed = {EXECUTORS: agreement.EXECUTORS, LAG: allowed_lag(spark)}.get(score)
    return Compared(
        score=score,
        spark=real,
        twin=played,
        error=agreement.error(played.mean, real.mean),
        allowed=allowed,
    )


def _over(spark: Results, twin: Results, key: str) -> Over | None:
    if not (spark.has_trace(key) and twin.has_trace(key)):
        return None
    real, played = spark.trace(key), twin.trace(key)
    return Over(
        executors=float(np.abs(played.slots - real.slots).mean()),
        lag=float(np.abs(played.latency - real.latency).mean()),
    )
