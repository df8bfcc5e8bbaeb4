"""``penstock profile``: what an application's batches cost, from what is there of it."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import output
from penstock.cli.options import AsJson, AtAddress, CoresOfEach, RanOn, Recording, TasksOfStage
from penstock.core.errors import InputError

if TYPE_CHECKING:
    from penstock.history.learning.learn import Learned
    from penstock.history.recording import RecordedApplication

MOST_ROWS = 100_000  # of a file of demand


def profile(
    source: Recording,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File for the profile.", show_default="profile.json"),
    ] = None,
    query: Annotated[
        list[str] | None, typer.Option(help="Only this query; repeatable.", show_default="all")
    ] = None,
    app: AtAddress = None,
    executors: RanOn = None,
    cores: CoresOfEach = None,
    partitions: TasksOfStage = None,
    demand: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Also write what came, for compare --trace."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Learn a profile: what batches, stages and executors cost, and what demand there was.

    The profile is what `penstock compare --profile` plays other policies on. What could not be
    learnt is said, with the way to learn it.
    """
    from penstock.comparison.sources import read_source
    from penstock.history.learning.learn import learn
    from penstock.simulator.microbatch import write_profile

    path = Path("profile.json") if out is None else out
    check_file(path)
    if demand is not None:
        _check_place("--demand", demand)
    with output.progress() as bar:
        task = bar.add_task("reading", total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        found = read_source(source, app=app, progress=told)
        bar.update(task, description="fitting", total=None)
        learned = learn(
            found, queries=query, executors=executors, cores=cores, partitions=partitions
        )
    write_profile(learned.profile, path)
    files = {"profile": path}
    if demand is not None:
        write_demand(learned, demand)
        files["demand"] = demand
    if as_json:
        output.print_json(document(found, learned, files))
        return
    _show(found, learned)
    output.print_files(files)


def check_file(path: Path) -> None:
    """It can be written, and holds nothing or a profile; found out before anything is read."""
    _check_place("-o", path)
    if not path.exists():
        return
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        ours = isinstance(known, dict) and {"version", "queries"} <= known.keys()
    except (OSError, ValueError, RecursionError):
        ours = False
    if not ours and path.stat().st_size:
        raise InputError(f"-o {path} is there already and is no profile; name another file")


def _check_place(option: str, path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{option} {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {path.parent}; create it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{option} {path} cannot be written; choose another place")


def write_demand(learned: Learned, path: Path) -> None:
    """What came to all sources together, as a table with a row for each cell of time."""
    import numpy as np

    from penstock.history.files import atomic

    if not learned.demand:
        raise InputError(f"--demand {path}: the demand is not known; leave it out")
    first = min(d.edges[0] for d in learned.demand.values())
    last = max(d.edges[-1] for d in learned.demand.values())
    pieces = max(len(d.rates) for d in learned.demand.values())
    step = max(1.0, float(np.ceil((last - first) / min(max(pieces, 1), MOST_ROWS))))
    cells = int(np.ceil((last - first) / step - 1e-9))
    rates = np.zeros(max(1, cells))
    for d in learned.demand.values():
        mine = d.even(step)
        at = round(float(d.edges[0] - first) / step)
        mine = mine[: len(rates) - at]
        rates[at : at + len(mine)] += mine
    with atomic(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("time", "records_per_s"))
        begin = learned.start + float(first)
        table.writerows(
            (f"{begin + i * step:.3f}", f"{rate:.6g}") for i, rate in enumerate(rates.tolist())
        )


def document(
    found: RecordedApplication, learned: Learned, files: dict[str, Path]
) -> dict[str, Any]:
    """All of it as one JSON value."""
    from dataclasses import asdict

    from penstock.core.codec import to_json

    return {
        "source": found.source,
        "kind": found.kind,
        "application": {"id": found.id, "name": found.name},
        "start": learned.start,
        "seconds": learned.seconds,
        "batches": learned.batches,
        "sizes": list(learned.sizes),
        "executors": {
            "edges": learned.executors.edges.tolist(),
            "counts": list(learned.executors.counts),
        },
        "demand": {
            name: {
                "mean": d.mean,
                "peak": d.peak,
                "records": d.records,
                "seconds": d.seconds,
                "lower_bound": d.lower_bound,
            }
            for name, d in learned.demand.items()
        },
        "profile": to_json(learned.profile),
        "explained": {q: [asdict(e) for e in some] for q, some in learned.explained.items()},
        "mean_error": learned.error,
        "not_learnt": list(learned.profile.notes),
        "remarks": list(learned.remarks),
        "files": {name: str(path) for name, path in files.items()},
    }


def _show(found: RecordedApplication, learned: Learned) -> None:
    from penstock.report import profile_tables as tables

    screen = output.console()
    screen.print(tables.recording_table(found, learned))
    screen.print()
    screen.print(tables.demand_table(learned))
    for fit in learned.fits.values():
        screen.print()
        screen.print(tables.stages_table(fit))
        screen.print()
        screen.print(tables.numbers_table(fit, learned.profile.executor))
        screen.print()
        screen.print(tables.explained_table(fit))
    screen.print()
    screen.print(f"the profile is off by {learned.error:.0%} of a batch on average")
    for title, lines in (
        ("not learnt, or taken for granted:", learned.profile.notes),
        ("of the source:", learned.remarks),
    ):
        if lines:
            screen.print(f"\n{title}")
        for line in lines:
            screen.print(f"- {line}")
    screen.print()
