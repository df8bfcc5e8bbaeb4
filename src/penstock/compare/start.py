"""Start a bench in a new folder, or go on with one: what the commands share."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.bench.spark.plan import scaled, wall_seconds
from penstock.bench.specs.spec import BenchSpec
from penstock.compare import runner
from penstock.compare.cell import Cell, run_cell
from penstock.compare.results import Results
from penstock.policies import parameters_of
from penstock.report import runs
from penstock.workloads import patterns

SAMPLES = 3  # cells that are timed for an estimate
STARTUP = 2.0  # seconds until worker processes have loaded the simulator


def create_folder(spec: BenchSpec, root: Path, *, command: str = "bench") -> Path:
    """A new folder with the effective configuration; ``latest`` points at it from now on."""
    runner.check(spec.cells, spec.seeds)
    settings = spec.spark
    on_spark = {} if settings is None else {"spark": scaled(spec.cells, settings)}
    folder = runs.create(
        root,
        spec.name,
        {
            "penstock": __version__,
            "command": command,
            "engine": spec.engine,
            **on_spark,
            "seeds": list(spec.seeds),
            "journals": spec.journals,
            "spec": spec.document,
            "cells": [effective(cell) for cell in spec.cells],
        },
    )
    runs.point_latest(folder)
    return folder


def resumed(folder: Path) -> BenchSpec:
    """The bench that a folder was started with."""
    results = Results.load(folder)
    config = runs.read_config(folder / runs.CONFIG)
    return BenchSpec(
        name=str(config.get("name", folder.name)),
        cells=results.cells,
        seeds=results.seeds,
        journals=bool(config.get("journals", True)),
        document={},
    )


def effective(cell: Cell) -> dict[str, Any]:
    """A cell with every parameter that was in force, also those that nobody gave."""
    pattern = patterns.describe(cell.pattern(seed=0))
    pattern.pop("seed", None)  # each run has its own
    return {
        "key": cell.key,
        "query": cell.query,
        "shared": cell.shared,
        "start": dict(cell.start_sizes()),
        "spec": dict(cell.spec),
        "workload": pattern,
        "policy": {"name": cell.policy, **parameters_of(cell.create_policy())},
        "guards": dataclasses.asdict(cell.guards),
        "profile": cell.profile,
        "minutes": cell.minutes,
        "period": cell.period,
        "slo": cell.slo,
    }


def estimate_seconds(cells: Sequence[Cell], seeds: int, workers: int | None) -> float:
    """Wall-clock time of a bench; nothing is written.

    On Spark it follows from the spec; else a few of its cells are timed here.
    """
    first = cells[0]
    if first.engine == "spark" and first.spark is not None:
        return wall_seconds(cells, seeds, first.spark)
    step = max(1, len(cells) // SAMPLES)
    sampled = cells[::step][:SAMPLES]
    run_cell(sampled[0], 0)  # load and compile
    cost = {cell.key: _timed(cell) / cell.minutes for cell in sampled}
    per_minute = sum(cost.values()) / len(cost)
    total = per_minute * sum(cell.minutes for cell in cells) * seeds
    used = workers or runner.useful_workers(len(cells) * seeds, twin=first.twin is not None)
    return total / used + (STARTUP if used > 1 else 0.0)


def _timed(cell: Cell) -> float:
    start = time.perf_counter()
    run_cell(cell, 0)
    return time.perf_counter() - start
