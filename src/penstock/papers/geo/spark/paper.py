"""The geo study as a paper to reproduce on real Spark, at emulated sites."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from penstock.lab.sites import requirements
from penstock.papers.geo.simulated import published
from penstock.papers.geo.simulated.figures import MEASURED, PLUS, SIMPLE
from penstock.papers.geo.simulated.paper import by_level
from penstock.papers.geo.spark.conditions import (
    CONDITIONS,
    CPU,
    DELAY,
    MOST,
    SCALE,
    SparkCondition,
)
from penstock.papers.geo.spark.findings import judge
from penstock.papers.geo.spark.levels import (
    SCALERS,
    SECONDS,
    WINDOWS,
    ClimbOutcome,
    ClimbOutcomes,
    climb,
)
from penstock.papers.harness import Asked, Paper
from penstock.papers.pictures import canvas, words
from penstock.papers.running import CellRun, RunFolder
from penstock.report.table import NONE, Table, percent

ABOUT = (
    f"Real executors of {CPU:g} of a core at {MOST} emulated sites on one machine (real TCP over "
    f"delayed links, docs/sites.md). The first three sites are near, the first is home to the "
    f"driver; packets to the other three come {1e3 * DELAY:.0f} ms late, so that a round trip "
    f"between two of them takes {2e3 * DELAY:.0f} ms. Executors are added one by one on the "
    "nearest free site. At every level the job begins anew with hours of records waiting; "
    f"throughput is that of at least {WINDOWS * SECONDS:.0f} s of whole batches, after all "
    "executors have warmed up. Gesscale and gesscale+ look on: what each says of the next level, "
    "before it is reached, is held against what is measured there. The jobs are those of "
    f"docs/geo-pipelines.md at 1/{SCALE:.0f} of the study's sensors, 12 partitions; nothing was "
    "fitted to these runs."
)
PICTURE = "levels.png"
LEVELS = np.arange(1, MOST + 1)
MARKS = {"gesscale": (SIMPLE, "x"), "gesscale+": (PLUS, "+")}


def measure(asked: Asked, folder: RunFolder) -> ClimbOutcomes:
    """Measure what the folder does not hold yet, seed by seed."""
    runs = [CellRun(key=c.key, cell=c, seed=seed) for seed in asked.numbers for c in CONDITIONS]

    def work(run: CellRun[SparkCondition]) -> ClimbOutcome:
        condition, seed = run.cell, run.seed
        folder.say(f"{condition.job}, {condition.words}, seed {seed}")
        job = condition.pipeline(seed)
        sites = condition.sites()
        found = climb(sites, job, condition.rows, most=MOST, seed=seed, say=folder.say)
        return ClimbOutcome(key=run.key, seed=seed, climb=found)

    return ClimbOutcomes(runs=folder.one_by_one(runs, work, ClimbOutcome))


def tables(outcomes: ClimbOutcomes, asked: Asked) -> list[Table]:
    """All tables, of the conditions that were measured."""
    measured = [c for c in CONDITIONS if outcomes.of(c)]
    jobs = {job: [c for c in measured if c.job == job] for job in published.JOBS}
    found = [throughput(outcomes, job, chosen) for job, chosen in jobs.items() if chosen]
    found += [predictions(outcomes, job, chosen) for job, chosen in jobs.items() if chosen]
    return [*found, errors(outcomes, measured), details(outcomes, measured)]


def throughput(outcomes: ClimbOutcomes, job: str, conditions: list[SparkCondition]) -> Table:
    """Records/s of one job: mean, slowest and fastest batch."""

    def texts(condition: SparkCondition, slots: int) -> tuple[str]:
        levels = outcomes.level(condition, slots)
        least, most = min(x.least for x in levels), max(x.most for x in levels)
        return (f"{outcomes.rate(condition, slots):,.0f} ({least:,.0f} to {most:,.0f})",)

    return Table(
        title=f"{published.JOBS[job]}: records/s by executors",
        header=("n", *(condition.words for condition in conditions)),
        rows=by_level(range(1, MOST + 1), conditions, texts),
        notes=("mean (slowest to fastest batch); executors 4 to 6 are at the far sites",),
    )


def predictions(outcomes: ClimbOutcomes, job: str, conditions: list[SparkCondition]) -> Table:
    """What was foretold of a level before it was reached, against what was measured there."""

    def texts(condition: SparkCondition, slots: int) -> list[str]:
        found = [outcomes.errors(condition, scaler, slots) for scaler in SCALERS]
        return [percent(statistics.fmean(some), sign=True) if some else NONE for some in found]

    return Table(
        title=f"{published.JOBS[job]}: prediction against measurement",
        header=("n", *(text for c in conditions for text in (f"{c.words}: G", "G+"))),
        rows=by_level(range(2, MOST + 1), conditions, texts),
        notes=("mean error; G gesscale, G+ gesscale+",),
    )


def errors(outcomes: ClimbOutcomes, conditions: list[SparkCondition]) -> Table:
    """Mean and greatest errors of predictions."""
    rows = []
    for condition in conditions:
        row = [published.JOBS[condition.job], condition.words]
        for scaler in SCALERS:
            sizes = [abs(error) for error in outcomes.errors(condition, scaler)]
            row += [percent(statistics.fmean(sizes)), percent(max(sizes))] if sizes else [NONE] * 2
        row += [
            f"≤ {percent(published.TARGETS[condition.job])}",
            percent(outcomes.inside(condition)),
        ]
        rows.append(tuple(row))
    return Table(
        title="Errors of predictions of levels that had not been seen",
        header=("job", "delay", "G mean", "G most", "G+ mean", "G+ most", "aim", "inside"),
        rows=tuple(rows),
        notes=(
            "aim: of gesscale+ in the simulator, which it was made on",
            "inside: levels within the 95 % interval of gesscale+",
        ),
        words=2,
    )


def details(outcomes: ClimbOutcomes, conditions: list[SparkCondition]) -> Table:
    """Where the time went with most executors."""
    rows = []
    for condition in conditions:
        levels = outcomes.level(condition, MOST)
        cpus = [x.cpu for x in levels if x.cpu is not None]
        skews = [x.skew for x in levels if x.skew is not None]
        rows.append(
            (
                published.JOBS[condition.job],
                condition.words,
                f"{1e3 * max(x.delay for x in levels):.1f}",
                percent(outcomes.gain(condition)),
                f"{percent(min(x.busy[0] for x in levels))} to "
                f"{percent(max(x.busy[1] for x in levels))}",
                percent(statistics.fmean(cpus)) if cpus else NONE,
                percent(statistics.fmean(x.waits for x in levels)),
                f"{statistics.fmean(skews):.1f}" if skews else NONE,
            )
        )
    return Table(
        title=f"With {MOST} executors",
        header=("job", "delay", "RTT ms", "gain", "busy", "CPU", "waits", "skew"),
        rows=tuple(rows),
        notes=(
            "RTT: greatest between two sites, measured; gain: of an executor, of the first one's",
            "CPU: share of their quota; waits: of the tasks' time, for others' data",
            "skew: the busiest partition over the mean",
        ),
        words=2,
    )


def pictures(outcomes: ClimbOutcomes, asked: Asked, folder: Path) -> list[Path]:
    """Draw throughput by executors, measured and foretold, a panel for each condition."""
    path = folder / PICTURE
    with canvas(path, 2, 3, height=260) as places:
        for axes, condition in zip(places, CONDITIONS, strict=True):
            if outcomes.of(condition):
                _panel(axes, outcomes, condition)
            words(
                axes,
                f"{published.JOBS[condition.job]}, {condition.words}",
                "executors",
                "records/s",
            )
    return [path]


def _panel(axes: Axes, outcomes: ClimbOutcomes, condition: SparkCondition) -> None:
    levels = [outcomes.level(condition, n) for n in LEVELS.tolist()]
    rates = np.array([statistics.fmean(x.rate for x in some) for some in levels])
    low = rates - [min(x.least for x in some) for some in levels]
    high = np.array([max(x.most for x in some) for some in levels]) - rates
    spread = np.maximum(0.0, np.stack([low, high]))
    axes.errorbar(
        LEVELS, rates, yerr=spread, color=MEASURED, lw=1.2, capsize=2, marker=".", label="measured"
    )
    for scaler in SCALERS:
        colour, mark = MARKS[scaler]
        found = [
            (n, rates[n - 1] * (1.0 + statistics.fmean(errors)))
            for n in LEVELS.tolist()
            if (errors := outcomes.errors(condition, scaler, n))
        ]
        if found:
            x, y = zip(*found, strict=True)
            axes.plot(x, y, color=colour, marker=mark, ms=6, lw=0.8, ls=":", label=scaler)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=8, loc="upper left")


def sites_can_be_made() -> None:
    """Raise if sites cannot be emulated on this machine."""
    requirements.choose("auto", jitter=False)


def times(asked: Asked) -> str:
    """How often everything was measured, in a sentence."""
    return f"All of it {'once' if asked.seeds == 1 else f'{asked.seeds} times'}."


PAPER = Paper(
    name="geo",
    on_spark=True,
    title="The geo study on real Spark",
    about=ABOUT,
    seeds=3,
    captions={PICTURE: "Throughput by executors, measured and foretold"},
    pictures_of_all=True,
    amount=lambda asked: f"{asked.seeds * len(CONDITIONS)} runs",
    measure=measure,
    findings=judge,
    tables=tables,
    pictures=pictures,
    require=sites_can_be_made,
    often=times,
    seeds_said=False,
)
