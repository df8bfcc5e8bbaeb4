"""``penstock control``: one controller for all applications of a split pipeline."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import output
from penstock.cli.config import show
from penstock.cli.options import (
    FLAGS,
    Config,
    CoolDown,
    FreezeFile,
    JournalFile,
    MetricsPort,
    Parameters,
    Period,
    PolicyName,
    PrintConfig,
    WhichMode,
    pairs,
)


def control(
    pipeline: Annotated[Path, typer.Argument(help="The operators and their addresses (TOML).")],
    config: Config = None,
    policy: PolicyName = None,
    set_: Parameters = None,
    mode: WhichMode = None,
    minimum: Annotated[
        int | None, typer.Option("--min", help="Fewest executors of each.", show_default="1")
    ] = None,
    maximum: Annotated[
        int | None, typer.Option("--max", help="Most executors of each.", show_default="80")
    ] = None,
    period: Period = None,
    cool_down: CoolDown = None,
    journal: JournalFile = None,
    freeze_file: FreezeFile = None,
    metrics_port: MetricsPort = None,
    print_config: PrintConfig = False,
) -> None:
    """Watch or scale a pipeline of several Spark applications, one per operator.

    Each application carries a Member that answers here; see docs/split.md.
    Decisions go to standard error, until Ctrl-C. SIGUSR1 freezes it, SIGUSR2
    thaws it.
    """
    from penstock.spark.controller import Controller
    from penstock.spark.freeze import KillSwitch
    from penstock.spark.settings.settings import load
    from penstock.spark.split.engine import SplitEngine
    from penstock.spark.split.pipeline_file import read_pipeline
    from penstock.spark.split.wire import key_for

    given = {
        "policy": policy,
        "parameters": pairs("--set", set_) or None,
        "mode": mode,
        "min_executors": minimum,
        "max_executors": maximum,
        "period": period,
        "guards.cool_down": cool_down,
        "journal": journal,
        "freeze_file": freeze_file,
        "metrics_port": metrics_port,
    }
    found = read_pipeline(pipeline)
    for address in found.members.values():
        key_for(address, None)
    settings = load(config, given=given, flags=FLAGS)
    if print_config:
        show(settings)
        return
    output.say(f"penstock: {settings.line()}")
    switch = KillSwitch()
    engine = SplitEngine(found.pipeline, found.members)
    controller = Controller(engine, settings, what=str(pipeline.resolve()), switch=switch)
    with output.log_to_stderr(), switch.signals(), controller:
        for name, problem in engine.silent().items():
            output.say(f"{name}: {problem}; waiting for it")
        threading.Event().wait()  # until Ctrl-C
