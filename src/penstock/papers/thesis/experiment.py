"""What is run for the thesis, and everything that is made of the runs.

::

    runs/<UTC time>-thesis/
        cells.json, scores.jsonl, traces/  the bench of all tables
        extended/<section>/                a bench for each extended section
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.comparison import runner
from penstock.comparison.cell import Cell
from penstock.comparison.results import Results
from penstock.core.errors import InputError, unknown
from penstock.papers.harness import Asked
from penstock.papers.running import RunFolder
from penstock.papers.thesis import accuracy, cells, convergence, improved, published
from penstock.papers.thesis.extended import SECTIONS, Section
from penstock.papers.thesis.tables import Compared, compare
from penstock.report.table import Table

EXTENDED = "extended"
IMPROVED = "improved"
KNOWN: tuple[str, ...] = (*published.IDS, IMPROVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An extended section with its tables, over so many seeds."""

    section: Section
    grids: tuple[Table, ...]
    seeds: int

    @property
    def about(self) -> str:
        """What was done, and how often."""
        return f"{self.section.about} {self.seeds} seeds."


@dataclass(frozen=True, slots=True, kw_only=True)
class ThesisMeasured:
    """The results of the main bench, and what is made of them.

    tables: the published ones with ours beside them
    convergence: Table 7.19, if it was asked for
    accuracy: how far ours are from the published figures
    duels: the improved auto-scalers against their originals
    answers: the extended sections
    """

    results: Results
    tables: tuple[Compared, ...]
    convergence: Table | None
    accuracy: tuple[accuracy.Accuracy, ...]
    duels: tuple[improved.Duel, ...]
    answers: tuple[Answer, ...] = ()


def check(asked: Asked) -> None:
    """Refuse what cannot be run."""
    for name in asked.only:
        if name not in KNOWN:
            raise unknown("table", name, KNOWN)
    if asked.only and asked.extended:
        raise InputError("--extended needs all tables; leave --only out")
    runner.check(all_cells(asked), asked.numbers)


def wanted(asked: Asked) -> tuple[str, ...]:
    """The tables that are wanted, in the thesis's order."""
    return tuple(name for name in KNOWN if not asked.only or name in asked.only)


def all_cells(asked: Asked) -> list[Cell]:
    """Each cell of the main bench, once."""
    found: list[Cell] = []
    for name in wanted(asked):
        found += cells.of_improved() if name == IMPROVED else cells.of_table(name)
    once = {cell.key: cell for cell in found}
    return cells.shortened(once.values(), asked.minutes)


def measure(asked: Asked, folder: RunFolder) -> ThesisMeasured:
    """Run what the folder does not hold yet; all that is made of it."""
    results = _bench(all_cells(asked), asked.numbers, folder, "tables")
    sections = SECTIONS if asked.extended else ()
    return made_of(results, asked, [_answer(s, asked, results, folder) for s in sections])


def made_of(results: Results, asked: Asked, answers: Sequence[Answer] = ()) -> ThesisMeasured:
    """Everything that is made of finished runs."""
    chosen = wanted(asked)
    tables = tuple(compare(id, results) for id in chosen if id in published.TABLES)
    settled = published.CONVERGENCE_ID in chosen
    return ThesisMeasured(
        results=results,
        tables=tables,
        convergence=convergence.table(results) if settled else None,
        accuracy=tuple(accuracy.accuracy(tables)),
        duels=tuple(improved.duels(results)) if IMPROVED in chosen else (),
        answers=tuple(answers),
    )


def _bench(
    chosen: Sequence[Cell], seeds: Sequence[int], folder: RunFolder, what: str, under: str = ""
) -> Results:
    return runner.run(
        chosen,
        seeds,
        folder.path / under,
        workers=folder.workers,
        progress=lambda finished, total: folder.progress(what, finished, total),
    )


def _answer(section: Section, asked: Asked, main: Results, folder: RunFolder) -> Answer:
    seeds = asked.numbers[: section.seeds]
    chosen = cells.shortened(section.cells(), asked.minutes)
    if section.main:
        known = {cell.key for cell in main.cells}
        chosen = [cell for cell in chosen if cell.key not in known]
    results = _bench(chosen, seeds, folder, section.name, f"{EXTENDED}/{section.name}")
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
