"""``penstock advise``: what would be done with a Spark application that we only watch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import advice, output
from penstock.cli.options import AsJson, pairs
from penstock.core.errors import EngineError, InputError, NotReady

if TYPE_CHECKING:
    from penstock.core.loop import Decision, Loop, State
    from penstock.spark.foreign.engine import ForeignEngine
    from penstock.spark.settings.settings import Settings

TICKS, INTERRUPTED = "ticks", "interrupted"
RETRY = 2.0  # seconds until the next look at an address that did not answer
_FLAGS = {
    "policy": "--policy",
    "parameters": "--set",
    "min_executors": "--min",
    "max_executors": "--max",
    "period": "--period",
    "window": "--window",
    "journal": "--journal",
    "metrics_port": "--metrics-port",
}


def advise(
    app_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="The driver's UI (http://HOST:4040), a proxy's path to it, or a history server.",
            show_default=False,
        ),
    ],
    app: Annotated[
        str | None, typer.Option(metavar="ID", help="Which application, where there are several.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="The auto-scaler.", show_default="ds2")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A policy parameter; repeatable."),
    ] = None,
    minimum: Annotated[
        int | None, typer.Option("--min", help="Fewest executors.", show_default="1")
    ] = None,
    maximum: Annotated[
        int | None, typer.Option("--max", help="Most executors.", show_default="80")
    ] = None,
    period: Annotated[
        float | None, typer.Option(help="Seconds between decisions.", show_default="15")
    ] = None,
    window: Annotated[
        float | None,
        typer.Option(help="Seconds of batches each looks at.", show_default="the period"),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A configuration file; see docs/configuration.md.")
    ] = None,
    ticks: Annotated[
        int | None,
        typer.Option(help="End after this many decisions.", show_default="when it ends"),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End after one decision.")] = False,
    journal: Annotated[Path | None, typer.Option(help="File for the decisions.")] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Port for Prometheus; 0: any free one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Watch a Spark application from outside and say what its size should be.

    Reads the REST interface of its UI: any language, any cluster manager.

    Nothing is installed in it, nothing is changed. Ctrl-C ends it with a summary.
    """
    from penstock.spark.settings.settings import load

    if ticks is not None and once:
        raise InputError("--once is --ticks 1; give one of them")
    if ticks is not None and ticks < 1:
        raise InputError(f"--ticks {ticks} must be ≥ 1, or left out to watch until the end")
    settings = load(
        config,
        given={
            "policy": policy,
            "parameters": pairs("--set", set_) or None,
            "min_executors": minimum,
            "max_executors": maximum,
            "period": period,
            "window": window,
            "journal": journal,
            "metrics_port": metrics_port,
            "mode": "advise",
        },
        flags=_FLAGS,
    )
    _watch(app_url, app, settings, 1 if once else ticks, as_json)


def _watch(url: str, app: str | None, settings: Settings, ticks: int | None, as_json: bool) -> None:
    from penstock.core.loop import Loop
    from penstock.history.journal import Header
    from penstock.policies import POLICIES, create, wants_arrivals
    from penstock.spark.foreign.address import find
    from penstock.spark.foreign.engine import ForeignEngine
    from penstock.spark.foreign.summary import summarise
    from penstock.spark.reporting import Witnesses

    def write(line: str) -> None:
        typer.echo(line, err=as_json)

    engine = ForeignEngine(
        find(url, app),
        window=settings.window or settings.period,
        arrivals=wants_arrivals(POLICIES.get(settings.policy)),
    )
    header = Header(
        policy=settings.policy,
        parameters=settings.parameters,
        guards=settings.guards,
        mode="advise",
        seed=settings.seed,
        period=settings.period,
    )
    session = _Session(engine, settings.period, write)
    witnesses = Witnesses(settings, header, session.decided)
    policy = create(settings.policy, settings.parameters)
    with ExitStack() as stack:
        witnesses.serve(stack)
        state = witnesses.resume(stack)
        watched = engine.begin()
        for line in advice.about(watched, settings):
            write(line)
        if witnesses.url is not None:
            output.say(f"metrics at {witnesses.url}")
        loop = Loop(
            engine,
            policy,
            settings.guards,
            seed=settings.seed,
            state=state,
            record=witnesses.hear,
        )
        ended_by = session.run(loop, ticks)
    if ended_by not in (TICKS, INTERRUPTED):
        output.say(ended_by)
    summary = summarise(session.decisions, end=engine.now())
    if as_json:
        output.print_json(advice.document(watched, settings, session.decisions, summary, ended_by))
    else:
        advice.show(summary)
    if ended_by == INTERRUPTED:
        raise KeyboardInterrupt


class _Session:
    """Ticks until the application ends; says every decision, and every problem once."""

    def __init__(self, engine: ForeignEngine, period: float, write: Callable[[str], None]) -> None:
        self.engine = engine
        self.decisions: list[Decision] = []
        self._period = period
        self._write = write
        self._said: set[str] = set()
        self._passing: set[str] = set()

    def run(self, loop: Loop, ticks: int | None) -> str:
        """Why it ended: ``ticks``, ``interrupted`` or what became of the application."""
        wait = self._period
        try:
            while self.engine.advance(wait):
                wait = self._period
                try:
                    loop.tick()
                except EngineError as error:
                    if self.engine.ended is not None:
                        break
                    if isinstance(error, NotReady):
                        self._once(f"waiting: {error}", passing=True)
                    else:
                        self._once(f"no decision this time: {error}", passing=True)
                        wait = min(RETRY, self._period)
                if len(self.decisions) == ticks:
                    return TICKS
        except KeyboardInterrupt:
            return INTERRUPTED
        return self.engine.ended or "stopped"

    def decided(self, decision: Decision, _: State) -> None:
        """Say one decision."""
        from penstock.spark.decision_log import line_of

        self.decisions.append(decision)
        self._passing.clear()
        clock = datetime.fromtimestamp(decision.seen.time).strftime("%H:%M:%S")
        self._write(f"{clock} {line_of(decision)}")
        for name in self.engine.unsized:
            self._once(
                f"{name}: its plan does not tell how many rows a batch takes, so a policy that "
                "needs rates cannot size it"
            )
        if self.engine.unattributed:
            self._once(
                "some stages belong to no streaming query (other jobs, a file source that lists "
                "its files, a foreachBatch with a job description of its own); their work is not "
                "counted"
            )

    def _once(self, line: str, *, passing: bool = False) -> None:
        """On standard error and not again; of what passes, one of a kind until a decision."""
        said, key = (self._passing, line.partition(":")[0]) if passing else (self._said, line)
        if key not in said:
            said.add(key)
            output.say(line)
