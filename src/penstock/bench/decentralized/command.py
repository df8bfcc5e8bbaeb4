"""What ``penstock reproduce decentralized`` runs and writes.

It takes a minute, so nothing is kept for going on with it: ``--resume`` begins again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.bench import reproduction
from penstock.bench.decentralized import document, evidence, figures, findings, tables
from penstock.bench.decentralized.evidence import Evidence, Progress
from penstock.bench.decentralized.experiment import OTHERS
from penstock.bench.reproduction import FIGURES, Reproduction

NAME = "decentralized"
SEEDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """So many seeds from the first one on."""

    seeds: int = SEEDS
    first_seed: int = 0

    def __post_init__(self) -> None:
        reproduction.check_seeds(self.seeds, self.first_seed, SEEDS)

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))


def wanted(seeds: int | None, first_seed: int | None, extended: bool) -> Plan:
    """The plan that the command line asks for."""
    return Plan(seeds=SEEDS if seeds is None else seeds, first_seed=first_seed or 0)


def begin(plan: Plan, out: Path) -> Path:
    """A new folder for a plan."""
    return reproduction.begin(NAME, plan, out)


def planned(folder: Path, extended: bool = False) -> Plan:
    """The plan that a folder was begun with."""
    return reproduction.planned(NAME, Plan, folder)


def size(plan: Plan) -> int:
    """How many cells it has: the paper's, and those that differ from it in one thing."""
    return 1 + len(OTHERS)


def reproduce(
    plan: Plan,
    folder: Path,
    *,
    workers: int | None = None,
    progress: Progress = lambda finished, total: None,
) -> Reproduction:
    """Run everything in this process, judge it, and write all that shows it."""
    return judged(plan, folder, evidence.gather(plan.numbers, progress=progress))


def judged(plan: Plan, folder: Path, gathered: Evidence) -> Reproduction:
    """What the evidence says, written down."""
    found = Reproduction(
        name=NAME,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(gathered),
        tables=tuple(tables.all_tables(gathered)),
        pictures=tuple(figures.draw_all(gathered, folder / FIGURES)),
    )
    page = document.page(found.findings, found.tables, found.pictures, plan.seeds)
    reproduction.finish(found, text=_text(plan, found, f"{FIGURES}/"), page=page)
    return found


def publish(plan: Plan, found: Reproduction, docs: Path) -> list[Path]:
    """The document and its pictures, into a folder of documents."""
    text = _text(plan, found, f"{NAME}-")
    return reproduction.publish(found, docs, text=text, shown=tuple(figures.CAPTIONS))


def _text(plan: Plan, found: Reproduction, pictures: str) -> str:
    return document.text(
        found.findings,
        found.tables,
        seeds=plan.seeds,
        first_seed=plan.first_seed,
        pictures=pictures,
    )
