"""What ``penstock reproduce gesscale`` runs and writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.papers import harness
from penstock.papers.document import means
from penstock.papers.gesscale.simulated import figures, findings, runner, setups, tables
from penstock.papers.gesscale.simulated.published import NAMES
from penstock.papers.gesscale.simulated.setups import LEAST, NODES, WARM_UP
from penstock.papers.harness import FIGURES, Reproduction
from penstock.papers.running import Progress
from penstock.papers.write_up import Told, WriteUp

SEEDS, FIRST_SEED = 30, 3000  # the fog was calibrated on seeds below that


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """So many seeds, each a map of latencies, from the first one on.

    ``extended``: also ``gesscale+``, which the paper does not have.
    """

    seeds: int = SEEDS
    first_seed: int = FIRST_SEED
    extended: bool = False

    def __post_init__(self) -> None:
        harness.check_seeds(self.seeds, self.first_seed, SEEDS)

    @property
    def numbers(self) -> list[int]:
        """The seeds."""
        return list(range(self.first_seed, self.first_seed + self.seeds))


def size(plan: Plan) -> int:
    """How many cells it has."""
    return len(setups.all_cells(extended=plan.extended))


def reproduce(
    plan: Plan,
    folder: Path,
    *,
    workers: int | None = None,
    progress: Progress = lambda finished, total: None,
) -> Reproduction:
    """Run what the folder does not hold yet, judge it, and write everything that shows it."""
    chosen = setups.all_cells(extended=plan.extended)
    outcomes = runner.run(chosen, plan.numbers, folder, workers=workers, progress=progress)
    found = Reproduction(
        name=WRITE_UP.name,
        seeds=plan.seeds,
        folder=folder,
        findings=findings.judge(outcomes),
        tables=tuple(tables.all_tables(outcomes, extended=plan.extended)),
        pictures=tuple(figures.draw_all(outcomes, plan.first_seed, folder / FIGURES)),
    )
    WRITE_UP.finish(found, told(plan))
    return found


def told(plan: Plan) -> Told:
    """A plan in words."""
    command = f"penstock reproduce {WRITE_UP.name} --seeds {plan.seeds}"
    command += f" --first-seed {plan.first_seed}" if plan.first_seed != FIRST_SEED else ""
    command += " --extended" if plan.extended else ""
    runs = f"{means(plan.seeds)}, from seed {plan.first_seed} on."
    return Told(command=command, runs=runs, seed=plan.first_seed)


TITLE = "The Gesscale paper's evaluation, reproduced"
CAPTIONS = {
    "figure-3.png": "Figure 3. Throughput around a reconfiguration",
    "figure-6.png": "Figure 6. The ideal auto-scaler",
    **{
        f"figure-7{letter}.png": f"Figure 7{letter}. {name}: load and throughput, replicas, and "
        "how many too many"
        for letter, name in zip("abcd", NAMES.values(), strict=True)
    },
}
SHOWN = ("figure-3.png", "figure-6.png", "figure-7a.png", "figure-7d.png")
ABOUT = (
    f"The taxi operator in the geo simulator, on {NODES} nodes whose round trips are drawn between "
    "0 and 300 ms for each seed. The load is New York's taxi drop-offs of 1 and 2 May 2013, three "
    "records per trip, ten times as fast; the paper used the pick-ups of the same days, so single "
    "figures differ. A change stops the job for 120 s. The policies look once a minute, with "
    "no other guard, as the paper's text has it. Its public code does not look for "
    f"{WARM_UP:.0f} s after a restart and keeps at least {LEAST} replicas: that is the set-up "
    "*code* in the table of other set-ups. The speed of a node was calibrated to what "
    "Table III tells of the ideal auto-scaler, on other seeds (docs/geo-simulator.md); what "
    "distance and waiting cost is our choice, and other choices are in the table of other set-ups. "
    "While a job is stopped it has no replica."
)
WRITE_UP = WriteUp(
    name="gesscale",
    title=TITLE,
    about=ABOUT,
    captions=CAPTIONS,
    shown=SHOWN,
)
