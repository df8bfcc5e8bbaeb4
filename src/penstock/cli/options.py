"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.core.errors import InputError

OUTPUT = "Output"  # the panel of --help that these stand in
Out = Annotated[Path, typer.Option(help="Where runs are kept.", rich_help_panel=OUTPUT)]
NoSave = Annotated[bool, typer.Option("--no-save", help="Write nothing.", rich_help_panel=OUTPUT)]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document.", rich_help_panel=OUTPUT)]

# What an auto-scaler is told; the rest is in its configuration.
Config = Annotated[Path | None, typer.Option(help="Configuration file (TOML).")]
PolicyName = Annotated[str | None, typer.Option(help="Policy.", show_default="ds2")]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", help="Policy parameter, KEY=VALUE; repeatable.")
]
WhichMode = Annotated[
    str | None, typer.Option(help="advise: only say; act: also do.", show_default="advise")
]
Period = Annotated[float | None, typer.Option(help="Seconds between decisions.", show_default="15")]
CoolDown = Annotated[float | None, typer.Option(help="Seconds between actions.", show_default="60")]
JournalFile = Annotated[Path | None, typer.Option(help="File for the decisions.")]
FreezeFile = Annotated[Path | None, typer.Option(help="While this file exists, nothing is done.")]
MetricsPort = Annotated[int | None, typer.Option(help="Port for Prometheus; 0: any free one.")]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print the configuration and leave.")
]


def pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """``KEY=VALUE`` texts as a mapping; the last of the same key wins."""
    values = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise InputError(f"{option} {text!r} must look like KEY=VALUE")
        values[key.strip()] = value.strip()
    return values
