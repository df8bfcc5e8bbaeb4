"""What the reproduction of the decentralized protocol's evaluation runs and writes.

::

    runs/<UTC time>-decentralized/
        config.json                  what was asked for
        figures/                     the pictures
        decentralized.json           findings and tables
        decentralized.md, report.html    the same to read

It takes a minute, so nothing is kept for going on with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.bench.decentralized import document, evidence, figures, findings, tables
from penstock.bench.decentralized.evidence import Evidence, Progress
from penstock.bench.grid import Grid
from penstock.bench.thesis.judging import Finding
from penstock.core.errors import InputError
from penstock.report import runs

NAME = "decentralized"
FIGURES = "figures"
SEEDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """So many seeds from the first one on."""

    seeds: int = SEEDS
    first_seed: int = 0

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise InputError(f"--seeds {self.seeds} must be ≥ 1; {SEEDS} take a minute")
        if self.first_seed < 0:
            raise InputError(f"--first-seed {self.first_seed} must be ≥ 0")

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """Everything that was found."""

    plan: Plan
    folder: Path
    evidence: Evidence
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
    }
    return runs.create(out, NAME, config)


def reproduce(
    plan: Plan, folder: Path, *, progress: Progress = lambda finished, total: None
) -> Reproduction:
    """Run everything, judge it, and write all that shows it."""
    gathered = evidence.gather(plan.numbers, progress=progress)
    found = Reproduction(
        plan=plan,
        folder=folder,
        evidence=gathered,
        findings=findings.judge(gathered),
        tables=tuple(tables.all_tables(gathered)),
        pictures=tuple(figures.draw_all(gathered, folder / FIGURES)),
    )
    plain = json.dumps(found.document(), indent=1, ensure_ascii=False)
    _write(folder / f"{NAME}.json", plain + "\n")
    _write(folder / f"{NAME}.md", _text(found, f"{FIGURES}/"))
    page = document.page(found.findings, found.tables, found.pictures, plan.seeds)
    _write(folder / runs.PAGE, page)
    return found


def publish(found: Reproduction, docs: Path) -> list[Path]:
    """The document and its pictures, into a folder of documents."""
    docs.mkdir(parents=True, exist_ok=True)
    written = [docs / f"{NAME}.md"]
    _write(written[0], _text(found, f"{NAME}-"))
    for picture in found.pictures:
        target = docs / f"{NAME}-{picture.name}"
        target.write_bytes(picture.read_bytes())
        written.append(target)
    return written


def _text(found: Reproduction, pictures: str) -> str:
    return document.text(
        found.findings,
        found.tables,
        seeds=found.plan.seeds,
        first_seed=found.plan.first_seed,
        pictures=pictures,
    )


def _write(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".part")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
