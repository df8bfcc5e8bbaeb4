"""Tables I to III of the paper beside ours, and what goes beyond them, as grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.papers.mead import cells, models, published
from penstock.papers.mead.cells import MEAD, MeadCell
from penstock.papers.mead.experiment import MeadOutcomes
from penstock.papers.mead.models import Comparison
from penstock.report.statistics import estimate
from penstock.report.table import Table, interval, number, percent, printed

MISSED = "!"  # beside a response time above its target


def all_tables(
    outcomes: MeadOutcomes, comparisons: Sequence[Comparison], *, extended: bool = False
) -> list[Table]:
    """All tables in the order of the paper, then what it does not have."""
    return [
        predictions(comparisons),
        table_1(outcomes),
        table_2(outcomes),
        table_3(outcomes),
        others(outcomes),
        *([beyond(outcomes)] if extended else []),
        worst(outcomes),
        costs(outcomes),
    ]


def predictions(comparisons: Sequence[Comparison]) -> Table:
    """Figure 3 in figures."""
    rows = []
    for trace in models.TRACES:
        runs = [c for c in comparisons if c.trace == trace]
        for place, load in enumerate(models.LOADS):
            measured = estimate([c.measured[place] for c in runs])
            ratios = [
                interval(estimate([c.ratios(model)[place] for c in runs])) for model in models.NAMES
            ]
            rows.append((trace.upper(), f"{load:g}", interval(measured), *ratios))
    return Table(
        title="Figure 3: predictions of the matcher alone",
        header=("trace", "utilisation", "measured s", *models.NAMES.values()),
        rows=tuple(rows),
        notes=("models: predicted mean response time / measured",),
    )


def table_1(outcomes: MeadOutcomes) -> Table:
    """Table I, targets of the mean: ours beside the paper's."""
    rows = [
        _row(outcomes, cell, published.TABLE_1[cell.trace, float(cell.target or 0)][cell.policy])
        for cell in cells.table_1()
    ]
    return _grid("Table I: targets of the mean response time", rows)


def table_2(outcomes: MeadOutcomes) -> Table:
    """Table II, targets of the 95th percentile: ours beside the paper's."""
    rows = [
        _row(outcomes, cell, published.TABLE_2[cell.trace, float(cell.target or 0)][cell.policy])
        for cell in cells.table_2()
    ]
    return _grid("Table II: targets of the 95th percentile", rows)


def table_3(outcomes: MeadOutcomes) -> Table:
    """Table III, single windows: ours beside the paper's."""
    rows = []
    for cell in cells.table_3():
        theirs = published.TABLE_3[cell.trace, float(cell.target or 0)][cell.window or 0]
        row = _row(outcomes, cell, theirs)
        rows.append((row[0], f"{cell.window:,}", *row[2:]))
    return _grid("Table III: a single window of so many arrivals", rows, second="window")


def others(outcomes: MeadOutcomes) -> Table:
    """The threshold policy, and full CPU."""
    rows = []
    for cell in cells.others():
        theirs = published.THRESHOLD.get(cell.trace) if cell.policy == "cpu-threshold" else None
        row = _row(outcomes, cell, theirs)
        rows.append((*row[:2], "", *row[3:]))
    return replace(_grid("Without a target", rows), notes=())


def beyond(outcomes: MeadOutcomes) -> Table:
    """``mead+`` beside ``mead``."""
    rows, kept = [], [0, 0]
    for plus in cells.beyond():
        both = (replace(plus, policy=MEAD), plus)
        row = [plus.trace.upper(), plus.wanted]
        for place, cell in enumerate(both):
            row += [_response(outcomes, cell), interval(outcomes.estimate(cell.key, "cpu"))]
            kept[place] += bool(met(outcomes, cell))
        rows.append(tuple(row))
    return Table(
        title="Beyond the paper: mead+ every 10 s with the same targets",
        header=("trace", "target s", "mead s", "mead CPU %", "mead+ s", "mead+ CPU %"),
        rows=tuple(rows),
        notes=(f"{MISSED} above the target; met: mead {kept[0]}, mead+ {kept[1]} of {len(rows)}",),
        words=2,
    )


def worst(outcomes: MeadOutcomes) -> Table:
    """How much of the delay comes at once."""
    rows = []
    for cell in [*cells.table_1(), *cells.table_2()]:
        if cell.policy == MEAD:
            found = outcomes.estimate(cell.key, "worst")
            share = percent(found.mean) if found is not None else "–"
            rows.append((cell.trace.upper(), cell.wanted, share))
    return Table(
        title="Delay under MAP/G/1 in the worst twentieth of the minutes",
        header=("trace", "target s", "of all delay"),
        rows=tuple(rows),
        words=2,
    )


def met(outcomes: MeadOutcomes, cell: MeadCell) -> bool | None:
    """Whether the mean over the seeds keeps the target; ``None`` where nothing was run."""
    found = outcomes.estimate(cell.key, cell.figure)
    return None if found is None or cell.target is None else found.mean <= cell.target


def _row(
    outcomes: MeadOutcomes, cell: MeadCell, theirs: published.Figures | None
) -> tuple[str, ...]:
    return (
        cell.trace.upper(),
        published.NAMES.get(cell.policy, "full CPU"),
        number(cell.target),
        printed(theirs[0]) if theirs else "–",
        _response(outcomes, cell),
        printed(theirs[1]) if theirs else "–",
        interval(outcomes.estimate(cell.key, "cpu")),
    )


def _response(outcomes: MeadOutcomes, cell: MeadCell) -> str:
    mark = f" {MISSED}" if met(outcomes, cell) is False else ""
    return interval(outcomes.estimate(cell.key, cell.figure)) + mark


def _grid(title: str, rows: list[tuple[str, ...]], second: str = "model") -> Table:
    return Table(
        title=title,
        header=("trace", second, "target s", "paper s", "ours s", "paper CPU %", "ours CPU %"),
        rows=tuple(rows),
        notes=(f"{MISSED} above the target",),
        words=2,
    )


def costs(outcomes: MeadOutcomes) -> Table:
    """CPU time of a decision, by policy, over all its runs."""
    by_policy: dict[str, list[tuple[float, int]]] = {}
    keys = {cell.key: cell.policy for cell in cells.all_cells(extended=True)}
    for run in outcomes.runs:
        if run.decisions and run.key in keys:
            by_policy.setdefault(keys[run.key], []).append((run.decision_seconds, run.decisions))
    rows = []
    for policy, found in by_policy.items():
        count = sum(n for _, n in found)
        mean = sum(seconds * n for seconds, n in found) / count
        rows.append((published.NAMES[policy], f"{count:,}", f"{1e3 * mean:.1f}"))
    return Table(
        title="Cost of a decision",
        header=("model", "decisions", "ms of CPU"),
        rows=tuple(rows),
        notes=(
            "the paper: "
            + "; ".join(f"{what} {seconds}" for what, seconds in published.COSTS.items())
            + "; fits of a window are made once here, whatever the target",
        ),
    )
