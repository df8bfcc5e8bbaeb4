"""Throughput and predictions by executors, as grids."""

from __future__ import annotations

import statistics

from penstock.papers.geo.simulated import published
from penstock.papers.geo.spark.conditions import CONDITIONS, MOST, SparkCondition
from penstock.papers.geo.spark.levels import SCALERS, ClimbOutcomes
from penstock.report.table import NONE, Table, percent


def all_tables(outcomes: ClimbOutcomes) -> list[Table]:
    """All tables, of the conditions that were measured."""
    measured = [c for c in CONDITIONS if outcomes.of(c)]
    jobs = {job: [c for c in measured if c.job == job] for job in published.JOBS}
    found = [throughput(outcomes, job, chosen) for job, chosen in jobs.items() if chosen]
    found += [predictions(outcomes, job, chosen) for job, chosen in jobs.items() if chosen]
    return [*found, errors(outcomes, measured), details(outcomes, measured)]


def throughput(outcomes: ClimbOutcomes, job: str, conditions: list[SparkCondition]) -> Table:
    """Records/s of one job: mean, slowest and fastest batch."""
    rows = []
    for slots in range(1, MOST + 1):
        row = [str(slots)]
        for condition in conditions:
            levels = outcomes.level(condition, slots)
            mean = statistics.fmean(level.rate for level in levels)
            least, most = min(x.least for x in levels), max(x.most for x in levels)
            row.append(f"{mean:,.0f} ({least:,.0f} to {most:,.0f})")
        rows.append(tuple(row))
    return Table(
        title=f"{published.JOBS[job]}: records/s by executors",
        header=("n", *(condition.words for condition in conditions)),
        rows=tuple(rows),
        notes=("mean (slowest to fastest batch); executors 4 to 6 are at the far sites",),
    )


def predictions(outcomes: ClimbOutcomes, job: str, conditions: list[SparkCondition]) -> Table:
    """What was foretold of a level before it was reached, against what was measured there."""
    rows = []
    for slots in range(2, MOST + 1):
        row = [str(slots)]
        for condition in conditions:
            for scaler in SCALERS:
                found = outcomes.errors(condition, scaler, slots)
                row.append(percent(statistics.fmean(found), sign=True) if found else NONE)
        rows.append(tuple(row))
    header = ["n"]
    for condition in conditions:
        header += [f"{condition.words}: G", "G+"]
    return Table(
        title=f"{published.JOBS[job]}: prediction against measurement",
        header=tuple(header),
        rows=tuple(rows),
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
