"""The scores of a Spark run: those of a simulated one, and a few of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.batches.snapshot import POOL
from penstock.bench.spark.thesis_time import Scale
from penstock.capacity.curve import PowerCurve
from penstock.compare import oracle
from penstock.compare.oracle import Demand
from penstock.compare.scores import Actions, Stage, series_scores
from penstock.simulator.series import Series

ON_THE_CLOCK = ("latency_mean", "latency_p95", "latency_p99", "e2e_mean", "e2e_p95", "e2e_p99")
"""Scores that are also given in seconds on the clock, as ``<name>_real``."""


def demand_of(curve: PowerCurve, series: Series, scale: Scale, most: int) -> Demand:
    """The fewest executors whose measured throughput covers the offered rate."""
    return {POOL: oracle.demand_on(curve, series.offered * scale.rate, most)}


def spark_scores(
    series: Series,
    demand: Demand,
    actions: Actions,
    *,
    scale: Scale,
    curve: PowerCurve,
    stages: Sequence[Stage] = (),
    slo: float = 60.0,
    figures: Mapping[str, float] | None = None,
    measured_cpu: bool = True,
) -> dict[str, float | None]:
    """All scores, in thesis time but for those that end in ``_real``.

    ``expired`` is not measured: the source keeps every record.
    """
    last = float(series.slots[POOL][-1])
    left = float(series.offered.sum() - series.delivered.sum())
    capacity = curve.at(max(last, 1.0)) / scale.rate
    scores = series_scores(
        series,
        demand,
        actions,
        drain=left / capacity,
        stages=stages,
        slo=slo,
        figures=figures,
    )
    scores["expired"] = None
    if not measured_cpu:
        scores["cpu_mean"] = None
    for name in ON_THE_CLOCK:
        value = scores[name]
        scores[f"{name}_real"] = None if value is None else value / scale.speed
    return scores
