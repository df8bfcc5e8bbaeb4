"""``penstock reproduce``: a paper's tables, pictures and findings, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import output
from penstock.core.errors import InputError, unknown

if TYPE_CHECKING:
    from penstock.bench.thesis.reproduction import Plan, Reproduction

PAPERS = ("thesis", "mead")


def reproduce(
    paper: Annotated[str, typer.Argument(help="What to reproduce: thesis or mead.")],
    seeds: Annotated[
        int | None, typer.Option(help="Runs of every cell.", show_default="30; mead 10")
    ] = None,
    first_seed: Annotated[
        int | None,
        typer.Option(
            help="The first seed; low ones calibrated queries.", show_default="3000; mead 0"
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes.", show_default="all cores")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the run.")] = Path("runs"),
    resume: Annotated[
        str | None, typer.Option(help="Go on with an interrupted run: its folder.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Tables, such as 7.1,7.19,improved; else all.")
    ] = None,
    extended: Annotated[
        bool, typer.Option("--extended", help="Also what the paper leaves for the future; slow.")
    ] = False,
    docs: Annotated[
        Path | None, typer.Option(help="Also write the documents into this folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Run a paper's experiments with many seeds and judge its findings.

    Ours beside the paper's, with confidence intervals and an oracle.
    """
    if paper not in PAPERS:
        raise unknown("paper", paper, PAPERS)
    given = {"--seeds": seeds, "--first-seed": first_seed, "--only": only}
    if resume is not None and (fixed := [name for name, v in given.items() if v is not None]):
        raise InputError(f"{fixed[0]} was fixed when the run began; leave it out beside --resume")
    if paper == "mead":
        if only is not None:
            raise InputError("--only is for the thesis; mead runs everything")
        from penstock.cli import reproduce_mead

        reproduce_mead.reproduce(
            extended=extended,
            seeds=seeds,
            first_seed=first_seed,
            workers=workers,
            out=out,
            resume=resume,
            docs=docs,
            as_json=as_json,
        )
        return
    from penstock.bench.thesis import command
    from penstock.report import runs

    if resume is not None:
        folder = runs.find(resume, out)
        plan = command.with_extended(command.planned(folder), extended)
    else:
        plan = command.with_extended(_plan(seeds, first_seed, only), extended)
        folder = command.begin(plan, out)
    output.say(_begun(plan, folder))
    try:
        found = _run(plan, folder, workers)
    except KeyboardInterrupt:
        more = " --extended" if plan.extended else ""
        output.say(f"go on with: penstock reproduce thesis --resume {folder}{more}")
        raise
    if docs is not None:
        for path in command.publish(found, docs):
            output.say(f"written: {path}")
    if as_json:
        output.print_json(found.document())
    else:
        _show(found)


def _plan(seeds: int | None, first_seed: int | None, only: str | None) -> Plan:
    from penstock.bench.thesis.reproduction import FIRST_SEED, Plan

    return Plan(
        seeds=30 if seeds is None else seeds,
        first_seed=FIRST_SEED if first_seed is None else first_seed,
        only=tuple(name.strip() for name in only.split(",")) if only is not None else (),
    )


def _begun(plan: Plan, folder: Path) -> str:
    from penstock.bench.thesis.reproduction import CALIBRATION

    return (
        f"{len(plan.cells())} cells × {plan.seeds} seeds ({plan.numbers[0]} to "
        f"{plan.numbers[-1]}; calibrated on seeds {CALIBRATION}) into {folder}"
    )


def _run(plan: Plan, folder: Path, workers: int | None) -> Reproduction:
    """Run with a bar for every part."""
    from penstock.bench.thesis import command

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

    from penstock.bench.thesis import accuracy, improved
    from penstock.report import runs

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
