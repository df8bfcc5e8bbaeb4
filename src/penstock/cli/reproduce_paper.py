"""``penstock reproduce`` for papers that have a ``penstock.papers.<paper>.command``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from penstock.cli import output
from penstock.cli.reproduce import PAPERS, Options
from penstock.papers import harness, running
from penstock.papers.harness import Reproduction
from penstock.papers.running import Progress
from penstock.papers.write_up import Told, WriteUp
from penstock.report import runs


class Written(Protocol):
    """What every such module offers: what it asks for, and how it is written down.

    ``Plan`` a dataclass of plain values with defaults: ``seeds``, ``first_seed`` and, if it knows
    that, ``extended``.
    """

    @property
    def Plan(self) -> type[Any]:  # noqa: N802
        """What can be asked for."""
        ...

    @property
    def WRITE_UP(self) -> WriteUp:  # noqa: N802
        """How it is written down."""
        ...

    def told(self, plan: Any) -> Told:
        """A plan in words."""
        ...


class Command(Written, Protocol):
    """What those offer that run in processes of this machine."""

    def size(self, plan: Any) -> int:
        """How many cells it has."""
        ...

    def reproduce(
        self, plan: Any, folder: Path, *, workers: int | None, progress: Progress
    ) -> Reproduction:
        """Run what is missing, judge it, and write it down."""
        ...


def reproduce(paper: str, options: Options) -> None:
    """Run, judge, show."""
    package = PAPERS[paper].package or paper
    command = cast(Command, import_module(f"penstock.papers.{package}.command"))
    running.check(options.workers)
    plan, folder = begun(paper, command, options)
    output.say(f"{command.size(plan)} cells × {plan.seeds} seeds into {folder}")
    with going_on(paper, plan, folder) as progress:
        found = command.reproduce(plan, folder, workers=options.workers, progress=progress)
    finish(command, plan, found, options)


def begun(paper: str, command: Written, options: Options) -> tuple[Any, Path]:
    """The plan that is asked for, or that of the folder to go on with; and its folder."""
    if options.docs is not None:
        runs.check_writable(options.docs)
    if options.resume is not None:
        folder = runs.find(options.resume, options.out)
        plan = harness.planned(paper, command.Plan, folder)
        return (replace(plan, extended=True) if options.extended else plan), folder
    asked = {
        "seeds": options.seeds,
        "first_seed": options.first_seed,
        "extended": options.extended or None,
    }
    plan = command.Plan(**{name: value for name, value in asked.items() if value is not None})
    return plan, harness.begin(paper, plan, options.out)


@contextmanager
def going_on(paper: str, plan: Any, folder: Path) -> Iterator[Progress]:
    """A bar of finished runs; after Ctrl-C the command that goes on."""
    try:
        with output.progress() as bars:
            task = bars.add_task("runs", total=None)
            yield lambda done, total: bars.update(task, completed=done, total=total)
    except KeyboardInterrupt:
        more = " --extended" if getattr(plan, "extended", False) else ""
        output.say(f"go on with: penstock reproduce {paper} --resume {folder}{more}")
        raise


def finish(command: Written, plan: Any, found: Reproduction, options: Options) -> None:
    """Write the documents if they are asked for, and print."""
    if options.docs is not None:
        for path in command.WRITE_UP.publish(found, command.told(plan), options.docs):
            output.say(f"written: {path}")
    if options.as_json:
        output.print_json(found.document())
    else:
        show(found)


def show(found: Reproduction) -> None:
    """Tables, findings, and where the run is."""
    from rich.padding import Padding

    out = output.console()
    for table in found.tables:
        out.print(table.rich())
        out.print()
    for finding in found.findings:
        out.print(f"({finding.id}) {finding.verdict}: {finding.claim}", style="bold")
        for name in ("paper", "ours", "why"):
            if words := getattr(finding, name):
                out.print(Padding(f"{name}: {words}", (0, 0, 0, 4)))
    verdicts = [finding.verdict for finding in found.findings]
    ties = verdicts.count("tie")
    tied = f", {ties} {'tie' if ties == 1 else 'ties'}" if ties else ""
    out.print(f"\n{verdicts.count('held')} of {len(verdicts)} findings held{tied}")
    out.print(f"run     {found.folder}", soft_wrap=True)
    out.print(f"page    {found.folder / runs.PAGE}", soft_wrap=True)
