"""``penstock reproduce`` for papers that have a ``penstock.bench.<paper>.command``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from penstock.bench import lanes
from penstock.bench.lanes import Progress
from penstock.bench.reproduction import Reproduction
from penstock.cli import output
from penstock.cli.reproduce import Options
from penstock.report import runs


class Command(Protocol):
    """What such a module offers. Its plan has ``seeds``, and ``extended`` if it knows that."""

    def wanted(self, seeds: int | None, first_seed: int | None, extended: bool) -> Any:
        """The plan that was asked for."""
        ...

    def begin(self, plan: Any, out: Path) -> Path:
        """A new folder for it."""
        ...

    def planned(self, folder: Path, extended: bool = False) -> Any:
        """The plan that a folder was begun with."""
        ...

    def size(self, plan: Any) -> int:
        """How many cells it has."""
        ...

    def reproduce(
        self, plan: Any, folder: Path, *, workers: int | None, progress: Progress
    ) -> Reproduction:
        """Run what is missing, judge it, and write it down."""
        ...

    def publish(self, plan: Any, found: Reproduction, docs: Path) -> list[Path]:
        """Write the documents."""
        ...


def reproduce(paper: str, options: Options) -> None:
    """Run, judge, show."""
    command = cast(Command, import_module(f"penstock.bench.{paper}.command"))
    lanes.check(options.workers)
    if options.docs is not None:
        runs.check_writable(options.docs)
    if options.resume is not None:
        folder = runs.find(options.resume, options.out)
        plan = command.planned(folder, options.extended)
    else:
        plan = command.wanted(options.seeds, options.first_seed, options.extended)
        folder = command.begin(plan, options.out)
    output.say(f"{command.size(plan)} cells × {plan.seeds} seeds into {folder}")
    try:
        with output.progress() as bars:
            task = bars.add_task("runs", total=None)
            found = command.reproduce(
                plan,
                folder,
                workers=options.workers,
                progress=lambda done, total: bars.update(task, completed=done, total=total),
            )
    except KeyboardInterrupt:
        more = " --extended" if getattr(plan, "extended", False) else ""
        output.say(f"go on with: penstock reproduce {paper} --resume {folder}{more}")
        raise
    if options.docs is not None:
        for path in command.publish(plan, found, options.docs):
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
    held = sum(finding.holds for finding in found.findings)
    out.print(f"\n{held} of {len(found.findings)} findings held")
    out.print(f"run     {found.folder}", soft_wrap=True)
    out.print(f"page    {found.folder / runs.PAGE}", soft_wrap=True)
