"""The ``penstock`` command: the table of its commands, and errors as exit codes.

A command is a function that typer can call, in a file of its own; adding it to ``PRODUCT``,
``LABORATORY`` or ``PAPERS`` is all that is needed. Heavy imports (numpy, matplotlib, Spark) go
inside the function, so that ``penstock --help`` stays fast and works where they are missing.

Exit codes: 0 done, 1 the work failed, 2 bad usage or input, 3 something is missing on this
machine, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer

from penstock import __version__
from penstock.cli.advise import advise
from penstock.cli.agents import agents
from penstock.cli.bench import bench
from penstock.cli.calibrate import calibrate
from penstock.cli.compare import compare
from penstock.cli.config import config
from penstock.cli.control import control
from penstock.cli.demo import demo
from penstock.cli.doctor import doctor
from penstock.cli.kafka import kafka
from penstock.cli.options import command_group
from penstock.cli.policies import policies
from penstock.cli.profile import profile
from penstock.cli.prove import prove
from penstock.cli.renamed import modernized
from penstock.cli.replay import replay
from penstock.cli.report import report
from penstock.cli.reproduce import reproduce
from penstock.cli.run import run
from penstock.cli.simulate import simulate
from penstock.cli.sites import sites
from penstock.cli.validate import validate
from penstock.cli.workload import workload
from penstock.core.errors import PenstockError, missing

PRODUCT: Mapping[str, Callable[..., Any]] = {
    "demo": demo,
    "run": run,
    "advise": advise,
    "control": control,
    "replay": replay,
    "profile": profile,
    "simulate": simulate,
    "compare": compare,
    "bench": bench,
    "report": report,
    "policies": policies,
    "config": config,
    "doctor": doctor,
}
LABORATORY: Mapping[str, Callable[..., Any]] = {
    "calibrate": calibrate,
    "validate": validate,
    "sites": sites,
    "agents": agents,
}
PAPERS: Mapping[str, Callable[..., Any]] = {"reproduce": reproduce}
_LAB_HELP = "What experiments need on this machine: brokers, sites, agents, measurements, proofs."

INTERRUPTED = 130


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Auto-scaling for stream pipelines on Apache Spark: observe, advise, simulate, act."""


def build(commands: Mapping[str, Callable[..., Any]]) -> typer.Typer:
    """The application with the given commands, in their order."""
    app = typer.Typer(
        name="penstock",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=False, no_args_is_help=False)(_root)
    for name, function in commands.items():
        app.command(name)(function)
    return app


def _laboratory() -> typer.Typer:
    """``penstock lab``."""
    lab = command_group("lab", _LAB_HELP)
    for name, function in LABORATORY.items():
        lab.command(name)(function)
    lab.add_typer(kafka, name="kafka")
    lab.add_typer(prove, name="prove")
    return lab


app = build(PRODUCT)
app.add_typer(workload, name="workload")
app.add_typer(_laboratory(), name="lab", rich_help_panel="Laboratory and papers")
for name, function in PAPERS.items():
    app.command(name, rich_help_panel="Laboratory and papers")(function)


def main() -> None:
    """Run the command line and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without → must not break a command
    arguments, renamed = modernized(sys.argv[1:] or ["--help"])
    for line in renamed:
        typer.echo(line, err=True)
    try:
        app(arguments, prog_name="penstock")
    except PenstockError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", INTERRUPTED)
    except SystemExit as left:
        if left.code == INTERRUPTED:  # typer turns Ctrl-C into this and says nothing
            _fail("interrupted", INTERRUPTED)
        raise
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (lack := missing(error)) is not None:
            _fail(str(lack), lack.exit_code)
        _fail(
            f"{type(error).__name__}: {error}\nThis is not expected. Set PENSTOCK_DEBUG=1 to see "
            "where it happened; `penstock doctor` tells what this machine has.",
            1,
        )


def _fail(message: str, code: int) -> NoReturn:
    if os.environ.get("PENSTOCK_DEBUG", "") not in ("", "0"):
        traceback.print_exc()
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo(message, err=True)
    sys.exit(code)
