"""Options that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import say
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.workloads.trace import Trace

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

# Recorded traffic instead of a workload.
TRACE = "Recorded traffic"  # the panel of --help that these stand in
TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        help="CSV, Prometheus JSON or a web log to replay.",
        rich_help_panel=TRACE,
        show_default="none",
    ),
]
TimeColumn = Annotated[
    str, typer.Option(help="Tells when.", rich_help_panel=TRACE, show_default="found out")
]
ValueColumn = Annotated[
    str, typer.Option(help="Tells how much; A,B,…: summed.", rich_help_panel=TRACE,
                      show_default="found out")
]  # fmt: skip
ValuesAre = Annotated[
    str,
    typer.Option(
        "--as",
        help="rate, count, counter, events or intervals.",
        rich_help_panel=TRACE,
        show_default="by the column's name",
    ),
]
StartTime = Annotated[
    str, typer.Option(help="Begin there.", rich_help_panel=TRACE, show_default="the first row")
]
EndTime = Annotated[
    str, typer.Option(help="End there.", rich_help_panel=TRACE, show_default="the last row")
]
Step = Annotated[
    float, typer.Option(help="Seconds per row.", rich_help_panel=TRACE, show_default="found out")
]
Fill = Annotated[str, typer.Option(help="Gaps: line, zero, last, none.", rich_help_panel=TRACE)]
Scale = Annotated[
    str,
    typer.Option(
        help="2, peak=5000, mean=800 or p99=3000 records/s.",
        rich_help_panel=TRACE,
        show_default="as recorded",
    ),
]

# What is judged, and in what money.
OBJECTIVE = "Objective, limits and price"  # the panel of --help that these stand in
Price = Annotated[
    float | None,
    typer.Option(
        help="Of a slot for an hour.",
        rich_help_panel=OBJECTIVE,
        show_default="told in what the oracle pays",
    ),
]
LatePrice = Annotated[
    float | None,
    typer.Option(
        help="Of an hour late.", rich_help_panel=OBJECTIVE, show_default="ten hours of the oracle"
    ),
]

# What a recording does not tell.
UNTOLD = "What the source does not tell"  # the panel of --help that these stand in
RECORDING = (
    "A journal, the folder of a run, a Spark event log, a file of progress documents, or the "
    "address of a Spark UI or History Server."
)
Recording = Annotated[str, typer.Argument(help=RECORDING, show_default=False)]
AtAddress = Annotated[
    str | None, typer.Option("--app", metavar="ID", help="The application at an address.")
]
RanOn = Annotated[
    int | None,
    typer.Option(
        "--executors", help="It ran on so many (progress files only).", rich_help_panel=UNTOLD
    ),
]
CoresOfEach = Annotated[
    int | None,
    typer.Option("--cores", help="Of each executor.", show_default="1", rich_help_panel=UNTOLD),
]
TasksOfStage = Annotated[
    int | None,
    typer.Option(
        "--partitions", help="Tasks of a stage.", show_default="all cores", rich_help_panel=UNTOLD
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


def recorded(
    file: Path,
    *,
    time_column: str = "",
    value_column: str = "",
    kind: str = "",
    start_time: str = "",
    end_time: str = "",
    step: float = 0.0,
    fill: str = "line",
    scale: str = "",
) -> Trace:
    """The traffic of a file, as the options of the panel say; what was understood is printed."""
    from penstock.workloads.trace import Trace, scaled

    trace = Trace(
        file=str(file),
        time_column=time_column,
        value_column=value_column,
        kind=kind,
        start=start_time,
        end=end_time,
        step=step,
        fill=fill,
    )
    trace = scaled(trace, scale or "1")
    for line in trace.understood.lines(trace.scale):
        say(line)
    return trace


def load_of(
    workload: str, workload_set: list[str] | None, trace: Path | None, **how: Any
) -> Trace | dict[str, str]:
    """The load of a run: recorded traffic where a file is given, else a workload by its name."""
    if trace is None:
        if given := [name for name, value in how.items() if value not in ("", 0.0, "line")]:
            option = {"kind": "--as"}.get(given[0], "--" + given[0].replace("_", "-"))
            raise InputError(f"{option} goes with recorded traffic: give --trace FILE, too")
        return {**pairs("--workload-set", workload_set), "name": workload}
    if workload_set:
        raise InputError("--workload-set goes with --workload; a trace has options of its own")
    return recorded(trace, **how)
