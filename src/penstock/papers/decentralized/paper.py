"""What ``penstock reproduce decentralized`` runs and writes.

It takes a minute, so nothing is kept for going on with it: ``--resume`` begins again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.papers import harness
from penstock.papers.decentralized import evidence, figures, findings, tables
from penstock.papers.decentralized.evidence import Evidence, Progress
from penstock.papers.decentralized.experiment import DEVIATION, OTHERS
from penstock.papers.decentralized.figures import CAPTIONS
from penstock.papers.document import means
from penstock.papers.harness import FIGURES, Reproduction
from penstock.papers.write_up import Told, WriteUp

SEEDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """So many seeds from the first one on."""

    seeds: int = SEEDS
    first_seed: int = 0

    def __post_init__(self) -> None:
        harness.check_seeds(self.seeds, self.first_seed, SEEDS)

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))


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
        name=WRITE_UP.name,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(gathered),
        tables=tuple(tables.all_tables(gathered)),
        pictures=tuple(figures.draw_all(gathered, folder / FIGURES)),
    )
    WRITE_UP.finish(found, told(plan))
    return found


def told(plan: Plan) -> Told:
    """A plan in words."""
    command = f"penstock reproduce {WRITE_UP.name} --seeds {plan.seeds}"
    command += f" --first-seed {plan.first_seed}" if plan.first_seed else ""
    return Told(command=command, runs=f"{means(plan.seeds)}.", seed=plan.first_seed)


TITLE = "The decentralized protocol's evaluation, reproduced"
ABOUT = (
    "Five operators in a row, seven instances each at first, capacity 500, target ratio 0.7, a "
    "trial every 5 steps, 200 steps, every message sent and received. The paper calls the load of "
    f"each operator Brownian and says no more: here it moves by a normal {DEVIATION:g} records a "
    "step (half an instance's capacity), from what seven instances are for, reflected at the work "
    "of one; fixed before any run. The pseudo-code is repaired where it must be, see the page of "
    "the policy."
)
WRITE_UP = WriteUp(
    name="decentralized",
    title=TITLE,
    about=ABOUT,
    captions=CAPTIONS,
)
