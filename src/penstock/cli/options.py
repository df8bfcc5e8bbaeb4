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


def pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """``KEY=VALUE`` texts as a mapping; the last of the same key wins."""
    values = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise InputError(f"{option} {text!r} must look like KEY=VALUE")
        values[key.strip()] = value.strip()
    return values
