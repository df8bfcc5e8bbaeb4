"""``penstock reproduce mead``: bursts and vertical scaling, in the tuple simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from penstock.bench.mead import cells, command, runner
from penstock.bench.mead.command import Plan, Reproduction
from penstock.cli import output
from penstock.report import runs


def reproduce(
    *,
    seeds: int | None,
    first_seed: int | None,
    workers: int | None,
    out: Path,
    resume: str | None,
    docs: Path | None,
    extended: bool,
    as_json: bool,
) -> None:
    """Run, judge, show."""
    runner.check(workers)
    if docs is not None:
        runs.check_writable(docs)
    if resume is not None:
        folder = runs.find(resume, out)
        plan = command.planned(folder)
        plan = replace(plan, extended=plan.extended or extended)
    else:
        count = command.SEEDS if seeds is None else seeds
        plan = Plan(seeds=count, first_seed=first_seed or 0, extended=extended)
        folder = command.begin(plan, out)
    count = len(cells.all_cells(extended=plan.extended))
    output.say(f"{count} cells × {plan.seeds} seeds into {folder}")
    try:
        with output.progress() as bars:
            task = bars.add_task("runs", total=None)
            found = command.reproduce(
                plan,
                folder,
                workers=workers,
                progress=lambda done, total: bars.update(task, completed=done, total=total),
            )
    except KeyboardInterrupt:
        more = " --extended" if plan.extended else ""
        output.say(f"go on with: penstock reproduce mead --resume {folder}{more}")
        raise
    if docs is not None:
        for path in command.publish(found, docs):
            output.say(f"written: {path}")
    if as_json:
        output.print_json(found.document())
    else:
        _show(found)


def _show(found: Reproduction) -> None:
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
