"""``penstock reproduce …-on-spark``: a paper's experiments on real Spark at emulated sites."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from penstock.bench import reproduction
from penstock.bench.lanes import Progress
from penstock.bench.reproduction import Reproduction
from penstock.bench.spark_plan import SparkPlan
from penstock.bench.write_up import Told, WriteUp
from penstock.cli import output
from penstock.cli.reproduce import PAPERS, Options
from penstock.cli.reproduce_paper import show
from penstock.core.errors import InputError
from penstock.report import runs
from penstock.spark.sites import needs


class Command(Protocol):
    """What a ``penstock.bench.<package>.command`` offers."""

    WRITE_UP: WriteUp

    def told(self, plan: SparkPlan) -> Told:
        """A plan in words."""
        ...

    def tasks(self, plan: SparkPlan) -> list[Any]:
        """What is to be run."""
        ...

    def reproduce(
        self,
        plan: SparkPlan,
        folder: Path,
        *,
        say: Callable[[str], None],
        progress: Progress,
    ) -> Reproduction:
        """Run what is missing, judge it, and write it down."""
        ...


def reproduce(paper: str, options: Options) -> None:
    """Run, judge, show."""
    command = cast(Command, import_module(f"penstock.bench.{PAPERS[paper].package}.command"))
    if options.workers is not None:
        raise InputError(f"--workers: {paper} measures, one run at a time; leave it out")
    if options.docs is not None:
        runs.check_writable(options.docs)
    needs.choose("auto", jitter=False)  # what is missing is said before a folder is made
    output.quiet_spark()
    if options.resume is not None:
        folder = runs.find(options.resume, options.out)
        plan = reproduction.planned(paper, SparkPlan, folder)
    else:
        asked = {"seeds": options.seeds, "first_seed": options.first_seed}
        plan = SparkPlan(**{name: value for name, value in asked.items() if value is not None})
        folder = reproduction.begin(paper, plan, options.out)
    output.say(f"{len(command.tasks(plan))} runs into {folder}")
    try:
        with output.progress() as bars:
            task = bars.add_task("runs", total=None)
            found = command.reproduce(
                plan,
                folder,
                say=output.say,
                progress=lambda done, total: bars.update(task, completed=done, total=total),
            )
    except KeyboardInterrupt:
        output.say(f"go on with: penstock reproduce {paper} --resume {folder}")
        raise
    if options.docs is not None:
        for path in command.WRITE_UP.publish(found, command.told(plan), options.docs):
            output.say(f"written: {path}")
    if options.as_json:
        output.print_json(found.document())
    else:
        show(found)
