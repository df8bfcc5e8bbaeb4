"""Finish a run: everything that can be made from its configuration and its journal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.report import runs
from penstock.report.summary import Summary, summarize


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run with its figures, and what was written."""

    run: runs.Run
    summary: Summary
    metrics: Path
    picture: Path
    page: Path


def finish(folder: Path, *, latest: bool = True) -> Finished:
    """Write measurements, picture and page of a run; ``latest`` then points at it."""
    from penstock.report import figure, page  # matplotlib takes a second to load

    run = runs.load(folder)
    finished = Finished(
        run=run,
        summary=summarize(run.header, run.entries),
        metrics=runs.write_metrics(folder, run.entries),
        picture=figure.draw(run),
        page=page.write(run),
    )
    if latest:
        runs.point_latest(folder)
    return finished
