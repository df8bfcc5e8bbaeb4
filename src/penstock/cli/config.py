"""``penstock config``: the configuration that holds, and where each value comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import output
from penstock.cli.options import AsJson

if TYPE_CHECKING:
    from penstock.spark.settings.settings import Settings


def config(
    file: Annotated[
        Path | None, typer.Argument(help="A TOML file; else the one of PENSTOCK_CONFIG.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the effective configuration of file and environment, with the origin of each value.

    What a session says in spark.penstock.* comes on top when Penstock is attached to it.
    """
    from penstock.spark.settings.settings import load

    show(load(file), as_json=as_json)


def show(settings: Settings, *, as_json: bool = False) -> None:
    """The effective configuration on standard output."""
    if not as_json:
        typer.echo(str(settings))
        return
    from penstock.spark.settings.settings import plain_value

    rows = settings.rows()
    output.print_json(
        {key: {"value": plain_value(value), "origin": origin} for key, value, origin in rows}
    )
