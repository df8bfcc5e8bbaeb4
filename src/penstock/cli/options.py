"""Options that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from penstock.core.errors import InputError

OUTPUT = "Output"  # the panel of --help that these stand in
Out = Annotated[Path, typer.Option(help="Where runs are kept.", rich_help_panel=OUTPUT)]
NoSave = Annotated[bool, typer.Option("--no-save", help="Write nothing.", rich_help_panel=OUTPUT)]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document.", rich_help_panel=OUTPUT)]

# How many simulations run at once.
Workers = Annotated[int | None, typer.Option(help="Processes.", show_default="all cores")]

# What is simulated.
LOAD = "Pipeline and load"  # the panel of --help that these stand in
Query = Annotated[
    str, typer.Option(help="Nexmark: q1, q2, q3, q5, q8 or q11.", rich_help_panel=LOAD)
]
Workload = Annotated[
    str, typer.Option(help="The load; see `penstock workload list`.", rich_help_panel=LOAD)
]
WorkloadSet = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A workload parameter.", rich_help_panel=LOAD),
]
Shared = Annotated[
    bool, typer.Option("--shared", help="One pool for all operators.", rich_help_panel=LOAD)
]
Start = Annotated[
    int | None,
    typer.Option(
        help="Start size of each pool.",
        rich_help_panel=LOAD,
        show_default="the query's, within the limits",
    ),
]

# What an auto-scaler is told; the rest is in its configuration.
Config = Annotated[Path | None, typer.Option(help="Configuration file (TOML).")]
PolicyName = Annotated[str | None, typer.Option(help="Policy.", show_default="ds2")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A policy parameter; repeatable."),
]
WhichMode = Annotated[
    str | None, typer.Option(help="advise: only say; act: also do.", show_default="advise")
]
Fewest = Annotated[int | None, typer.Option("--min", help="Fewest executors.", show_default="1")]
Period = Annotated[float | None, typer.Option(help="Seconds between decisions.", show_default="15")]
CoolDown = Annotated[float | None, typer.Option(help="Seconds between actions.", show_default="60")]
JournalFile = Annotated[Path | None, typer.Option(help="File for the decisions.")]
FreezeFile = Annotated[Path | None, typer.Option(help="While this file exists, nothing is done.")]
MetricsPort = Annotated[int | None, typer.Option(help="Port for Prometheus; 0: any free one.")]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print the configuration and leave.")
]
FLAGS = {  # the option of each setting, for errors that name it
    "policy": "--policy",
    "parameters": "--set",
    "mode": "--mode",
    "min_executors": "--min",
    "max_executors": "--max",
    "period": "--period",
    "window": "--window",
    "guards.cool_down": "--cool-down",
    "guards.tolerance": "--tolerance",
    "guards.step_up": "--step-up",
    "guards.step_down": "--step-down",
    "guards.drain": "--drain",
    "blackouts": "--blackout",
    "journal": "--journal",
    "freeze_file": "--freeze-file",
    "metrics_port": "--metrics-port",
}


def command_group(name: str, about: str) -> typer.Typer:
    """A command that has commands of its own; alone it prints its help."""
    return typer.Typer(
        name=name,
        help=about,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def seconds_of(minutes: float | None, natural: float) -> float:
    """How long a load lasts: ``--minutes``, or the ``natural`` seconds of the workload."""
    if minutes is None:
        return max(natural, 1.0)
    if not (math.isfinite(minutes) and minutes * 60.0 >= 1):
        raise InputError(f"--minutes {minutes:g} must be at least a second, 0.0167")
    return minutes * 60.0


def pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """``KEY=VALUE`` texts as a mapping; the last of the same key wins."""
    values = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise InputError(f"{option} {text!r} must look like KEY=VALUE")
        values[key.strip()] = value.strip()
    return values
