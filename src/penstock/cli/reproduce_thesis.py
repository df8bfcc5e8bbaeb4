"""``penstock reproduce thesis``: a published comparison of stream auto-scalers."""

from __future__ import annotations

from pathlib import Path

from penstock.cli import output
from penstock.cli.reproduce import Options
from penstock.papers.thesis import accuracy, improved
from penstock.papers.thesis import paper as command
from penstock.papers.thesis.reproduction import CALIBRATION, FIRST_SEED, Plan, Reproduction
from penstock.report import runs


def reproduce(paper: str, options: Options) -> None:
    """Run, judge, show."""
    if options.resume is not None:
        folder = runs.find(options.resume, options.out)
        plan = command.with_extended(command.planned(folder), options.extended)
    else:
        asked = _plan(options.seeds, options.first_seed, options.only)
        plan = command.with_extended(asked, options.extended)
        folder = command.begin(plan, options.out)
    output.say(_begun(plan, folder))
    try:
        found = _run(plan, folder, options.workers)
    except KeyboardInterrupt:
        more = " --extended" if plan.extended else ""
        output.say(f"go on with: penstock reproduce {paper} --resume {folder}{more}")
        raise
    if options.docs is not None:
        for path in command.publish(found, options.docs):
            output.say(f"written: {path}")
    if options.as_json:
        output.print_json(found.document())
    else:
        _show(found)


def _plan(seeds: int | None, first_seed: int | None, only: str | None) -> Plan:
    return Plan(
        seeds=30 if seeds is None else seeds,
        first_seed=FIRST_SEED if first_seed is None else first_seed,
        only=tuple(name.strip() for name in only.split(",")) if only is not None else (),
    )


def _begun(plan: Plan, folder: Path) -> str:
    return (
        f"{len(plan.cells())} cells × {plan.seeds} seeds ({plan.numbers[0]} to "
        f"{plan.numbers[-1]}; calibrated on seeds {CALIBRATION}) into {folder}"
    )


def _run(plan: Plan, folder: Path, workers: int | None) -> Reproduction:
    """Run with a bar for every part."""
    with output.progress() as bars:
        tasks: dict[str, object] = {}

        def report(what: str, finished: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=finished)  # type: ignore[arg-type]

        return command.reproduce(plan, folder, workers=workers, progress=report)


def _show(found: Reproduction) -> None:
    """Tables, what improved, findings; then where everything is."""
    from rich.padding import Padding

    out = output.console()
    grids = [table.compact() for table in found.tables]
    if found.convergence is not None:
        grids.append(found.convergence)
    if found.accuracy:
        grids.append(accuracy.grid(list(found.accuracy)))
    if found.duels:
        grids += [improved.compact(found.duels), improved.summary(found.duels)]
    for grid in grids:
        out.print(grid.rich())
        out.print()
    for answer in found.answers:
        out.print(answer.section.title, style="bold")
        out.print(f"{answer.section.about} {answer.seeds} seeds.")
        for grid in answer.grids:
            out.print(grid.rich())
            out.print()
    for finding in found.findings:
        out.print(f"({finding.id}) {finding.verdict}: {finding.claim}", style="bold")
        for name in ("paper", "ours", "why"):
            out.print(Padding(f"{name}: {getattr(finding, name)}", (0, 0, 0, 4)))
    if found.findings:
        held = sum(f.holds for f in found.findings)
        out.print(f"\n{held} of {len(found.findings)} findings held or tied")
    out.print(f"run     {found.folder}", soft_wrap=True)
    out.print(f"page    {found.folder / runs.PAGE}", soft_wrap=True)
