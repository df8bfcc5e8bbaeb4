"""``penstock simulate``: one run of one policy on a simulated pipeline."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import output
from penstock.cli.options import (
    LOAD,
    AsJson,
    EndTime,
    Fill,
    NoSave,
    Out,
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
    pairs,
)
from penstock.core.guards import Blackout, Guards


class Profile(StrEnum):
    """What a change of size costs: the job restarts, or it runs on."""

    RESTART = "restart"
    LIVE = "live"


class AtCap(StrEnum):
    """What to do with a plan above the cap."""

    SHRINK = "shrink"
    CANCEL = "cancel"


_POLICY, _SIM, _GUARD = "Policy", "Simulation", "Guards"


def simulate(
    policy: Annotated[
        str, typer.Option(help="The auto-scaler; see `penstock policies`.", rich_help_panel=_POLICY)
    ] = "ds2",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A policy parameter.", rich_help_panel=_POLICY
        ),
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
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Simulated time.", rich_help_panel=_SIM, show_default="the workload's own, or 140"
        ),
    ] = None,
    period: Annotated[
        float, typer.Option(help="Seconds between decisions.", rich_help_panel=_SIM)
    ] = 15.0,
    seed: Annotated[
        int, typer.Option(help="Of the load and of all noise.", rich_help_panel=_SIM)
    ] = 0,
    profile: Annotated[
        Profile,
        typer.Option(
            "--rescale",
            help="What a change costs: Flink-like or Spark-like.",
            rich_help_panel=LOAD,
        ),
    ] = Profile.RESTART,
    start: Start = None,
    shared: Shared = False,
    minimum: Annotated[
        int, typer.Option("--min", help="Fewest slots of a pool.", rich_help_panel=_GUARD)
    ] = 1,
    maximum: Annotated[
        int, typer.Option("--max", help="Most slots of a pool.", rich_help_panel=_GUARD)
    ] = 80,
    cap: Annotated[
        int | None, typer.Option(help="Most slots of all pools.", rich_help_panel=_GUARD)
    ] = 80,
    at_cap: Annotated[
        AtCap, typer.Option(help="What to do with a plan above it.", rich_help_panel=_GUARD)
    ] = AtCap.SHRINK,
    step_up: Annotated[
        int | None, typer.Option(help="Most slots added at once.", rich_help_panel=_GUARD)
    ] = 15,
    step_down: Annotated[
        int | None, typer.Option(help="Most slots removed at once.", rich_help_panel=_GUARD)
    ] = None,
    cool_down: Annotated[
        float, typer.Option(help="Seconds between actions.", rich_help_panel=_GUARD)
    ] = 300.0,
    sleep: Annotated[
        bool,
        typer.Option(
            "--sleep", help="Decide nothing during it, as the thesis.", rich_help_panel=_GUARD
        ),
    ] = False,
    tolerance: Annotated[
        float, typer.Option(help="Relative change not worth it.", rich_help_panel=_GUARD)
    ] = 0.0,
    drain: Annotated[
        float | None,
        typer.Option(help="No shrinking above this lag (s).", rich_help_panel=_GUARD),
    ] = None,
    over_provisioning: Annotated[
        float, typer.Option(help="Factor on every need.", rich_help_panel=_GUARD)
    ] = 1.0,
    blackout: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HH:MM-HH:MM",
            help="No actions then; time starts at 00:00.",
            rich_help_panel=_GUARD,
        ),
    ] = None,
    out: Out = Path("runs"),
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Run one policy on a simulated Nexmark query.

    The defaults are the thesis's query 1 under its cosine load, with its guards.
    """
    from penstock.comparison import api

    guards = Guards(
        minimum=minimum,
        maximum=maximum,
        cap=cap,
        at_cap=at_cap.value,
        step_up=step_up,
        step_down=step_down,
        cool_down=cool_down,
        sleep=sleep,
        tolerance=tolerance,
        drain=drain,
        over_provisioning=over_provisioning,
        blackouts=tuple(Blackout.parse(text) for text in blackout or ()),
    )
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
    with output.progress() as bar:
        task = bar.add_task(f"{policy} on {query}", total=None)
        done = api.simulate(
            {**pairs("--set", set_), "name": policy},
            query=query,
            workload=load,
            minutes=minutes,
            seed=seed,
            guards=guards,
            profile=profile.value,
            period=period,
            start=start,
            shared=shared,
            out=None if no_save else out,
            progress=lambda ticks, total: bar.update(task, completed=ticks, total=total),
            say=output.say,
        )
    if as_json:
        output.print_json(done.to_dict())
    elif done.finished is not None:
        output.show_finished(done.finished)
    else:
        output.show_tables(done.summary, done.entries)
