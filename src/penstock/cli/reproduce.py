"""``penstock reproduce``: a paper's tables, pictures and findings, measured again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import output
from penstock.cli.options import AsJson, Out, Workers
from penstock.core.errors import InputError, unknown

if TYPE_CHECKING:
    from penstock.papers.harness import Asked, Paper, Reproduction
    from penstock.papers.running import Progress

PAPERS: Mapping[str, str] = {
    "thesis": "thesis",
    "mead": "mead",
    "gesscale": "gesscale.simulated",
    "geo": "geo.simulated",
    "decentralized": "decentralized",
}
"""The package under ``penstock.papers`` whose ``paper.PAPER`` each of them is."""
ON_SPARK: Mapping[str, str] = {"gesscale": "gesscale.spark", "geo": "geo.spark"}
"""Likewise, of those that can be measured on real Spark."""
OLD_NAMES: Mapping[str, str] = {f"{name}-on-spark": name for name in ON_SPARK}


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"What to reproduce: {', '.join(PAPERS)}.")],
    on_spark: Annotated[
        bool,
        typer.Option(
            "--on-spark",
            help=f"On real Spark at emulated sites (root): {', '.join(ON_SPARK)}.",
        ),
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Runs of every cell.",
            show_default="30; mead 10, geo 25, decentralized 100, on Spark 3",
        ),
    ] = None,
    first_seed: Annotated[
        int | None,
        typer.Option(
            help="The first seed; low ones calibrated queries.",
            show_default="3000; geo 4000; others 0",
        ),
    ] = None,
    workers: Workers = None,
    out: Out = Path("runs"),
    resume: Annotated[
        str | None, typer.Option(help="Go on with an interrupted run: its folder.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Tables of the thesis, such as 7.1,7.19,improved; else all.")
    ] = None,
    extended: Annotated[
        bool, typer.Option("--extended", help="Also what the paper leaves for the future; slow.")
    ] = False,
    docs: Annotated[
        Path | None, typer.Option(help="Also write the documents into this folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a paper's experiments with many seeds and judge its findings.

    Ours beside the paper's, with confidence intervals and an oracle.
    """
    chosen = _paper(paper, on_spark=on_spark)

    from penstock.papers import harness, running
    from penstock.report import runs

    given = {"--seeds": seeds, "--first-seed": first_seed, "--only": only}
    if resume is not None and (fixed := [name for name, v in given.items() if v is not None]):
        raise InputError(f"{fixed[0]} was fixed when the run began; leave it out beside --resume")
    if chosen.on_spark and workers is not None:
        raise InputError(f"--workers: {chosen.key} measures, one run at a time; leave it out")
    running.check_workers(workers)
    chosen.require()  # what is missing is said before a folder is made
    if docs is not None:
        runs.check_writable(docs)
    if resume is not None:
        folder = runs.find(resume, out)
        asked = harness.resume(chosen, folder, extended=extended)
    else:
        asked = chosen.asked(
            seeds=seeds,
            first_seed=first_seed,
            extended=extended,
            only=[name.strip() for name in only.split(",")] if only is not None else (),
        )
        folder = harness.begin(chosen, asked, out)
    output.say(f"{chosen.amount(asked)} into {folder}")
    if chosen.on_spark:
        output.quiet_spark()
    with _going_on(chosen, asked, folder) as progress:
        place = running.RunFolder(path=folder, workers=workers, progress=progress, say=output.say)
        found = harness.reproduce(chosen, asked, place)
    if docs is not None:
        for path in harness.publish(found, docs):
            output.say(f"written: {path}")
    if as_json:
        output.print_json(found.document())
    else:
        _show(found)


def _paper(name: str, *, on_spark: bool) -> Paper[Any]:
    """The paper that is asked for; an old name is told its new one."""
    if name in OLD_NAMES:
        output.say(f"`reproduce {name}` is now `reproduce {OLD_NAMES[name]} --on-spark`")
        name, on_spark = OLD_NAMES[name], True
    if name not in PAPERS:
        raise unknown("paper", name, PAPERS)
    if on_spark and name not in ON_SPARK:
        raise InputError(f"--on-spark: {name} is simulated only; leave it out")
    package = ON_SPARK[name] if on_spark else PAPERS[name]
    found: Paper[Any] = import_module(f"penstock.papers.{package}.paper").PAPER
    return found


@contextmanager
def _going_on(paper: Paper[Any], asked: Asked, folder: Path) -> Iterator[Progress]:
    """Yield what draws a bar for every kind of runs; after Ctrl-C say how to go on."""
    try:
        with output.progress() as bars:
            tasks: dict[str, Any] = {}

            def report(what: str, finished: int, total: int) -> None:
                if what not in tasks:
                    tasks[what] = bars.add_task(what, total=total)
                bars.update(tasks[what], completed=finished, total=total)

            yield report
    except KeyboardInterrupt:
        more = " --extended" if asked.extended else ""
        output.say(f"go on with: {paper.called} --resume {folder}{more}")
        raise


def _show(found: Reproduction[Any]) -> None:
    """Print tables, findings, and where the run is."""
    from rich.padding import Padding

    from penstock.report.runs import PAGE

    out = output.console()
    findings = found.report.findings
    for table in found.report.tables:
        out.print(table.rich())
        out.print()
    for finding in findings:
        out.print(f"({finding.id}) {finding.verdict}: {finding.claim}", style="bold")
        for name in ("paper", "ours", "why"):
            if words := getattr(finding, name):
                out.print(Padding(f"{name}: {words}", (0, 0, 0, 4)))
    verdicts = [finding.verdict for finding in findings]
    ties = verdicts.count("tie")
    tied = f", {ties} {'tie' if ties == 1 else 'ties'}" if ties else ""
    out.print(f"\n{verdicts.count('held')} of {len(verdicts)} findings held{tied}")
    output.print_files({"run": found.folder, "page": found.folder / PAGE})
