"""How much faster a bench is when its runs are spread over Spark than in one process.

The same runs are done here, one after the other, and on ``local[2]``; again and again in turn, so
that both see the same machine. The speed-up is by the clock on the wall, so on a quiet machine;
beside it the same runs in as many plain processes, without Spark. Spark takes some seconds to
start, and its workers some more, whatever the bench. So the budget is for runs of a day, which
take minutes in one process; the start is not counted, and the whole stands beside it. Runs of 140
minutes, which are over in seconds, show what the fixed costs do to a sweep that is too small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from penstock.bench.spread.job import OnSpark
from penstock.bench.spread.sessions import Master
from penstock.comparison.cell import Cell
from penstock.comparison.runner import Way, cores, run
from penstock.core.errors import InputError, MissingError
from penstock.report.statistics import Estimate, estimate

BUDGET = 1.6  # times as fast as one process
SLOTS = 2
RUNS = 1000
ROUNDS = 3
POLICIES = ("ds2", "hpa-cpu", "hpa-varga", "dhalion")
SHORT, DAY = 140, 1_440  # simulated minutes of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds on the clock, and those until Spark was there."""

    wall: float
    start: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The same runs ``alone`` in one process, ``spread`` over Spark, and in ``plain`` processes;
    several rounds of each.
    """

    alone: Sequence[Took]
    spread: Sequence[Took]
    plain: Sequence[Took]

    @property
    def speed_up(self) -> Estimate:
        """Times as fast as one process, once Spark has started."""
        return self._ratio(lambda alone, spread: alone.wall / (spread.wall - spread.start))

    @property
    def by_processes(self) -> Estimate:
        """The same of plain processes, with their start."""
        return self._ratio(lambda alone, plain: alone.wall / plain.wall, self.plain)

    @property
    def whole(self) -> Estimate:
        """The same with the start of Spark."""
        return self._ratio(lambda alone, spread: alone.wall / spread.wall)

    @property
    def within_budget(self) -> bool:
        """Whether the mean keeps the budget."""
        return self.speed_up.mean >= BUDGET

    def _ratio(
        self, of: Callable[[Took, Took], float], others: Sequence[Took] | None = None
    ) -> Estimate:
        pairs = zip(self.alone, self.spread if others is None else others, strict=True)
        return estimate([of(*both) for both in pairs])


def measure(
    minutes: int,
    *,
    runs: int = RUNS,
    rounds: int = ROUNDS,
    say: Callable[[str], None] = lambda line: None,
) -> Spread:
    """So many runs of so many minutes under the thesis's cosine, by four policies."""
    if runs < len(POLICIES):
        raise InputError(f"runs {runs} must be ≥ {len(POLICIES)}, one of each policy")
    if cores() < SLOTS:
        raise MissingError(f"{cores()} core here, {SLOTS} are needed to be faster than one process")
    cells = [
        Cell(key=p, query="q1", workload="cosine", policy=p, minutes=minutes) for p in POLICIES
    ]
    seeds = range(runs // len(cells))
    _took(cells, seeds[:1])  # compile, fill caches
    alone, spread, plain = [], [], []
    for number in range(1, rounds + 1):
        alone.append(_took(cells, seeds))
        spread.append(_took(cells, seeds, master=Master(url=f"local[{SLOTS}]")))
        plain.append(_took(cells, seeds, workers=SLOTS))
        say(
            f"{minutes} minutes, round {number}: {alone[-1].wall:.1f} s alone, "
            f"{spread[-1].wall:.1f} s spread ({spread[-1].start:.1f} s until Spark was there), "
            f"{plain[-1].wall:.1f} s in {SLOTS} processes"
        )
    return Spread(alone=alone, spread=spread, plain=plain)


def _took(
    cells: Sequence[Cell], seeds: Sequence[int], *, master: Master | None = None, workers: int = 1
) -> Took:
    steps = [time.perf_counter()]
    way: Way | None = None
    if master is not None:
        way = OnSpark(master, say=lambda line: steps.append(time.perf_counter()))
    with TemporaryDirectory(prefix="penstock-") as folder:
        run(cells, seeds, Path(folder), workers=workers, way=way)
    wall = time.perf_counter() - steps[0]
    return Took(wall=wall, start=steps[-1] - steps[0])


def main() -> int:
    """Measure, print, and say by the exit code whether runs of a day keep the budget."""
    console, errors = Console(), Console(stderr=True)
    table = Table(title=f"{RUNS} simulated runs, local[{SLOTS}] over one process")
    columns = ("speed-up", "with the start", "plain processes", "budget")
    for column in ("minutes of a run", *columns):
        table.add_column(column, justify="right")
    for minutes in (SHORT, DAY):
        result = measure(minutes, say=errors.print)
        figures = (result.speed_up, result.whole, result.by_processes)
        table.add_row(
            f"{minutes:,}",
            *(f"{each.mean:.2f} ±{each.half_width or 0:.2f}" for each in figures),
            f"{BUDGET:g}" if minutes == DAY else "",
        )
    console.print(table)
    if not result.within_budget:
        console.print(
            f"[red]missed: {result.speed_up.mean:.2f} times as fast, the budget is {BUDGET:g}"
        )
    return 0 if result.within_budget else 1
