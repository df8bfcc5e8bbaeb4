"""``penstock advise``: what would be done with a Spark application that we only watch."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import output
from penstock.cli.options import (
    FLAGS,
    AsJson,
    Config,
    Fewest,
    JournalFile,
    MetricsPort,
    Parameters,
    Period,
    PolicyName,
    pairs,
)
from penstock.core.errors import EngineError, InputError, NotReady

if TYPE_CHECKING:
    from penstock.core.loop import Decision, Loop, State
    from penstock.spark.foreign.engine import ForeignEngine, Watched
    from penstock.spark.foreign.summary import Summary
    from penstock.spark.settings.settings import Settings


TICKS, INTERRUPTED = "ticks", "interrupted"
RETRY = 2.0  # seconds until the next look at an address that did not answer


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
    policy: PolicyName = None,
    set_: Parameters = None,
    minimum: Fewest = None,
    maximum: Annotated[
        int | None, typer.Option("--max", help="Most executors.", show_default="80")
    ] = None,
    period: Period = None,
    window: Annotated[
        float | None,
        typer.Option(help="Seconds of batches each looks at.", show_default="the period"),
    ] = None,
    config: Config = None,
    ticks: Annotated[
        int | None,
        typer.Option(help="End after this many decisions.", show_default="when it ends"),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End after one decision.")] = False,
    journal: JournalFile = None,
    metrics_port: MetricsPort = None,
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
        flags=FLAGS,
    )
    _watch(app_url, app, settings, 1 if once else ticks, as_json)


def _watch(url: str, app: str | None, settings: Settings, ticks: int | None, as_json: bool) -> None:
    from penstock.core.loop import Loop
    from penstock.core.ports import wants_arrivals
    from penstock.history.journal import Header
    from penstock.policies import create
    from penstock.spark.foreign.address import find
    from penstock.spark.foreign.engine import ForeignEngine
    from penstock.spark.foreign.summary import summarise
    from penstock.spark.reporting import Reporter

    def write(line: str) -> None:
        typer.echo(line, err=as_json)

    engine = ForeignEngine(
        find(url, app),
        window=settings.window or settings.period,
        arrivals=wants_arrivals(create(settings.policy, settings.parameters)),
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
    reporter = Reporter(settings, header, session.decided)
    policy = create(settings.policy, settings.parameters)
    with ExitStack() as stack:
        reporter.serve(stack)
        state = reporter.resume(stack)
        watched = engine.begin()
        for line in about(watched, settings):
            write(line)
        if reporter.url is not None:
            output.say(f"metrics at {reporter.url}")
        loop = Loop(
            engine,
            policy,
            settings.guards,
            seed=settings.seed,
            state=state,
            record=reporter.report,
        )
        ended_by = session.run(loop, ticks)
    if ended_by not in (TICKS, INTERRUPTED):
        output.say(ended_by)
    summary = summarise(session.decisions, end=engine.now())
    if as_json:
        output.print_json(document(watched, settings, session.decisions, summary, ended_by))
    else:
        show(summary)
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
                        self._once_until_decided("waiting", error)
                    else:
                        self._once_until_decided("no decision this time", error)
                        wait = min(RETRY, self._period)
                if len(self.decisions) == ticks:
                    return TICKS
        except KeyboardInterrupt:
            return INTERRUPTED
        return self.engine.ended or "stopped"

    def decided(self, decision: Decision, _: State) -> None:
        """Say one decision."""
        from penstock.spark.reporting import line_of

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

    def _once(self, line: str) -> None:
        """Say a line on standard error, and not again."""
        if line not in self._said:
            self._said.add(line)
            output.say(line)

    def _once_until_decided(self, kind: str, problem: EngineError) -> None:
        """Say a problem that may pass; no other of its kind until a decision was made."""
        if kind not in self._passing:
            self._passing.add(kind)
            output.say(f"{kind}: {problem}")


WIDTH = 80
_ON = {True: "on", False: "off", None: "unknown"}
_UNSEEN = (
    "REST does not show the backlog: the offered rate is what the batches took; lag, back "
    "pressure and latency are not measured."
)
_ALLOCATED = (
    "Spark's own allocation sizes this application; the advice is what Penstock would do instead."
)


def about(watched: Watched, settings: Settings) -> list[str]:
    """What is watched and with what, the lines before the first decision."""
    a = watched.application
    version = f"Spark {a.spark}" if a.spark else "Spark"
    size = f"{_many(watched.executors, 'executor')} of {_many(watched.cores, 'core')}"
    what = (
        f"watching {a.name} ({a.id}): {version} on {watched.master or 'an unknown master'}, "
        f"{size}, dynamic allocation {_ON[watched.dynamic_allocation]}, "
        f"queries: {', '.join(watched.queries) or 'none yet'}"
    )
    lines = [_filled(what), _filled(settings.line())]
    if watched.dynamic_allocation:
        lines.append(_filled(_ALLOCATED))
    return [*lines, _filled(_UNSEEN)]


def document(
    watched: Watched,
    settings: Settings,
    decisions: Sequence[Decision],
    summary: Summary,
    ended_by: str,
) -> dict[str, Any]:
    """A whole session for ``--json``."""
    return {
        "watched": dataclasses.asdict(watched),
        "policy": {"name": settings.policy, **settings.parameters},
        "decisions": [_decision_document(d) for d in decisions],
        "summary": dataclasses.asdict(summary),
        "ended_by": ended_by,
    }


def _decision_document(decision: Decision) -> dict[str, Any]:
    from penstock.spark.foreign.summary import target_of

    target = target_of(decision)
    return {
        "time": decision.seen.time,
        "executors": sum(len(slots) for slots in decision.seen.pools.values()),
        "target": None if target is None else target.slots,
        "raw": None if target is None else target.raw,
        "would_act": bool(decision.changes),
        "reason": decision.proposal.reason,
        "guards": [dataclasses.asdict(e) for e in decision.effects],
        "notes": list(decision.notes),
    }


def show(summary: Summary) -> None:
    """The summary as a small table."""
    from penstock.report.table import plain_table

    table = plain_table()
    table.add_column("executors", no_wrap=True)
    for name in ("least", "mean", "most"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, sizes in (("present", summary.present), ("advised", summary.target)):
        if sizes is not None:
            table.add_row(name, str(sizes.least), f"{sizes.mean:.1f}", str(sizes.most))
    out = output.console()
    out.print()
    if summary.present is not None:
        out.print(table)
    time = f" in {summary.seconds:.0f} s: {_worth(summary)}" if summary.ticks else ""
    out.print(_many(summary.ticks, "decision") + time)


def _worth(summary: Summary) -> str:
    if not summary.sized:
        return "none could say a size"
    words = f"{summary.acted} would have acted"
    if summary.sized < summary.ticks:
        words += f", {summary.ticks - summary.sized} could not say a size"
    if summary.hours is None:
        return words
    if summary.hours == 0:
        return f"{words}; no executor-hours saved or added"
    verb = "added" if summary.hours > 0 else "saved"
    return f"{words}; {abs(summary.hours):.3g} executor-hours {verb}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
