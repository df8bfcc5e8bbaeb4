"""What each stage costs, how its work lies on its partitions, and what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.batches.batch_cost import LEAST_SPREAD
from penstock.history.profiling import lines
from penstock.history.profiling.lines import Floats
from penstock.history.profiling.lineup import LinedUpBatch, Lineup

SEEN = 2.0  # standard errors above 0 that a cost per record must be
CLEAR = 3.0  # standard errors above 0 that a cost per row of state must be
SKEWED = 3.0  # times the deviation that chance explains
LEAST_SKEW = 0.03  # of the mean share; less is even
LEAST_LISTS = 4  # batches whose tasks must be known


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """A stage: seconds of each task, per record and per row of state, with standard errors.

    ``shares`` empty if even · ``told`` whether fixed and per_record could be told apart ·
    ``flat`` no cost per record was seen.
    """

    tasks: int
    fixed: float
    per_record: float
    per_row: float = 0.0
    fixed_error: float = 0.0
    per_record_error: float = 0.0
    shares: tuple[float, ...] = ()
    told: bool = True
    flat: bool = False

    def tasks_of(self, records: float, state: float) -> Floats:
        """Seconds of each task of a batch."""
        shares = np.array(self.shares) if self.shares else np.full(self.tasks, 1.0 / self.tasks)
        return self.fixed + (self.per_record * records + self.per_row * state) * shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Records written per record read, and the most that all tasks together write."""

    selectivity: float
    most: float | None = None
    error: float = 0.0


def costs_of(lineup: Lineup, role: int) -> Costs:
    """What the stages of the settled batches cost.

    Busy seconds of a stage = p·c₀ + c₁·n + c₂·S, the last only where it is clear.
    """
    rows = lineup.settled
    tasks = np.array([float(r.stages[role].tasks) for r in rows])
    records = np.array([r.records[role] for r in rows])
    busy = np.array([r.stages[role].busy for r in rows])
    count, shares = lineup.tasks(role), shares_of(rows, role, lineup.tasks(role))
    if records.std() <= LEAST_SPREAD * records.mean():
        # Behind a partial aggregation batches of any size may be alike: then nothing depends on it.
        sizes = np.array([float(r.batch.rows) for r in rows])
        alike = not records.any() or sizes.std() > LEAST_SPREAD * sizes.mean()
        line = lines.fit([tasks if alike else records], busy)
        value, error = line.values[0], line.errors[0]
        if alike:
            return Costs(tasks=count, fixed=value, per_record=0.0, fixed_error=error, flat=True)
        return Costs(
            tasks=count,
            fixed=0.0,
            per_record=value,
            per_record_error=error,
            shares=shares,
            told=False,
        )
    line = lines.fit([tasks, records], busy)
    if not line.clear(1, SEEN):
        line = lines.fit([tasks], busy)
        return Costs(
            tasks=count,
            fixed=line.values[0],
            per_record=0.0,
            fixed_error=line.errors[0],
            shares=shares,
            flat=True,
        )
    per_row = 0.0
    if (state := np.array([r.state[role] for r in rows])).any():
        wider = lines.fit([tasks, records, state], busy)
        if wider.clear(2, CLEAR) and lines.clearly(wider.left, line.left, len(rows)):
            line, per_row = wider, wider.values[2]
    return Costs(
        tasks=count,
        fixed=line.values[0],
        per_record=line.values[1],
        per_row=per_row,
        fixed_error=line.errors[0],
        per_record_error=line.errors[1],
        shares=shares,
    )


def shares_of(rows: Sequence[LinedUpBatch], role: int, tasks: int) -> tuple[float, ...]:
    """The share of the records in each partition; empty where they lie evenly, but for chance.

    The mean shares of the partitions must vary more than those of single batches explain.
    """
    found = [s for r in rows if (s := _shares(r, role, tasks)) is not None]
    if len(found) < LEAST_LISTS or tasks < 2:
        return ()
    each = np.array(found)
    mean = each.mean(axis=0)
    by_chance = float(np.sqrt((each.var(axis=0, ddof=1) / len(each)).mean()))
    spread = float(mean.std(ddof=1))
    if spread <= SKEWED * by_chance or spread * tasks <= LEAST_SKEW:
        return ()
    return tuple(float(s) for s in mean / mean.sum())


def _shares(row: LinedUpBatch, role: int, tasks: int) -> Floats | None:
    """The shares in one batch; ``None`` unless the records of every task are known."""
    records = np.zeros(tasks)
    known = row.tasks[role]
    if len(known) != tasks or row.stages[role].tasks != tasks:
        return None
    for task in known:
        if not 0 <= task.partition < tasks:
            return None
        records[task.partition] += task.records
    total = float(records.sum())
    return records / total if total > 0 else None


def output_of(lineup: Lineup, role: int) -> Output | None:
    """What a stage writes for the next, or the last one to the sink; ``None`` if not told.

    w = min(σ·n, M): every number of smallest batches is tried as those below the limit.
    """
    last = role == len(lineup.names) - 1
    told = [
        (r.records[role], r.batch.written if last else r.stages[role].write_records)
        for r in lineup.rows
        if r.records[role] > 0
    ]
    points = sorted((n, float(w)) for n, w in told if w is not None)
    if not points:
        return None
    read = np.array([n for n, _ in points])
    written = np.array([w for _, w in points])
    plain = _linear(read, written)
    if last or not written.any():
        return plain
    limited = [_limited(read, written, below) for below in range(2, len(points) - 1)]
    best = min(limited, key=lambda o: _left(o, read, written), default=plain)
    better, worse = (_left(output, read, written) for output in (best, plain))
    return best if lines.clearly(better, worse, len(points)) else plain


def _limited(read: Floats, written: Floats, below: int) -> Output:
    """If the first batches, in the order of what they read, are those below the limit."""
    low = _linear(read[:below], written[:below])
    return replace(low, most=float(np.median(written[below:])))


def _linear(read: Floats, written: Floats) -> Output:
    ratio = float(written.sum() / read.sum())
    error = lines.deviation(written / read) / len(read) ** 0.5
    return Output(selectivity=ratio, error=error)


def _left(output: Output, read: Floats, written: Floats) -> float:
    """Squares of the relative deviations."""
    said = output.selectivity * read
    if output.most is not None:
        said = np.minimum(said, output.most)
    return float(np.sum(((written - said) / np.maximum(said, 1.0)) ** 2))
