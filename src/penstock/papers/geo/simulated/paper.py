"""The geo study as a paper to reproduce in the simulator: its figures as tables. [arsalane24]

Ours stand beside the few values that the study names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from penstock.papers.geo.simulated import cells, figures, findings, published
from penstock.papers.geo.simulated.cells import Condition, Scaler
from penstock.papers.geo.simulated.experiment import VIEWS, GeoOutcome, GeoOutcomes, mean, run
from penstock.papers.harness import Asked, Paper
from penstock.papers.running import CellRun, RunFolder
from penstock.report.table import NONE, Table, percent
from penstock.simulator.geo.setups import NODES, RATE

LEVELS = range(1, NODES + 1)
SCALERS: tuple[Scaler, ...] = ("gesscale", "gesscale+")
One = TypeVar("One")  # a condition, simulated or on Spark
SHORT = {"none": "0", "fixed": "25", "jitter": "±"}
CAPTIONS = {
    "figure-6.png": "Figure 6. Busy shares of the instances, no delay",
    "figure-7.png": "Figure 7. Throughput and what was predicted, no delay",
    "figure-8.png": "Figure 8. Throughput and what was predicted, 25 ms on half of the nodes",
    "figure-9.png": "Figure 9. Throughput and what was predicted, 25 ± 10 ms on half of them",
    "figure-10.png": "Figure 10. Id-Id, 70 % of the nodes delayed: throughput and back pressure",
}
ABOUT = (
    "Three jobs on ten nodes of a rack in the geo simulator, 100,000 records/s offered (joins: two "
    "streams of 50,000); packets to half of the nodes, in Figure 10 to 70 %, come late, and those "
    "are used last. The source shares the node of the first instance. After each restart 180 s of "
    "warm-up, then a minute is measured. In *levels* every parallelism from 1 to 10 is measured in "
    "turn and both policies look on: what each predicts for the next level, before it is reached, "
    "is held against what is measured there. In the other runs a policy decides by itself, 16 "
    "times. The simulator was calibrated on seeds 0 to 99 and 1000 to 1029, without a policy; the "
    "model and the constants of gesscale+ were chosen on seeds 100 to 139; the runs here have "
    "others. The study made five runs of each, which differ: one goes on where four stop."
)


def measure(asked: Asked, folder: RunFolder) -> GeoOutcomes:
    """Run what the folder does not hold yet, seed by seed."""
    groups = [
        [CellRun(key=cell.key, cell=cell, seed=seed) for cell in cells.all_cells()]
        for seed in asked.numbers
    ]
    return GeoOutcomes(runs=folder.in_processes(groups, run, GeoOutcome))


def tables(outcomes: GeoOutcomes, asked: Asked) -> list[Table]:
    """Figures 6 to 10 as tables, the errors of predictions, and where the auto-scalers end."""
    conditions = cells.studied()
    jobs = {job: [c for c in conditions if c.job == job] for job in published.JOBS}
    return [
        busyness(outcomes, [c for c in conditions if c.case == "none"]),
        *(throughput(outcomes, job, chosen) for job, chosen in jobs.items()),
        *(predictions(outcomes, job, chosen) for job, chosen in jobs.items()),
        errors(outcomes, conditions),
        told(outcomes, jobs),
        mostly_delayed(outcomes),
        ends(outcomes),
    ]


def by_level(
    levels: Iterable[int], conditions: Sequence[One], texts: Callable[[One, int], Iterable[str]]
) -> tuple[tuple[str, ...], ...]:
    """A row for each level: its number, then ``texts`` of it under each condition."""
    return tuple((str(n), *(text for c in conditions for text in texts(c, n))) for n in levels)


def busyness(outcomes: GeoOutcomes, conditions: Sequence[Condition]) -> Table:
    """Figure 6: least and most busy instance, and which is the busiest."""

    def texts(condition: Condition, level: int) -> tuple[str, str]:
        looks = outcomes.level(condition, level)
        by_instance = [mean(values) for values in zip(*(x.busy for x in looks), strict=True)]
        most = max(by_instance)
        busy = f"{percent(min(by_instance))} to {percent(most)}"
        return busy, str(1 + by_instance.index(most))

    return Table(
        title="Figure 6. Busy time of the least and the most busy instance, no delay",
        header=("n", *(text for c in conditions for text in (published.JOBS[c.job], "busiest"))),
        rows=by_level(LEVELS, conditions, texts),
        notes=("busiest: its number in the order in which instances were added",),
    )


def throughput(outcomes: GeoOutcomes, job: str, conditions: Sequence[Condition]) -> Table:
    """Figures 7 to 9 of one job: mean, least and most of the runs."""

    def texts(condition: Condition, level: int) -> tuple[str]:
        rates = [look.rate / 1e3 for look in outcomes.level(condition, level)]
        return (f"{mean(rates):.1f} ({min(rates):.1f} to {max(rates):.1f})",)

    return Table(
        title=f"Figures 7 to 9. {published.JOBS[job]}: thousand records/s by instances",
        header=("n", *(published.CASES[c.case] for c in conditions)),
        rows=by_level(LEVELS, conditions, texts),
        notes=(f"mean (least to most) of the runs; {RATE / 1e3:.0f} are offered",),
    )


def predictions(outcomes: GeoOutcomes, job: str, conditions: Sequence[Condition]) -> Table:
    """Figures 7 to 9 of one job: predicted before a level was reached, against measured there."""

    def texts(condition: Condition, level: int) -> list[str]:
        found = [outcomes.errors(condition, level, scaler) for scaler in SCALERS]
        return [percent(mean(some), sign=True) if some else NONE for some in found]

    cases = [published.CASES[condition.case] for condition in conditions]
    return Table(
        title=f"Figures 7 to 9. {published.JOBS[job]}: prediction against measurement",
        header=("n", *(text for case in cases for text in (f"{case}: G", "G+"))),
        rows=by_level(LEVELS[1:], conditions, texts),
        notes=(
            "mean error of the runs; G gesscale as far as it scales,",
            "G+ gesscale+",
        ),
    )


def errors(outcomes: GeoOutcomes, conditions: Sequence[Condition]) -> Table:
    """Mean and greatest errors of predictions, ours beside what the study names."""
    rows = []
    for condition in conditions:
        row = [published.JOBS[condition.job], published.CASES[condition.case]]
        for scaler in SCALERS:
            found = [abs(error) for error in outcomes.all_errors(condition, scaler)]
            row += [percent(mean(found)), percent(max(found))] if found else [NONE, NONE]
        theirs = published.WORST.get((condition.job, condition.case))
        row.insert(4, percent(theirs))
        row.append(f"≤ {percent(published.TARGETS[condition.job])}")
        row.append(percent(outcomes.inside(condition)))
        rows.append(tuple(row))
    return Table(
        title="Errors of predictions of levels that had not been seen",
        header=(
            "job",
            "delay",
            "G mean",
            "G most",
            "paper",
            "G+ mean",
            "G+ most",
            "wanted",
            "inside",
        ),
        rows=tuple(rows),
        notes=(
            "of single runs; G gesscale as far as it scales by itself,",
            "G+ gesscale+ at all levels; paper: the greatest error it names;",
            "wanted: our aim for the mean of gesscale+; inside: measured within its",
            "95 % interval",
        ),
        words=2,
    )


def told(outcomes: GeoOutcomes, jobs: Mapping[str, Sequence[Condition]]) -> Table:
    """How much predictions of ``gesscale+`` depend on what an engine tells."""
    rows = []
    for place, view in enumerate((None, *VIEWS)):
        row = [view or "everything"]
        for conditions in jobs.values():
            row += [_seen_by(outcomes, condition, place - 1) for condition in conditions]
        rows.append(tuple(row))
    header = ["told"]
    for job, conditions in jobs.items():
        header += [
            f"{published.JOBS[job] if n == 0 else SHORT[c.case]}" for n, c in enumerate(conditions)
        ]
    return Table(
        title="Mean errors of gesscale+ by what the engine tells",
        header=tuple(header),
        rows=tuple(rows),
        notes=("each job with no delay, with 25 and with 25 ± 10 ms (±)",),
    )


def _seen_by(outcomes: GeoOutcomes, condition: Condition, place: int) -> str:
    looks = [look for run in outcomes.of(condition) for look in run.looks[1:]]
    found = [
        abs((look.plus if place < 0 else look.views[place]) / look.rate - 1.0)
        for look in looks
        if look.plus is not None and look.views
    ]
    return percent(mean(found)) if found else NONE


def mostly_delayed(outcomes: GeoOutcomes) -> Table:
    """Figure 10: throughput, back pressure and where Gesscale stalls, by level."""

    def texts(condition: Condition, level: int) -> tuple[str, str, str]:
        looks = outcomes.level(condition, level)
        return (
            f"{mean([look.rate for look in looks]) / 1e3:.1f}",
            f"{1e3 * mean([look.held for look in looks]):.0f}",
            str(sum(run.stays == level for run in outcomes.of(condition))),
        )

    header = ["n"]
    for condition in cells.mostly_delayed():
        header += [f"{1e3 * condition.delay:.0f} ms: k/s", "held ms/s", "stalls"]
    return Table(
        title="Figure 10. Id-Id, 70 % of the nodes delayed",
        header=tuple(header),
        rows=by_level(LEVELS, cells.mostly_delayed(), texts),
        notes=(
            "k/s thousand records/s; held: time that the source is held back;",
            "stalls: runs in which Gesscale adds nothing any more",
        ),
    )


def ends(outcomes: GeoOutcomes) -> Table:
    """Where the two auto-scalers come to."""
    rows = []
    for condition in [*cells.studied(), *cells.mostly_delayed()]:
        full, best = outcomes.full(condition), outcomes.best(condition)
        row = [published.JOBS[condition.job], condition.words]
        row.append(f"{full}" if full else f"none ({best})")
        for scaler in SCALERS:
            runs = outcomes.of(condition, scaler)
            row.append(_sizes([run.final for run in runs]))
            row.append(f"{mean([run.rate for run in runs]) / 1e3:.0f}")
            row.append(f"{mean([run.changes for run in runs]):.1f}")
        rows.append(tuple(row))
    return Table(
        title="Where the auto-scalers come to in 16 looks",
        header=("job", "delay", "enough", "G n", "k/s", "acts", "G+ n", "k/s", "acts"),
        rows=tuple(rows),
        notes=(
            "enough: instances that take in the load (none do: the best number);",
            "n: instances at the end, by run; acts: how often they changed;",
            "k/s: thousand records/s in the last five looks",
        ),
        words=2,
    )


def _sizes(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return str(low) if low == high else f"{low} to {high}"


PAPER = Paper(
    name="geo",
    title="Stream processing on nodes that are far apart: the study, reproduced",
    about=ABOUT,
    seeds=25,  # five times the study's runs
    first_seed=4000,  # none that anything was chosen on
    captions=CAPTIONS,
    pictures_of_all=True,
    amount=lambda asked: f"{len(cells.all_cells())} cells × {asked.seeds} seeds",
    measure=measure,
    findings=findings.judge,
    tables=tables,
    pictures=lambda found, asked, folder: figures.draw_all(found, folder),
    often=lambda asked: (
        f"{asked.seeds} runs of every cell, seeds {asked.numbers[0]} to {asked.numbers[-1]}."
    ),
    seeds_said=False,
)
