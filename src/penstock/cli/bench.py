"""``penstock bench``: run the experiments of a spec, with seeds and intervals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import output
from penstock.cli.bench_spark import check_servers
from penstock.cli.options import AsJson, Out
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.bench.spread.job import OnSpark
    from penstock.comparison.experiment import Experiment
    from penstock.comparison.runner import Progress
    from penstock.comparison.summary import Comparison


def bench(
    spec: Annotated[
        Path | None, typer.Argument(help="A bench spec (TOML); see docs/bench.md.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds 0 to N−1 instead of the spec's.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; cores of the cluster with --on.", show_default="all cores"),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="MASTER",
            help="Spread simulated runs over Spark: spark://HOST:PORT or local[N].",
        ),
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Kafka to use instead of a broker of its own, if the spec's source is kafka.",
        ),
    ] = None,
    out: Out = Path("runs"),
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Go on with a bench: its folder, id, or 'latest'."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the cells and how long they may take.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run every pipeline, workload and policy of a spec with every seed.

    Simulated on all cores or, with --on, on those of a Spark cluster; if the spec says so, on
    real Spark one run at a time. Ctrl-C keeps what is done; --resume goes on from there.
    """
    from penstock.bench.cell import read_cell, settings_of
    from penstock.bench.spark.plan import spark_config
    from penstock.bench.specs.spec import load
    from penstock.comparison.folder import create_folder, resumed, run_experiment
    from penstock.report import runs

    if spec is None and resume is None:
        raise InputError("give a bench spec, or --resume RUN; examples are in examples/bench/")
    folder = runs.find(resume, out) if resume is not None else None
    if folder is not None and not folder.is_dir():
        raise InputError(f"no bench at {folder}; --resume takes its folder, its id or 'latest'")
    if spec is not None:
        plan = load(spec, seeds=seeds)
    elif seeds is not None:
        raise InputError("--seeds cannot change a bench that is resumed; start a new one")
    else:
        assert folder is not None
        plan = resumed(folder, read=read_cell)
    check_workers(workers)
    if plan.engine == "spark" and workers is not None:
        raise InputError(f"--workers {workers}: a bench on Spark runs one cell at a time")
    check_servers(bootstrap_servers, settings_of(plan.cells))
    way = None if on is None else _on_spark(plan, on, workers)
    if dry_run:
        _show_plan(plan, workers if way is None else way.master.slots, as_json)
        return
    if way is not None:
        way.master.check()
    if folder is None:
        runs.check_writable(out)
        folder = create_folder(plan, out, more=spark_config(plan.cells))
    if plan.engine == "spark":
        _bench_on_spark(plan, folder, bootstrap_servers, as_json)
        return
    with runs_bar(f"{plan.name}, {plan.runs} runs") as progress:
        run_experiment(plan, folder, workers=workers, way=way, progress=progress, say=output.say)
    report_bench(folder, as_json=as_json)


def _on_spark(plan: Experiment, master: str, workers: int | None) -> OnSpark:
    from penstock.bench.spread.job import OnSpark
    from penstock.bench.spread.sessions import Master

    if plan.engine == "spark":
        raise InputError(
            f'--on {master}: this bench has engine = "spark" and needs a cluster of its own; '
            "leave out --on, or the engine to simulate it"
        )
    output.quiet_spark()
    return OnSpark(Master(url=master, cores=workers), say=output.say)


def _bench_on_spark(plan: Experiment, folder: Path, servers: str | None, as_json: bool) -> None:
    from penstock.bench.cell import read_cell
    from penstock.cli.bench_spark import raise_missing, run_spark_plan
    from penstock.comparison.results import Results

    failures = run_spark_plan(plan, folder, servers)
    if Results.load(folder, read=read_cell).done:
        report_bench(folder, as_json=as_json)
    raise_missing(failures, folder)


@contextmanager
def runs_bar(title: str) -> Iterator[Progress]:
    """Yield what draws a bar of finished runs; it is gone before anything else is said."""
    with output.progress() as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def report_bench(folder: Path, *, as_json: bool = False) -> Path:
    """Rebuild the report of a bench and print it; returns the page."""
    from penstock.bench.cell import read_cell
    from penstock.comparison.folder import finish

    done = finish(folder, read=read_cell)
    show(done, as_json=as_json)
    return done.files["page"]


def show(done: Comparison, *, as_json: bool, differences: bool = False) -> None:
    """The tables of a bench and where its files are, or all of it as JSON."""
    from penstock.report.bench_tables import FRONT, group_tables

    if as_json:
        output.print_json(done.to_dict())
        return
    screen = output.console()
    for group in done.groups:
        for table in group_tables(group, differences=differences):
            screen.print(table)
            screen.print()
    screen.print(FRONT, style="dim")
    if done.files:
        screen.print()
    output.print_files(done.files)
    if not done.results.complete and done.results.folder is not None:
        output.say(f"not complete; go on with: penstock bench --resume {done.results.folder}")


def check_workers(workers: int | None) -> None:
    """Refuse a number of processes that cannot be, before anything is written."""
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers} must be ≥ 1")


def _show_plan(plan: Experiment, workers: int | None, as_json: bool) -> None:
    from penstock.bench.cell import spark_cells
    from penstock.bench.spark.plan import plan_lines, spark_config, wall_seconds
    from penstock.comparison.folder import effective, estimate_seconds
    from penstock.report import units

    on_spark = spark_cells(plan.cells)
    if plan.engine == "spark":
        seconds = wall_seconds(on_spark, len(plan.seeds), on_spark[0].spark)
    else:
        seconds = estimate_seconds(plan.cells, len(plan.seeds), workers)
    if as_json:
        output.print_json(
            {
                "name": plan.name,
                **spark_config(plan.cells),
                "seeds": list(plan.seeds),
                "runs": plan.runs,
                "seconds": seconds,
                "cells": [effective(cell) for cell in plan.cells],
            }
        )
        return
    screen = output.console()
    for cell in plan.cells:
        screen.print(cell.key, soft_wrap=True)
    if on_spark:
        screen.print()
        for line in plan_lines(on_spark, on_spark[0].spark):
            screen.print(line, soft_wrap=True)
    screen.print(
        f"\n{len(plan.cells)} cells × {len(plan.seeds)} seeds = {plan.runs} runs, "
        f"about {units.seconds(seconds)}. Nothing was written."
    )
