"""``penstock replay``: what each policy would have done with a recorded run, and at what cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import output
from penstock.cli.bench import check_workers
from penstock.cli.options import AsJson, NoSave, Out

_WHAT = "What the source does not tell"
_LIMITS = "Objective, limits and price"
_RUN = "Runs"


def replay(
    source: Annotated[
        str,
        typer.Argument(
            help="A journal, the folder of a run, a Spark event log, a file of progress "
            "documents, or the address of a Spark UI or History Server.",
            show_default=False,
        ),
    ],
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
    app: Annotated[
        str | None, typer.Option(metavar="ID", help="The application at an address.")
    ] = None,
    executors: Annotated[
        int | None,
        typer.Option(help="It ran on so many (progress files only).", rich_help_panel=_WHAT),
    ] = None,
    cores: Annotated[
        int | None, typer.Option(help="Of each executor.", show_default="1", rich_help_panel=_WHAT)
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(help="Tasks of a stage.", show_default="all cores", rich_help_panel=_WHAT),
    ] = None,
    slo: Annotated[
        float,
        typer.Option(help="Seconds that a record may wait.", rich_help_panel=_LIMITS),
    ] = 30.0,
    minimum: Annotated[
        int, typer.Option("--min", help="Fewest executors.", rich_help_panel=_LIMITS)
    ] = 1,
    maximum: Annotated[
        int | None,
        typer.Option(
            "--max",
            help="Most executors.",
            show_default="twice the most there were",
            rich_help_panel=_LIMITS,
        ),
    ] = None,
    guards: Annotated[
        str, typer.Option(help="default, production, thesis or none.", rich_help_panel=_LIMITS)
    ] = "production",
    price: Annotated[
        float | None,
        typer.Option(
            help="Of an executor for an hour.",
            show_default="told in what the oracle pays",
            rich_help_panel=_LIMITS,
        ),
    ] = None,
    late_price: Annotated[
        float | None,
        typer.Option(
            help="Of an hour late.",
            show_default="ten hours of the oracle",
            rich_help_panel=_LIMITS,
        ),
    ] = None,
    period: Annotated[
        float | None,
        typer.Option(
            help="Seconds between decisions.",
            show_default="15; 60 beyond a day",
            rich_help_panel=_RUN,
        ),
    ] = None,
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
