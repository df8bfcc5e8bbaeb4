"""``penstock compare``: policies side by side on one load, or the differences in a bench."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli import output
from penstock.cli.bench import check_workers, runs_bar, show
from penstock.cli.options import (
    LOAD,
    AsJson,
    EndTime,
    Fill,
    LatePrice,
    NoSave,
    Out,
    Price,
    Query,
    Scale,
    Shared,
    Start,
    StartTime,
    Step,
    TimeColumn,
    TraceFile,
    ValueColumn,
    ValuesAre,
    Workload,
    WorkloadSet,
    load_of,
)
from penstock.core.errors import InputError

_RUN = "Runs"


def compare(
    run: Annotated[
        str | None,
        typer.Argument(help="A finished bench: its folder, id, or 'latest'.", show_default=False),
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Policies to run, the first is the base; parameters as ds2:over_provisioning=1.4.",
        ),
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="The policy that others are compared with.")
    ] = None,
    query: Query = "q1",
    workload: Workload = "cosine",
    workload_set: WorkloadSet = None,
    trace: TraceFile = None,
    time_column: TimeColumn = "",
    value_column: ValueColumn = "",
    values_are: ValuesAre = "",
    start_time: StartTime = "",
    end_time: EndTime = "",
    step: Step = 0.0,
    fill: Fill = "line",
    scale: Scale = "",
    shared: Shared = False,
    start: Start = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            help="Your own query: a file of `penstock profile`.",
            rich_help_panel=LOAD,
            show_default="none",
        ),
    ] = None,
    rescale: Annotated[
        str,
        typer.Option(
            "--rescale", help="What a change costs: restart or live.", rich_help_panel=LOAD
        ),
    ] = "restart",
    minimum: Annotated[
        int | None,
        typer.Option("--min", help="Fewest slots.", show_default="1", rich_help_panel=_RUN),
    ] = None,
    maximum: Annotated[
        int | None,
        typer.Option("--max", help="Most slots.", show_default="80", rich_help_panel=_RUN),
    ] = None,
    guards: Annotated[
        str | None,
        typer.Option(
            help="default, production, thesis or none.",
            show_default="default; production with --profile",
            rich_help_panel=_RUN,
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Simulated.", show_default="the workload's", rich_help_panel=_RUN),
    ] = None,
    period: Annotated[
        float | None,
        typer.Option(
            help="Seconds between decisions.",
            show_default="15; 60 beyond a day of --profile",
            rich_help_panel=_RUN,
        ),
    ] = None,
    price: Price = None,
    late_price: LatePrice = None,
    slo: Annotated[
        float, typer.Option(help="Latency objective, seconds.", rich_help_panel=_RUN)
    ] = 60.0,
    seeds: Annotated[int, typer.Option(help="Runs of each policy.", rich_help_panel=_RUN)] = 10,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes.", show_default="all cores", rich_help_panel=_RUN),
    ] = None,
    out: Out = Path("runs"),
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Compare policies on the same loads, seed by seed; "tie" where no difference shows.

    Either run some now (--policies), or look at a finished bench (RUN).
    """
    if (run is None) == (policies is None):
        raise InputError(
            "give either a finished bench (penstock compare RUN) or policies to run "
            "(penstock compare --policies ds2,hpa-cpu)"
        )
    if run is not None:
        _show_finished(run, out, base, as_json)
        return
    assert policies is not None
    check_workers(workers)
    from penstock.comparison import api

    load = load_of(
        workload,
        workload_set,
        trace,
        time_column=time_column,
        value_column=value_column,
        kind=values_are,
        start_time=start_time,
        end_time=end_time,
        step=step,
        fill=fill,
        scale=scale,
    )
    name = query if profile is None else profile.stem
    with runs_bar(f"{name} under {trace or workload}") as progress:
        done = api.compare(
            policies.split(","),
            load,
            query=query,
            seeds=seeds,
            minutes=minutes,
            guards=limits_of(guards, minimum, maximum, application=profile is not None),
            profile=profile or rescale,
            period=period,
            price=price,
            late_price=late_price,
            slo=slo,
            start=start,
            shared=shared,
            base=base,
            out=None if no_save else out,
            workers=workers,
            progress=progress,
            say=output.say,
        )
    show(done, as_json=as_json, differences=True)


def limits_of(
    guards: str | None, minimum: int | None, maximum: int | None, *, application: bool
) -> dict[str, Any]:
    """Guards as the command line names them: a preset with other limits."""
    preset = guards or ("production" if application else "default")
    table: dict[str, Any] = {"preset": preset}
    if minimum is not None:
        table["minimum"] = minimum
    if maximum is not None:
        table["maximum"] = maximum
        if not application:
            table["cap"] = "none"
    return table


def _show_finished(run: str, out: Path, base: str | None, as_json: bool) -> None:
    from penstock.bench.cell import read_cell
    from penstock.comparison.results import Results
    from penstock.comparison.summary import summarize
    from penstock.report import runs

    results = Results.load(runs.find(run, out), read=read_cell)
    show(summarize(results, base=base), as_json=as_json, differences=True)
