"""A bench on Spark as it is seen: what it will do, where it is, what is missing at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import output
from penstock.core.errors import EngineError, InputError

if TYPE_CHECKING:
    from rich.console import ConsoleRenderable

    from penstock.bench.compressed.run import RunProgress
    from penstock.bench.spark.runner import Failure
    from penstock.comparison.cell import Cell
    from penstock.comparison.experiment import Experiment
    from penstock.lab.rig.settings import SparkSettings

EVERY = 10.0  # minutes of thesis time between two lines where there is no terminal


class BenchView:
    """One line for the run under way and a bar for all of them; elsewhere a line now and then."""

    def __init__(self, plan: Experiment) -> None:
        self._plan = plan
        self._runs = plan.runs
        self._minutes = sum(cell.minutes for cell in plan.cells) * len(plan.seeds)
        self._past = 0.0  # minutes of the finished runs
        self._next_line = 0.0
        self.done = 0
        self._now = "starting"
        self._bar = output.progress()
        self._task = self._bar.add_task(self._title(), total=self._minutes)
        self._screen = self._bar.console

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it while the bench runs."""
        from rich.live import Live

        if not self._screen.is_terminal:
            yield
            return
        with Live(
            console=self._screen, get_renderable=self._render, refresh_per_second=4, transient=True
        ):
            yield

    def say(self, message: str) -> None:
        """A step of the cluster."""
        self._now = message
        if not self._screen.is_terminal:
            output.say(message)

    def watch(self, moment: RunProgress) -> None:
        """Show where a run is."""
        cell = moment.cell
        self._now = (
            f"{cell.key}, seed {moment.seed}: minute {moment.minute:.0f} of {cell.minutes:g}, "
            f"{moment.executors} executors, lag {moment.lag:,.0f}"
        )
        self._bar.update(self._task, completed=self._past + moment.minute)
        if not self._screen.is_terminal and moment.minute >= self._next_line:
            output.say(self._now)
            self._next_line = moment.minute + EVERY

    def finished(self, cell: Cell, seed: int) -> None:
        """Count a run that has ended."""
        self._past += cell.minutes
        self._next_line = 0.0
        self.done += 1
        self._bar.update(self._task, completed=self._past, description=self._title())

    def failed(self, failure: Failure, again: bool) -> None:
        """A run that failed; it stays on the screen."""
        self._next_line = 0.0
        self._screen.print(f"{failure}; {'tried again' if again else 'given up'}", soft_wrap=True)

    def stopped(self, folder: Path) -> None:
        """Say how to go on."""
        output.say(f"stopped after {self.done} of {self._runs} runs; they are in {folder}")
        output.say(f"go on with: penstock bench --resume {folder}")

    def _title(self) -> str:
        return f"{self._plan.name}, run {min(self.done + 1, self._runs)} of {self._runs}"

    def _render(self) -> ConsoleRenderable:
        from rich.console import Group
        from rich.text import Text

        line = Text(self._now, no_wrap=True, overflow="ellipsis")
        return Group(line, self._bar.get_renderable())


def check_servers(servers: str | None, settings: SparkSettings | None) -> None:
    """That a Kafka that was given is wanted, and there."""
    from penstock.lab.kafka.cluster import KafkaCluster
    from penstock.lab.rig.settings import KAFKA

    if servers is None:
        return
    if settings is None or settings.source != KAFKA:
        raise InputError(
            f"--bootstrap-servers {servers}: this bench does not read from Kafka. Set "
            'source = "kafka" in its table [spark]'
        )
    KafkaCluster(servers)


def run_spark_plan(plan: Experiment, folder: Path, servers: str | None = None) -> list[Failure]:
    """Run what a folder does not hold yet on a local cluster; the runs that failed twice.

    ``servers`` of Kafka, if the events come from there and not from a broker of ours.
    """
    from penstock.bench.cell import spark_cells
    from penstock.bench.spark.plan import plan_lines
    from penstock.bench.spark.runner import run
    from penstock.bench.spark.worker import SparkWorker

    cells = spark_cells(plan.cells)
    settings = cells[0].spark
    for line in plan_lines(cells, settings):
        output.say(line)
    output.quiet_spark()
    view = BenchView(plan)
    try:
        with (
            view.shown(),
            SparkWorker(
                settings, folder, servers=servers, say=view.say, watch=view.watch
            ) as worker,
        ):
            return run(
                cells,
                plan.seeds,
                folder,
                worker,
                journals=plan.journals,
                finished=view.finished,
                failed=view.failed,
            )
    except BaseException:
        view.stopped(folder)
        raise


def raise_missing(failures: list[Failure], folder: Path) -> None:
    """End with exit code 1 if runs are missing, and say which."""
    if failures:
        which = "\n".join(f"  {failure}" for failure in failures)
        raise EngineError(
            f"{len(failures)} run{'s' if len(failures) > 1 else ''} failed twice and "
            f"{'are' if len(failures) > 1 else 'is'} missing:\n{which}\n"
            f"Try them again with: penstock bench --resume {folder}"
        )
