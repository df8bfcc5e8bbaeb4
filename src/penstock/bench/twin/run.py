"""One run of a cell on Spark's twin: as on Spark, but its executors and its clock are simulated."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from penstock.batches.snapshot import POOL
from penstock.bench.compressed.load import load_of, squeezed
from penstock.bench.compressed.run import RunRecord, act, scored, window_of
from penstock.bench.compressed.thesis_time import Scale
from penstock.bench.twin.twin import Twin, limited, shares_of
from penstock.comparison.cell import Cell, CellRun
from penstock.lab.rig.allocation import Allocation
from penstock.lab.rig.settings import SparkSettings
from penstock.simulator.microbatch import MicroBatchEngine
from penstock.workloads.patterns import Pattern


def run_twin(
    cell: Cell,
    seed: int,
    *,
    settings: SparkSettings,
    twin: Twin,
    allocation: Allocation | None = None,
    journal: Path | None = None,
    trace: bool = False,
    luck: int | None = None,
) -> CellRun:
    """Run a cell once on a twin of Spark: what it scored.

    settings: of the Spark that the twin stands for
    allocation: of Spark's own, if that is the policy
    journal, trace: as in ``Cell.run``
    luck: seed of the simulated noise, the run's own if left out: another one is another run of
        the same load
    """
    load = load_of(cell, settings, seed, twin.capacity.all)
    scale = Scale(start=0.0, speed=settings.speed, rate=load.rate)
    run = RunRecord(cell, seed, scale, journal=journal)
    luck = seed if luck is None else luck
    engine = _engine(cell, settings, twin, allocation, load.pattern, luck)
    with contextlib.closing(run.recording):
        act(engine, run, now=lambda: engine.now)
        run.executors = engine.record().executors
        engine.finish()
    run.recording.keep()
    run.collect(engine.record().batches[cell.query])
    outcome = scored(load, twin.capacity, run)
    return outcome if trace else replace(outcome, trace=None)


def _engine(
    cell: Cell,
    settings: SparkSettings,
    twin: Twin,
    allocation: Allocation | None,
    pattern: Pattern,
    seed: int,
) -> MicroBatchEngine:
    """The simulated application, under its own allocation if that is the policy."""
    limits = (1, settings.slots) if allocation is None else (allocation.least, allocation.most)
    return MicroBatchEngine(
        limited(twin.profile, settings, twin.capacity.rows),
        {
            table: squeezed(pattern, speed=1.0, rate=share)
            for table, share in shares_of(twin.profile).items()
        },
        seconds=settings.clock(cell.seconds),
        start=cell.start_sizes()[POOL],
        window=window_of(cell, settings),
        seed=seed,
        limits=limits,
        allocation=None if allocation is None else allocation.settings,
    )
