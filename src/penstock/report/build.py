"""Finish a run: everything that can be made from its configuration and its journal."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import InputError
from penstock.history.journal import Entry
from penstock.report import runs
from penstock.report.series import ticks_of
from penstock.report.summary import Summary, summarize


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run with its figures, and what was written; ``metrics`` only where pyarrow is there."""

    run: runs.Run
    summary: Summary
    metrics: Path | None
    picture: Path
    page: Path


def finish(folder: Path, *, latest: bool = True, out: Path | None = None) -> Finished:
    """Write measurements, picture and page of a run; ``latest`` then points at it.

    out: another folder for them
    """
    run = runs.load(folder)
    made = _finished(run, out or folder, metrics=True)
    if latest:
        runs.point_latest(folder)
    return made


def finish_journal(path: Path, *, out: Path | None = None) -> Finished:
    """Write picture and page of a journal alone: beside it under its name, or in ``out``."""
    run = runs.load_journal(path)
    prefix = "" if out is not None else path.name.removesuffix(".jsonl") + "."
    return _finished(run, out or path.parent, prefix=prefix, metrics=out is not None)


def _finished(run: runs.Run, out: Path, *, prefix: str = "", metrics: bool) -> Finished:
    from penstock.report import figure, page  # matplotlib takes a second to load

    wanted = metrics and runs.can_write_metrics()
    try:
        out.mkdir(parents=True, exist_ok=True)
        return Finished(
            run=run,
            summary=summarize(run.header, run.entries),
            metrics=runs.write_metrics(out, run.entries) if wanted else None,
            picture=figure.draw(run, out / f"{prefix}{runs.PICTURE}"),
            page=page.write(run, out / f"{prefix}{runs.PAGE}"),
        )
    except OSError as error:
        raise InputError(
            f"cannot write the report into {out}: {error.strerror}; choose another folder with "
            "--out"
        ) from error


def run_document(summary: Summary, entries: Sequence[Entry]) -> dict[str, Any]:
    """The figures and the changes of a run, as ``--json`` prints them."""
    changes = [
        {
            "time": t.time,
            "applied": t.decision.applied,
            "pools": {p: [c.before, c.slots] for p, c in t.decision.changes.items()},
            "reason": t.decision.proposal.reason,
        }
        for t in ticks_of(entries)
        if t.news
    ]
    figures = {
        **dataclasses.asdict(summary),
        "slot_hours": summary.slot_hours,
        "peak_saving_share": summary.peak_saving_share,
        "limit_saving_share": summary.limit_saving_share,
    }
    return {"run": None, "summary": figures, "changes": changes}


def finished_document(done: Finished) -> dict[str, Any]:
    """The same with where it is."""
    return {
        **run_document(done.summary, done.run.entries),
        "run": str(done.run.folder),
        "page": str(done.page),
        "picture": str(done.picture),
        "metrics": None if done.metrics is None else str(done.metrics),
        "ended_by": done.run.config.get("ended_by"),
    }
