"""A measured profile as tables, for a terminal of 80 columns."""

from __future__ import annotations

from rich.table import Table

from penstock.history.profiling.fit import Fit
from penstock.report.table import plain_table


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


def numbers_table(fit: Fit) -> Table:
    """The other numbers: of the driver, the noise, the state and the executor."""
    table = plain_table("its other numbers")
    table.add_column("number")
    table.add_column("value", justify="right")
    table.add_column("±", justify="right")
    query, executor = fit.query, fit.executor
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
