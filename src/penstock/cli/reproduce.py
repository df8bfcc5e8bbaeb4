"""``penstock reproduce``: a paper's tables, pictures and findings, measured again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from penstock.core.errors import InputError, unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for; ``None`` where nothing was said."""

    seeds: int | None
    first_seed: int | None
    workers: int | None
    out: Path
    resume: str | None
    only: str | None
    extended: bool
    docs: Path | None
    as_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """How a paper is reproduced: the module that runs it, and the options it has of its own.

    ``penstock.cli.reproduce_paper`` runs the ``command`` of its ``package``, the paper's name
    if empty, and ``penstock.cli.reproduce_on_spark`` those that need Spark at sites.
    """

    runs: str = "penstock.cli.reproduce_paper"
    only: bool = False
    extended: bool = False
    package: str = ""


ON_SPARK = "penstock.cli.reproduce_on_spark"
PAPERS: Mapping[str, Paper] = {
    "thesis": Paper(runs="penstock.cli.reproduce_thesis", only=True, extended=True),
    "mead": Paper(extended=True),
    "gesscale": Paper(extended=True, package="gesscale.simulated"),
    "geo": Paper(package="geo.simulated"),
    "decentralized": Paper(),
    "gesscale-on-spark": Paper(runs=ON_SPARK, package="gesscale.spark"),
    "geo-on-spark": Paper(runs=ON_SPARK, package="geo.spark"),
}


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"What to reproduce: {', '.join(PAPERS)}.")],
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
    workers: Annotated[
        int | None, typer.Option(help="Processes.", show_default="all cores")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the run.")] = Path("runs"),
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
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Run a paper's experiments with many seeds and judge its findings.

    Ours beside the paper's, with confidence intervals and an oracle.
    """
    if paper not in PAPERS:
        raise unknown("paper", paper, PAPERS)
    how = PAPERS[paper]
    given = {"--seeds": seeds, "--first-seed": first_seed, "--only": only}
    if resume is not None and (fixed := [name for name, v in given.items() if v is not None]):
        raise InputError(f"{fixed[0]} was fixed when the run began; leave it out beside --resume")
    if only is not None and not how.only:
        raise InputError(f"--only is for the thesis; {paper} runs everything")
    if extended and not how.extended:
        raise InputError(f"--extended: {paper} has nothing beyond the paper; leave it out")
    options = Options(
        seeds=seeds,
        first_seed=first_seed,
        workers=workers,
        out=out,
        resume=resume,
        only=only,
        extended=extended,
        docs=docs,
        as_json=as_json,
    )
    import_module(how.runs).reproduce(paper, options)
