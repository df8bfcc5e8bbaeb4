"""``penstock reproduce …-on-spark``: a paper's experiments on real Spark at emulated sites."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from penstock.cli import output
from penstock.cli.reproduce import PAPERS, Options
from penstock.cli.reproduce_paper import Written, begun, finish, going_on
from penstock.core.errors import InputError
from penstock.lab.sites import requirements
from penstock.papers.harness import Reproduction
from penstock.papers.running import Progress


class Command(Written, Protocol):
    """What a ``penstock.papers.<package>.command`` offers."""

    def tasks(self, plan: Any) -> list[Any]:
        """What is to be run."""
        ...

    def reproduce(
        self, plan: Any, folder: Path, *, say: Callable[[str], None], progress: Progress
    ) -> Reproduction:
        """Run what is missing, judge it, and write it down."""
        ...


def reproduce(paper: str, options: Options) -> None:
    """Run, judge, show."""
    command = cast(Command, import_module(f"penstock.papers.{PAPERS[paper].package}.command"))
    if options.workers is not None:
        raise InputError(f"--workers: {paper} measures, one run at a time; leave it out")
    requirements.choose("auto", jitter=False)  # what is missing is said before a folder is made
    output.quiet_spark()
    plan, folder = begun(paper, command, options)
    output.say(f"{len(command.tasks(plan))} runs into {folder}")
    with going_on(paper, plan, folder) as progress:
        found = command.reproduce(plan, folder, say=output.say, progress=progress)
    finish(command, plan, found, options)
