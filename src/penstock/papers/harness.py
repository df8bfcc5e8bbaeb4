"""How every paper is reproduced: begin or resume, run, judge, write down, publish.

A paper hands a :class:`Paper` to the functions below; its folder of modules holds only what is its
own: what it reports, its cells, how one is run, and the findings, tables and figures.

::

    runs/<UTC time>-<paper>/
        config.json                 what was asked for
        scores.jsonl                a line per finished run
        figures/                    the pictures
        <paper>.json                findings and tables, as --json prints them
        <paper>.md, report.html     the same to read
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from penstock import __version__
from penstock.comparison.runner import same_figures
from penstock.core.errors import InputError
from penstock.history.files import atomic, write_text
from penstock.papers import document
from penstock.papers.judging import Finding
from penstock.papers.running import RunFolder
from penstock.report import runs
from penstock.report.table import Table

FIGURES = "figures"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of a reproduction.

    seeds: runs of every cell
    first_seed: the first of their seeds, which follow one another
    extended: also what goes beyond the paper
    only: tables that are wanted; empty: all
    minutes: most of every simulated run, for a quick look; it changes what is measured
    """

    seeds: int
    first_seed: int = 0
    extended: bool = False
    only: tuple[str, ...] = ()
    minutes: float | None = None

    @property
    def numbers(self) -> list[int]:
        """All seeds, in order."""
        return list(range(self.first_seed, self.first_seed + self.seeds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came out: findings, tables for a terminal, and the pictures that were drawn."""

    findings: Sequence[Finding]
    tables: Sequence[Table]
    pictures: Sequence[Path]


Measured = TypeVar("Measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction(Generic[Measured]):
    """A paper that was run: what was asked for, what was measured, and what came out."""

    paper: Paper[Measured]
    asked: Asked
    folder: Path
    measured: Measured
    report: Report

    def document(self) -> dict[str, Any]:
        """``--json``: findings and tables, plain values."""
        found = [finding.document() for finding in self.report.findings]
        return {"findings": found, "tables": self.paper.plain_tables(self)}


def _often(asked: Asked) -> str:
    return f"{document.means(asked.seeds)}."


def _plain_tables(found: Reproduction[Any]) -> list[dict[str, Any]]:
    return [
        {
            "title": table.title,
            "seeds": found.asked.seeds,
            "columns": list(table.header),
            "rows": [list(row) for row in table.rows],
        }
        for table in found.report.tables
    ]


def _texts(found: Reproduction[Any], before: str) -> dict[str, str]:
    paper, asked = found.paper, found.asked
    text = document.markdown(
        title=paper.title,
        command=paper.command(asked),
        about=f"{paper.often(asked)} {paper.about}",
        findings=found.report.findings,
        tables=found.report.tables,
        pictures={f"{before}{name}": paper.captions[name] for name in _shown(found)},
        first_seed=None if paper.pictures_of_all else asked.first_seed,
    )
    return {f"{paper.key}.md": text}


def _page(found: Reproduction[Any]) -> str:
    paper, seeds = found.paper, found.asked.seeds
    return document.html(
        paper.key,
        [
            document.heading(1, paper.title),
            document.paragraph(f"{seeds} seeds, means with 95 % intervals."),
            document.paragraph(paper.about),
            document.heading(2, "Findings"),
            *map(document.finding_html, found.report.findings),
            document.heading(2, "Tables"),
            *(table.html() for table in found.report.tables),
            document.heading(2, "Figures"),
            *(document.picture_html(p, paper.captions[p.name]) for p in found.report.pictures),
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper(Generic[Measured]):
    """A paper that can be reproduced.

    name: on the command line
    on_spark: whether it is measured on real Spark, one run at a time, and not simulated
    title, about: of the document, and what was done
    seeds, first_seed: unless asked otherwise
    keeps: the fields of ``Asked`` that ``config.json`` has
    has: the options it has of its own, of ``only`` and ``extended``
    captions: of all pictures, by file name
    shown: the pictures that the document has; empty: all. The page has all in any case
    pictures_of_all: whether pictures show all runs, not those of the first seed
    amount: what is about to be run, in words
    measure: does the runs that the folder does not hold yet, and returns what they say
    findings, tables, pictures: are made of that; pictures are drawn into a folder
    check: refuses what cannot be run
    require: raises if this machine lacks something that is needed
    often: in a sentence how often everything was run
    seeds_said: whether the command that is named in the document always says ``--seeds``
    plain_tables, texts, page: JSON, Markdown files by name, and the HTML page, where a paper has
        more to tell than others; what is given to ``texts`` stands before the names of pictures
    """

    name: str
    on_spark: bool = False
    title: str
    about: str
    seeds: int
    first_seed: int = 0
    keeps: tuple[str, ...] = ("seeds", "first_seed")
    has: frozenset[str] = frozenset()
    captions: Mapping[str, str]
    shown: tuple[str, ...] = ()
    pictures_of_all: bool = False
    amount: Callable[[Asked], str]
    measure: Callable[[Asked, RunFolder], Measured]
    findings: Callable[[Measured], Sequence[Finding]]
    tables: Callable[[Measured, Asked], Sequence[Table]]
    pictures: Callable[[Measured, Asked, Path], Sequence[Path]]
    check: Callable[[Asked], None] = lambda asked: None
    require: Callable[[], None] = lambda: None
    often: Callable[[Asked], str] = _often
    seeds_said: bool = True
    plain_tables: Callable[[Reproduction[Measured]], list[dict[str, Any]]] = _plain_tables
    texts: Callable[[Reproduction[Measured], str], Mapping[str, str]] = _texts
    page: Callable[[Reproduction[Measured]], str] = _page

    @property
    def key(self) -> str:
        """The name of its folders and files."""
        return f"{self.name}-on-spark" if self.on_spark else self.name

    @property
    def called(self) -> str:
        """How it is called on the command line."""
        return f"penstock reproduce {self.name}" + " --on-spark" * self.on_spark

    def command(self, asked: Asked) -> str:
        """The command that asks for it."""
        said = self.seeds_said or asked.seeds != self.seeds
        parts = [
            self.called,
            f"--seeds {asked.seeds}" if said else "",
            f"--first-seed {asked.first_seed}" if asked.first_seed != self.first_seed else "",
            f"--only {','.join(asked.only)}" if asked.only else "",
            "--extended" if asked.extended else "",
        ]
        return " ".join(part for part in parts if part)

    def asked(
        self,
        *,
        seeds: int | None = None,
        first_seed: int | None = None,
        extended: bool = False,
        only: Sequence[str] = (),
        minutes: float | None = None,
    ) -> Asked:
        """What is asked for, the paper's own defaults where nothing is said; checked."""
        asked = Asked(
            seeds=self.seeds if seeds is None else seeds,
            first_seed=self.first_seed if first_seed is None else first_seed,
            extended=extended,
            only=tuple(only),
            minutes=minutes,
        )
        self.accept(asked)
        return asked

    def accept(self, asked: Asked) -> None:
        """Refuse what cannot be run."""
        if asked.seeds < 1:
            raise InputError(
                f"--seeds {asked.seeds} must be ≥ 1; {self.seeds} give narrow intervals"
            )
        if asked.first_seed < 0:
            raise InputError(f"--first-seed {asked.first_seed} must be ≥ 0")
        if asked.only and "only" not in self.has:
            raise InputError(f"--only is for the thesis; {self.name} runs everything")
        if asked.extended and "extended" not in self.has:
            raise InputError(f"--extended: {self.key} has nothing beyond the paper; leave it out")
        self.check(asked)


def begin(paper: Paper[Any], asked: Asked, out: Path) -> Path:
    """A new folder for what is asked; nothing is written if it cannot be run."""
    paper.accept(asked)
    runs.check_writable(out)
    config = {"reproduces": paper.key, "penstock": __version__}
    return runs.create(
        out, paper.key, config | {name: getattr(asked, name) for name in paper.keeps}
    )


def resume(paper: Paper[Any], folder: Path, *, extended: bool = False) -> Asked:
    """What a folder was begun with, ``extended`` if that is wanted now."""
    path = folder / runs.CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if config["reproduces"] != paper.key:
            raise KeyError(paper.key)
        kept = {name: config[name] for name in paper.keeps}
        asked = Asked(**{**kept, "only": tuple(kept.get("only", ()))})
        paper.accept(asked)
        version = config["penstock"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{folder} is not a run of `{paper.called}`: {path} does not say so. Give "
            "the folder that it named, or leave --resume out to start a new one"
        ) from None
    if not same_figures(version):
        raise InputError(
            f"{folder} was begun with penstock {version}, this is {__version__}; its results "
            "cannot be mixed. Leave --resume out to start a new one"
        )
    asked = replace(asked, extended=asked.extended or extended)
    paper.accept(asked)
    return asked


def reproduce(paper: Paper[Measured], asked: Asked, folder: RunFolder) -> Reproduction[Measured]:
    """Run what the folder does not hold yet, judge it, and write everything that shows it."""
    return finish(paper, asked, folder.path, paper.measure(asked, folder))


def finish(
    paper: Paper[Measured], asked: Asked, folder: Path, measured: Measured
) -> Reproduction[Measured]:
    """Judge what was measured, and write everything that shows it."""
    report = Report(
        findings=paper.findings(measured),
        tables=paper.tables(measured, asked),
        pictures=paper.pictures(measured, asked, folder / FIGURES),
    )
    found = Reproduction(paper=paper, asked=asked, folder=folder, measured=measured, report=report)
    plain = json.dumps(found.document(), indent=1, ensure_ascii=False)
    write_text(folder / f"{paper.key}.json", plain + "\n")
    for name, text in paper.texts(found, f"{FIGURES}/").items():
        write_text(folder / name, text)
    write_text(folder / runs.PAGE, paper.page(found))
    return found


def publish(found: Reproduction[Any], docs: Path) -> list[Path]:
    """Write the documents and the pictures that they show into a folder of documents."""
    paper, written = found.paper, []
    for name, text in paper.texts(found, f"{paper.key}-").items():
        written.append(docs / name)
        write_text(written[-1], text)
    for picture in found.report.pictures:
        if picture.name in _shown(found):
            written.append(docs / f"{paper.key}-{picture.name}")
            with atomic(written[-1]) as partial:
                partial.write_bytes(picture.read_bytes())
    return written


def _shown(found: Reproduction[Any]) -> tuple[str, ...]:
    return found.paper.shown or tuple(picture.name for picture in found.report.pictures)
