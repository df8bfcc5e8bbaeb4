"""Where a command writes: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from penstock.history.journal import Entry
    from penstock.report.build import Finished
    from penstock.report.summary import Summary


def print_json(document: Any) -> None:
    """One JSON document on standard output; a figure that is not finite becomes null."""
    typer.echo(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def console(*, stderr: bool = False) -> Console:
    """A console that takes text literally: no markup, no emoji codes, no highlighting."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def say(message: str) -> None:
    """A message on standard error."""
    typer.echo(message, err=True)


def quiet_spark() -> None:
    """Keep py4j's tracebacks off the terminal: it logs them to the root logger on Ctrl-C.

    Not for commands that run the user's own code, whose logging is its own affair.
    """
    logging.getLogger().addHandler(logging.NullHandler())


def progress() -> Progress:
    """A progress bar on standard error, where that is a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    screen = console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %", markup=False),
        TimeRemainingColumn(),
        console=screen,
        disable=not screen.is_terminal,
        transient=True,
    )


def sayer(bar: Progress, task: TaskID) -> Callable[[str], None]:
    """What writes a line beside a bar, or on standard error where no bar is drawn."""

    def write(line: str) -> None:
        bar.update(task, description=line)
        if bar.disable:
            say(line)

    return write


def show_tables(summary: Summary, entries: Sequence[Entry]) -> None:
    """The tables of a run."""
    from penstock.report.run_tables import decisions_table, summary_table

    out = console()
    out.print(summary_table(summary))
    out.print()
    out.print(decisions_table(entries))


def show_finished(done: Finished) -> None:
    """The tables of a finished run, and where it is."""
    show_tables(done.summary, done.run.entries)
    ended_by = done.run.config.get("ended_by")
    if ended_by:
        say(f"this run did not reach its end: {ended_by}")
    console().print()
    print_files({"run": done.run.folder, "page": done.page, "picture": done.picture})


def print_files(files: Mapping[str, Path], *, width: int = 8) -> None:
    """Where each part of a result is, one line for each; names take ``width`` columns."""
    screen = console()
    for name, path in files.items():
        screen.print(f"{name:{width}}{path}", soft_wrap=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(v) for v in value]
    return value


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Decisions on standard error; our own logger only, how a script logs is its own affair."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    log = logging.getLogger("penstock")
    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]
