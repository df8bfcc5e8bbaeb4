"""What ``penstock reproduce thesis`` runs, in which order, into which folder.

::

    runs/<UTC time>-thesis/
        config.json                        what was asked for
        cells.json, scores.jsonl, traces/  the bench of all tables
        extended/<section>/                a bench for each extended section
        figures/                           the pictures
        thesis.json                        findings and tables, as --json prints them
        thesis.md, report.html             the same to read
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from penstock import __version__
from penstock.compare import runner
from penstock.compare.results import Results
from penstock.core.errors import InputError
from penstock.papers import page
from penstock.papers.judging import judge
from penstock.papers.thesis import (
    accuracy,
    cells,
    convergence,
    document,
    findings,
    improved,
    published,
)
from penstock.papers.thesis.extended import SECTIONS, Section
from penstock.papers.thesis.figures import draw_all
from penstock.papers.thesis.reproduction import IMPROVED, Answer, Plan, Reproduction
from penstock.papers.thesis.tables import compare
from penstock.report import runs

NAME = "thesis"
FIGURES = "figures"
EXTENDED = "extended"
Progress = Callable[[str, int, int], None]  # what, finished runs, all runs


def begin(plan: Plan, out: Path) -> Path:
    """A new folder for a plan; nothing is written if the plan cannot be run."""
    runner.check(plan.cells(), plan.numbers)
    runs.check_writable(out)
    config = {
        "reproduces": NAME,
        "penstock": __version__,
        "seeds": plan.seeds,
        "first_seed": plan.first_seed,
        "only": list(plan.only),
        "minutes": plan.minutes,
    }
    return runs.create(out, NAME, config)


def planned(folder: Path) -> Plan:
    """The plan that a folder was begun with."""
    path = folder / runs.CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if config["reproduces"] != NAME:
            raise KeyError(NAME)
        return Plan(
            seeds=config["seeds"],
            first_seed=config["first_seed"],
            only=tuple(config["only"]),
            minutes=config["minutes"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{folder} is not a run of `penstock reproduce thesis`: {path} does not say so. "
            "Give the folder that it named, or leave --resume out to start a new one"
        ) from None


def reproduce(
    plan: Plan, folder: Path, *, workers: int | None = None, progress: Progress | None = None
) -> Reproduction:
    """Run what the folder does not hold yet, judge it, and write everything that shows it."""
    report = progress or (lambda what, finished, total: None)

    def tell(what: str) -> Callable[[int, int], None]:
        return lambda finished, total: report(what, finished, total)

    results = runner.run(
        plan.cells(), plan.numbers, folder, workers=workers, progress=tell("tables")
    )
    answers = [
        _answer(section, plan, results, folder, workers, tell(section.name))
        for section in (SECTIONS if plan.extended else ())
    ]
    found = found_in(results, plan, folder, answers)
    write(found)
    return found


def found_in(
    results: Results, plan: Plan, folder: Path, answers: Sequence[Answer] = ()
) -> Reproduction:
    """Tables, findings and pictures of finished runs."""
    tables = tuple(compare(id, results) for id in plan.tables if id in published.TABLES)
    settled = published.CONVERGENCE_ID in plan.tables
    return Reproduction(
        plan=plan,
        folder=folder,
        results=results,
        findings=tuple(judge(results, findings.RULES)),
        tables=tables,
        convergence=convergence.table(results) if settled else None,
        accuracy=tuple(accuracy.accuracy(tables)),
        duels=tuple(improved.duels(results)) if IMPROVED in plan.tables else (),
        drawings=tuple(draw_all(results, folder / FIGURES)),
        answers=tuple(answers),
    )


def write(found: Reproduction) -> None:
    """``thesis.json``, ``thesis.md`` and ``report.html``."""
    plain = json.dumps(found.document(), indent=1, ensure_ascii=False)
    _write(found.folder / "thesis.json", plain + "\n")
    _write(found.folder / "thesis.md", document.text(found, pictures=FIGURES))
    if found.answers:
        _write(found.folder / "thesis-extended.md", document.extended_text(found))
    _write(found.folder / runs.PAGE, page.render(found, found.folder / FIGURES))


def publish(found: Reproduction, docs: Path) -> list[Path]:
    """Write the documents, with a few pictures beside them, into a folder of documents."""
    docs.mkdir(parents=True, exist_ok=True)
    shown = [d for d in found.drawings if d.id in document.SHOWN]
    written = []
    for drawing in shown:
        target = docs / f"thesis-{drawing.file}"
        target.write_bytes((found.folder / FIGURES / drawing.file).read_bytes())
        written.append(target)
    texts = {"thesis.md": document.text(found, pictures=None)}
    if found.answers:
        texts["thesis-extended.md"] = document.extended_text(found)
    for name, text in texts.items():
        _write(docs / name, text)
        written.append(docs / name)
    return written


def _answer(
    section: Section,
    plan: Plan,
    main: Results,
    folder: Path,
    workers: int | None,
    progress: Callable[[int, int], None],
) -> Answer:
    seeds = plan.numbers[: section.seeds]
    wanted = cells.shortened(section.cells(), plan.minutes)
    if section.main:
        known = {cell.key for cell in main.cells}
        wanted = [cell for cell in wanted if cell.key not in known]
    results = runner.run(
        wanted, seeds, folder / EXTENDED / section.name, workers=workers, progress=progress
    )
    together = merged(main, results) if section.main else results
    return Answer(section=section, grids=tuple(section.tables(together)), seeds=len(seeds))


def merged(first: Results, second: Results) -> Results:
    """Both as one; their seeds are the same."""
    both = (first, second)
    scores = {
        (cell.key, seed): r.scores(cell.key, seed)
        for r in both
        for cell in r.cells
        for seed in r.seeds_of(cell.key)
    }
    return Results((*first.cells, *second.cells), first.seeds, scores)


def _write(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def with_extended(plan: Plan, wanted: bool) -> Plan:
    """The plan, with the extended sections if they are wanted."""
    return replace(plan, extended=plan.extended or wanted)
