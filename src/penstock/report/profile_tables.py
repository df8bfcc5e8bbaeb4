"""A profile that was measured or learnt as tables, for a terminal of 80 columns."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.table import Table

from penstock.history.learning.learn import Learned
from penstock.history.profiling.fit import Fit
from penstock.history.recording import RecordedApplication
from penstock.report.table import plain_table
from penstock.simulator.microbatch.profile import ExecutorProfile

MOST_NAME = 40  # characters of a name in a table


def stages_table(fit: Fit) -> Table:
    """What each stage costs; ± one standard error."""
    table = plain_table(f"{fit.query.name}: what each stage costs")
    table.add_column("stage", overflow="fold")
    for name in ("tasks", "ms per task", "µs per record", "written", "skew"):
        table.add_column(name, justify="right", no_wrap=True)
    for stage in fit.query.stages:
        skew = max(stage.shares) * stage.tasks if stage.shares else 1.0
        table.add_row(
            stage.name,
            str(stage.tasks),
            f"{stage.fixed * 1e3:,.1f} ±{_error(fit, stage.name + '.fixed', 1e3)}",
            f"{stage.per_record * 1e6:,.1f} ±{_error(fit, stage.name + '.per_record', 1e6)}",
            f"{stage.selectivity:.3g}",
            f"{skew:.2f}",
        )
    return table


def numbers_table(fit: Fit, executor: ExecutorProfile | None = None) -> Table:
    """The other numbers: of the driver, the noise, the state and the executor.

    executor: as the profile has it, where that is not the fit's own
    """
    table = plain_table("its other numbers")
    table.add_column("number")
    table.add_column("value", justify="right")
    table.add_column("±", justify="right")
    query, executor = fit.query, executor or fit.executor
    rows = {
        "planning": f"{query.planning:.2f} s",
        "commit": f"{query.commit:.2f} s",
        "batch_noise": f"{query.batch_noise:.0%}",
        "task_noise": f"{query.task_noise:.0%}",
        "start": f"{executor.start:.2f} s",
        "start_each": f"{executor.start_each:.2f} s",
        "first_task": f"{executor.first_task:.2f} s",
        "slowdown": f"{executor.slowdown:.2f}",
        "warm_up": f"{executor.warm_up:.2f} s",
        "leave": f"{executor.leave:.2f} s",
        "cpu_idle": f"{executor.cpu_idle:.0%}",
        "cpu_busy": f"{executor.cpu_busy:.0%}",
    }
    for name, value in rows.items():
        table.add_row(name, value, _error(fit, name, 1.0))
    for stage in query.stages:
        if stage.state is not None and stage.state.rows_per_record:
            most = stage.state.most_rows
            table.add_row(
                f"{stage.name}: rows per record", f"{stage.state.rows_per_record:.3g}", ""
            )
            table.add_row(f"{stage.name}: most rows", "–" if most is None else f"{most:,.0f}", "")
            seconds = stage.state.seconds
            kept = "for ever" if seconds is None else f"{seconds:.1f} s"
            table.add_row(f"{stage.name}: a row is kept", kept, "")
    return table


def explained_table(fit: Fit) -> Table:
    """Batch durations, measured and as the profile has them."""
    table = plain_table("batches that it was made of, seconds")
    for name in ("executors", "batches", "measured", "profile", "mean error"):
        table.add_column(name, justify="right")
    for e in fit.explained:
        table.add_row(
            str(e.executors),
            str(e.batches),
            f"{e.measured:.2f}",
            f"{e.profile:.2f}",
            f"{e.error:.0%}",
        )
    return table


def _error(fit: Fit, name: str, times: float) -> str:
    if name not in fit.errors:
        return "–"
    error = fit.errors[name] * times
    return f"{error:.2f}" if times == 1.0 else f"{error:,.1f}"


def recording_table(application: RecordedApplication, learned: Learned) -> Table:
    """What was understood of a recording."""
    table = plain_table("what was understood")
    table.add_column("of", no_wrap=True)
    table.add_column("found", overflow="fold")
    begin = datetime.fromtimestamp(learned.start, UTC) if learned.start > 1e8 else None
    counts = learned.executors.counts
    name = " ".join(filter(None, (application.name, application.id)))
    rows = {
        "source": f"{application.kind or 'recording'} {application.source}",
        "application": name,
        "span": span(learned.seconds) + (f" from {begin:%Y-%m-%d %H:%M:%S} UTC" if begin else ""),
        "queries": ", ".join(learned.fits),
        "batches": f"{learned.batches:,}, of which {fitted(learned):,} are settled and were fitted",
        "executors": f"{min(counts)} to {max(counts)}" if len(set(counts)) > 1 else f"{counts[0]}",
        "sizes": ", ".join(map(str, learned.sizes)) + (" (one only)" if learned.linear else ""),
    }
    for what, found in rows.items():
        table.add_row(what, found)
    return table


def demand_table(learned: Learned) -> Table:
    """What came to each source."""
    table = plain_table("demand, records/s")
    table.add_column("source", overflow="fold", max_width=MOST_NAME)
    for name in ("mean", "peak", "records", "idle"):
        table.add_column(name, justify="right", no_wrap=True)
    for source, demand in learned.demand.items():
        lengths = demand.edges[1:] - demand.edges[:-1]
        idle = float(lengths[demand.rates == 0].sum()) / demand.seconds if demand.seconds else 0.0
        more = "≥ " if demand.lower_bound else ""
        table.add_row(
            source,
            f"{more}{demand.mean:,.1f}",
            f"{more}{demand.peak:,.1f}",
            f"{more}{demand.records:,.0f}",
            f"{idle:.0%}",
        )
    return table


def fitted(learned: Learned) -> int:
    """Batches that the profile was made of."""
    return sum(e.batches for some in learned.explained.values() for e in some)


def span(seconds: float) -> str:
    """A length of time in the largest unit that it fills.

    >>> span(42.0), span(5400.0), span(200000.0)
    ('42 s', '1.5 h', '2.31 days')
    """
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length * (1.5 if unit == "days" else 1.0):
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.0f} s"
