"""What ``penstock reproduce mead`` runs and writes.

::

    runs/<UTC time>-mead/
        config.json              what was asked for
        scores.jsonl             a line per finished run
        figures/                 the pictures
        mead.json                findings and tables, as --json prints them
        mead.md, report.html     the same to read
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.bench.grid import Grid
from penstock.bench.mead import cells, document, figures, findings, models, runner, tables
from penstock.bench.mead.runner import Outcomes, Progress
from penstock.bench.thesis.judging import Finding
from penstock.core.errors import InputError
from penstock.report import runs

NAME = "mead"
FIGURES = "figures"
SEEDS = 10
LEAST_MINUTES = 2.0  # two decisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """So many seeds from the first one on; of every trace so many ``minutes``, or all.

    ``extended``: also ``mead+``, which the paper does not have.
    """

    seeds: int = SEEDS
    first_seed: int = 0
    minutes: float | None = None
    extended: bool = False

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise InputError(f"--seeds {self.seeds} must be ≥ 1; {SEEDS} give narrow intervals")
        if self.first_seed < 0:
            raise InputError(f"--first-seed {self.first_seed} must be ≥ 0")
        if self.minutes is not None and not self.minutes >= LEAST_MINUTES:
            raise InputError(f"minutes {self.minutes} must be ≥ {LEAST_MINUTES:g}")

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))

    @property
    def seconds(self) -> float:
        """Of every trace."""
        return math.inf if self.minutes is None else 60.0 * self.minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """Everything that was found."""

    plan: Plan
    folder: Path
    outcomes: Outcomes
    findings: tuple[Finding, ...]
    tables: tuple[Grid, ...]
    pictures: tuple[Path, ...]

    def document(self) -> dict[str, Any]:
        """``--json``: findings and tables, plain values."""
        return {
            "findings": [finding.document() for finding in self.findings],
            "tables": [
                {
                    "title": table.title,
                    "seeds": self.plan.seeds,
                    "columns": list(table.header),
                    "rows": [list(row) for row in table.rows],
                }
                for table in self.tables
            ],
        }


def begin(plan: Plan, out: Path) -> Path:
    """A new folder for a plan."""
    runs.check_writable(out)
    config = {
        "reproduces": NAME,
        "penstock": __version__,
        "seeds": plan.seeds,
        "first_seed": plan.first_seed,
        "minutes": plan.minutes,
        "extended": plan.extended,
    }
    return runs.create(out, NAME, config)


def planned(folder: Path) -> Plan:
    """The plan that a folder was begun with."""
    path = folder / runs.CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if config["reproduces"] != NAME:
            raise KeyError(NAME)
        plan = Plan(
            seeds=config["seeds"],
            first_seed=config["first_seed"],
            minutes=config["minutes"],
            extended=config["extended"],
        )
        version = config["penstock"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{folder} is not a run of `penstock reproduce {NAME}`: {path} does not say so. Give "
            "the folder that it named, or leave --resume out to start a new one"
        ) from None
    if version != __version__:
        raise InputError(
            f"{folder} was begun with penstock {version}, this is {__version__}; its results "
            "cannot be mixed. Leave --resume out to start a new one"
        )
    return plan


def reproduce(
    plan: Plan,
    folder: Path,
    *,
    workers: int | None = None,
    progress: Progress = lambda finished, total: None,
) -> Reproduction:
    """Run what the folder does not hold yet, judge it, and write everything that shows it."""
    outcomes = runner.run(
        cells.all_cells(extended=plan.extended),
        plan.numbers,
        folder,
        workers=workers,
        seconds=plan.seconds,
        progress=progress,
    )
    comparisons = [
        models.compare(trace, seed, plan.seconds)
        for trace in models.TRACES
        for seed in plan.numbers
    ]
    shown = figures.Shown(
        outcomes=outcomes,
        comparisons=comparisons,
        seed=plan.first_seed,
        seconds=plan.seconds,
    )
    found = Reproduction(
        plan=plan,
        folder=folder,
        outcomes=outcomes,
        findings=findings.judge(outcomes, comparisons),
        tables=tuple(tables.all_tables(outcomes, comparisons, extended=plan.extended)),
        pictures=tuple(figures.draw_all(shown, folder / FIGURES)),
    )
    plain = json.dumps(found.document(), indent=1, ensure_ascii=False)
    _write(folder / "mead.json", plain + "\n")
    _write(folder / "mead.md", _text(found, f"{FIGURES}/"))
    page = document.page(found.findings, found.tables, found.pictures, plan.seeds)
    _write(folder / runs.PAGE, page)
    return found


def publish(found: Reproduction, docs: Path) -> list[Path]:
    """The document and the pictures that it shows, into a folder of documents."""
    docs.mkdir(parents=True, exist_ok=True)
    written = [docs / "mead.md"]
    _write(written[0], _text(found, "mead-"))
    for picture in found.pictures:
        if picture.name in document.SHOWN:
            target = docs / f"mead-{picture.name}"
            target.write_bytes(picture.read_bytes())
            written.append(target)
    return written


def _text(found: Reproduction, pictures: str) -> str:
    return document.text(
        found.findings,
        found.tables,
        seeds=found.plan.seeds,
        first_seed=found.plan.first_seed,
        extended=found.plan.extended,
        pictures=pictures,
    )


def _write(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
