"""The thesis as a paper to reproduce: what it is called, what is run, what comes out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from penstock.papers.harness import Asked, Paper, Report
from penstock.papers.thesis import accuracy, document, experiment, figures, findings, improved
from penstock.papers.thesis.experiment import Answer, ThesisMeasured
from penstock.report.table import Table

SHOWN = ("7.3", "7.7", "7.9", "7.10", "7.20")  # the figures that the document shows


def report(found: ThesisMeasured, asked: Asked, folder: Path) -> Report:
    """Findings, tables within 80 columns, and pictures."""
    tables = [table.compact() for table in found.tables]
    if found.convergence is not None:
        tables.append(found.convergence)
    if found.accuracy:
        tables.append(accuracy.grid(list(found.accuracy)))
    if found.duels:
        tables += [improved.compact(found.duels), improved.summary(found.duels)]
    for answer in found.answers:
        tables += _titled(answer)
    return Report(
        findings=findings.judge(found.results),
        tables=tables,
        pictures=figures.draw_all(found.results, folder),
    )


def _titled(answer: Answer) -> list[Table]:
    """The tables of an extended section, each with its title; the last one says what was done."""
    title, about = answer.section.title, f"{answer.section.about} {answer.seeds} seeds."
    *others, last = (replace(grid, title=f"{title}: {grid.title}") for grid in answer.grids)
    return [*others, replace(last, notes=(*last.notes, about))]


def amount(asked: Asked) -> str:
    """Cells and seeds, and what the queries were calibrated on."""
    return (
        f"{len(experiment.all_cells(asked))} cells × {asked.seeds} seeds ({asked.numbers[0]} to "
        f"{asked.numbers[-1]}; calibrated on seeds {document.CALIBRATION})"
    )


_DRAWINGS = {drawing.id: drawing for drawing in figures.drawings()}
PAPER = Paper(
    name="thesis",
    title=document.TITLE,
    about=document.FITTED,
    seeds=30,
    first_seed=document.FIRST_SEED,
    keeps=("seeds", "first_seed", "only", "minutes"),
    has=frozenset({"only", "extended"}),
    captions={d.file: f"Figure {d.id}. {d.caption}" for d in _DRAWINGS.values()},
    shown=tuple(_DRAWINGS[id].file for id in SHOWN),
    amount=amount,
    check=experiment.check,
    measure=experiment.measure,
    report=report,
    plain_tables=document.plain_tables,
    texts=document.texts,
    page=document.page,
)
