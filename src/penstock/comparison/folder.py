"""The folder of an experiment: begun, run, gone on with, and finished with tables and pictures."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.comparison import runner
from penstock.comparison.cell import Cell
from penstock.comparison.experiment import Experiment
from penstock.comparison.results import ReadCell, Results
from penstock.comparison.runner import Progress, Way
from penstock.comparison.summary import Comparison, summarize
from penstock.core.errors import PenstockError
from penstock.history.files import atomic, write_text
from penstock.policies import parameters_of
from penstock.report import runs
from penstock.report.bench_page import Lines
from penstock.report.bench_tables import Group, markdown
from penstock.report.runs import CELLS
from penstock.workloads import patterns

TABLES_TEXT, TABLES_MARKDOWN = "tables.txt", "tables.md"
CHARTS = 24  # groups that are drawn over time
MOST_POINTS = 300  # of a line on the page


def is_bench(folder: Path) -> bool:
    """Whether a folder holds a bench and not a single run."""
    return (folder / CELLS).is_file()


def finish(folder: Path, *, base: str | None = None, read: ReadCell = Cell.from_dict) -> Comparison:
    """Write measurements, tables, picture and page of an experiment, complete or not.

    base: the policy that others are compared with; the first of each group if left out
    read: what makes a cell of its document
    """
    from penstock.report import bench_figure, bench_page  # matplotlib takes a second to load

    config = _config(folder)
    title = str(config.get("name", folder.resolve().name))
    done = summarize(Results.load(folder, read=read), name=title, base=base)
    picture = bench_figure.draw(done.groups, folder / runs.PICTURE, title=title)
    page = bench_page.write(
        folder / runs.PAGE,
        done.groups,
        [_lines(done.results, g) if n < CHARTS else None for n, g in enumerate(done.groups)],
        title=title,
        subtitle=_subtitle(done.results),
        picture=picture,
        config=config,
    )
    tables = folder / TABLES_TEXT
    write_text(tables, done.table())
    write_text(folder / TABLES_MARKDOWN, markdown(done.groups))
    files = {"run": folder, "page": page, "picture": picture}
    if runs.can_write_metrics():
        files["metrics"] = write_metrics(folder, done.results)
    return replace(done, files={**files, "tables": tables})


def _config(folder: Path) -> dict[str, Any]:
    path = folder / runs.CONFIG
    return runs.read_config(path) if path.is_file() else {}


def write_metrics(folder: Path, results: Results) -> Path:
    """``metrics.parquet``: one row per cell and seed with all scores; not measured is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list(results.rows())
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = ("cell", "query", "workload", "policy")
    kinds = {**dict.fromkeys(texts, pa.string()), "seed": pa.int64()}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in names])
    path = folder / runs.METRICS
    with atomic(path) as partial:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), partial)
    return path


def _subtitle(results: Results) -> str:
    cells, seeds = len(results.cells), len(results.seeds)
    how = results.cells[0].described()
    text = f"{cells} cells × {seeds} seeds, {how}"
    if results.complete:
        return text
    return f"{text}; interrupted after {results.done} of {cells * seeds} runs"


def _lines(results: Results, group: Group) -> Lines | None:
    """The first seed of a group over time, thinned out; ``None`` where it left no trace."""
    slots, latency = {}, {}
    trace = None
    for row in group.rows:
        if results.has_trace(row.key):
            trace = results.trace(row.key)
            step = max(1, -(-len(trace.time) // MOST_POINTS))
            slots[row.label] = trace.slots[::step].tolist()
            latency[row.label] = trace.latency[::step].tolist()
    if trace is None:
        return None
    return Lines(
        time=(trace.time[::step] / 60.0).tolist(),
        oracle=trace.oracle[::step].tolist(),
        slots=slots,
        latency=latency,
    )


SAMPLES = 3  # cells that are timed for an estimate
STARTUP = 2.0  # seconds until worker processes have loaded the simulator


def create_folder(
    experiment: Experiment,
    root: Path,
    *,
    command: str = "bench",
    more: Mapping[str, Any] | None = None,
) -> Path:
    """A new folder with the effective configuration; ``latest`` points at it from now on.

    ``more`` is what else its ``config.json`` says.
    """
    runner.check(experiment.cells, experiment.seeds)
    folder = runs.create(
        root,
        experiment.name,
        {
            "penstock": __version__,
            "command": command,
            "engine": experiment.engine,
            **(more or {}),
            "seeds": list(experiment.seeds),
            "journals": experiment.journals,
            "spec": experiment.document,
            "cells": [effective(cell) for cell in experiment.cells],
        },
    )
    runs.point_latest(folder)
    return folder


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    workers: int | None = None,
    way: Way | None = None,
    progress: Progress = lambda done, total: None,
    say: Callable[[str], None] = lambda line: None,
    traces: bool = True,
) -> Results:
    """Run what a folder does not hold yet; all results.

    workers, way, traces: as in ``runner.run``
    progress: told the number of finished runs, and of all
    say: told how to go on, if it is stopped
    """
    finished = 0

    def report(done: int, total: int) -> None:
        nonlocal finished
        finished = done
        progress(done, total)

    try:
        return runner.run(
            experiment.cells,
            experiment.seeds,
            folder,
            workers=workers,
            way=way,
            progress=report,
            journals=experiment.journals,
            traces=traces,
        )
    except (KeyboardInterrupt, PenstockError):
        if finished and traces:
            say(f"stopped after {finished} of {experiment.runs} runs; they are in {folder}")
            say(f"go on with: penstock bench --resume {folder}")
        raise


def resumed(folder: Path, *, read: ReadCell = Cell.from_dict) -> Experiment:
    """The experiment that a folder was started with; ``read`` makes a cell of its document."""
    results = Results.load(folder, read=read)
    config = runs.read_config(folder / runs.CONFIG)
    return Experiment(
        name=str(config.get("name", folder.name)),
        cells=results.cells,
        seeds=results.seeds,
        journals=bool(config.get("journals", True)),
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
    """Wall-clock seconds of a simulated experiment: a few of its cells are timed here.

    Nothing is written.
    """
    step = max(1, len(cells) // SAMPLES)
    sampled = cells[::step][:SAMPLES]
    sampled[0].run(0)  # load and compile
    cost = {cell.key: _timed(cell) / cell.minutes for cell in sampled}
    per_minute = sum(cost.values()) / len(cost)
    total = per_minute * sum(cell.minutes for cell in cells) * seeds
    used = workers or runner.useful_workers(len(cells) * seeds, slow=cells[0].slow)
    return total / used + (STARTUP if used > 1 else 0.0)


def _timed(cell: Cell) -> float:
    start = time.perf_counter()
    cell.run(0)
    return time.perf_counter() - start
