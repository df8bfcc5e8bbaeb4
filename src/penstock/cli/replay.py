"""``penstock replay``: what each policy would have done with a recorded run, and at what cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import output
from penstock.cli.bench import check_workers
from penstock.cli.options import (
    OBJECTIVE,
    AsJson,
    AtAddress,
    CoresOfEach,
    LatePrice,
    NoSave,
    Out,
    Price,
    RanOn,
    Recording,
    TasksOfStage,
)

_RUN = "Runs"


def replay(
    source: Recording,
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Policies to play; parameters as ds2:over_provisioning=1.4.",
            show_default="eight of them",
        ),
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="Only this query.", show_default="all together")
    ] = None,
    app: AtAddress = None,
    executors: RanOn = None,
    cores: CoresOfEach = None,
    partitions: TasksOfStage = None,
    slo: Annotated[
        float,
        typer.Option(help="Seconds that a record may wait.", rich_help_panel=OBJECTIVE),
    ] = 30.0,
    minimum: Annotated[
        int, typer.Option("--min", help="Fewest executors.", rich_help_panel=OBJECTIVE)
    ] = 1,
    maximum: Annotated[
        int | None,
        typer.Option(
            "--max",
            help="Most executors.",
            show_default="twice the most there were",
            rich_help_panel=OBJECTIVE,
        ),
    ] = None,
    guards: Annotated[
        str, typer.Option(help="default, production, thesis or none.", rich_help_panel=OBJECTIVE)
    ] = "production",
    price: Price = None,
    late_price: LatePrice = None,
    period: Annotated[
        float | None,
        typer.Option(
            help="Seconds between decisions.",
            show_default="15; 60 beyond a day",
            rich_help_panel=_RUN,
        ),
    ] = None,
    batch_time: Annotated[
        float,
        typer.Option(
            help="Seconds that a batch may take of a query without a trigger.",
            rich_help_panel=_RUN,
        ),
    ] = 10.0,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Runs of each policy.", show_default="5; fewer beyond a day", rich_help_panel=_RUN
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes.", show_default="all cores", rich_help_panel=_RUN),
    ] = None,
    out: Out = Path("runs"),
    no_save: NoSave = False,
    as_json: AsJson = False,
) -> None:
    """Play policies on a recorded run: your own query under the traffic that it had.

    Says what the present setting costs, what each policy would have cost, which one to try with
    which limits, and how far that is to be trusted. Nothing is changed anywhere.
    """
    check_workers(workers)
    from penstock.comparison.replay import POLICIES
    from penstock.comparison.replay import replay as play

    with output.progress() as bar:
        reading = bar.add_task("reading", total=None)
        playing = bar.add_task("playing", total=None, visible=False)

        def read(done: int, total: int) -> None:
            bar.update(reading, completed=done, total=total or None)

        def played(done: int, total: int) -> None:
            bar.update(reading, visible=False)
            bar.update(playing, completed=done, total=total, visible=True)

        done = play(
            source,
            POLICIES if policies is None else policies.split(","),
            query=query,
            app=app,
            executors=executors,
            cores=cores,
            partitions=partitions,
            slo=slo,
            minimum=minimum,
            maximum=maximum,
            guards=guards,
            price=price,
            late_price=late_price,
            period=period,
            batch_time=batch_time,
            seeds=seeds,
            out=None if no_save else out,
            workers=workers,
            progress=played,
            reading=read,
        )
    if as_json:
        output.print_json(done.to_dict())
        return
    typer.echo(done.table())
    output.print_files(done.files)
