"""A file of recorded traffic → how many records came when, and what was understood of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from penstock.core.errors import InputError, unknown
from penstock.workloads.pattern import Floats
from penstock.workloads.rate_files import cells, series
from penstock.workloads.rate_files.columns import KINDS, Columns, columns_of
from penstock.workloads.rate_files.series import FILLS, Even, Oddities
from penstock.workloads.rate_files.text import Rows, read_rows

GROWING = 20  # rows of a count that never falls, before we doubt that it is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a file. Empty texts and 0 mean: find out.

    time_column, value_column: names in the header; several values by comma are summed
    kind: rate, count, counter, events or intervals
    step: seconds per row
    fill: what stands for rows that are missing: a straight ``line`` between their neighbours
        (the default), ``zero``, ``last``, or ``none``: an error
    start, end: the part that counts, as ISO 8601 or epoch seconds
    """

    time_column: str = ""
    value_column: str = ""
    kind: str = ""
    step: float = 0.0
    fill: str = ""
    start: str = ""
    end: str = ""

    def __post_init__(self) -> None:
        if self.fill and self.fill not in FILLS:
            raise unknown("fill of a trace", self.fill, FILLS)
        if self.kind and self.kind not in KINDS:
            raise unknown("kind of values", self.kind, KINDS)
        if not (math.isfinite(self.step) and self.step >= 0):
            raise InputError(f"trace: step = {self.step} must be a finite number of seconds ≥ 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What was made of a file.

    form, times, values: how it is written, in words
    rows: read from it
    begin, end: of what counts, in epoch seconds; ``None`` if it has no dates
    step: seconds of a cell
    mean, peak: records per second
    remarks: gaps, resets and whatever else a reader has to know
    """

    file: str
    form: str
    rows: int
    times: str
    values: str
    begin: float | None
    end: float | None
    step: float
    seconds: float
    mean: float
    peak: float
    remarks: tuple[str, ...] = ()

    def lines(self, scale: float = 1.0) -> tuple[str, ...]:
        """The same as sentences; ``scale`` by which the rates are multiplied."""
        span = _span(self.seconds)
        when = ""
        if self.begin is not None and self.end is not None:
            when = f", {_date(self.begin)} to {_date(self.end)} UTC"
        factor = "nothing is rescaled" if scale == 1.0 else f"scaled by {scale:g}"
        return (
            f"{self.file}: {self.rows:,} rows ({self.form}), {span}{when}",
            f"times: {self.times}; one value every {self.step:g} s",
            f"values: {self.values}; mean {_rate(scale * self.mean)}, peak "
            f"{_rate(scale * self.peak)}; {factor}",
            *self.remarks,
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RecordedRates:
    """Records per cell of ``step`` seconds, and what was understood of the file."""

    step: float
    counts: Floats
    understood: Understood = field(repr=False)


def read_rates(path: Path, how: Reading) -> RecordedRates:
    """Read a file; raises :class:`InputError` with line, value and way out where it cannot."""
    rows = read_rows(path)
    found = columns_of(
        rows,
        time_column=how.time_column,
        value_column=how.value_column,
        kind=how.kind,
        step=how.step,
    )
    if not rows.lines:
        raise InputError(f"{path}: has a header but no rows; nothing to replay")
    odd = Oddities()
    try:
        times, even = _even(rows, found, how, odd)
        even = _part(even, times, how)
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from None
    return RecordedRates(
        step=even.step,
        counts=even.counts,
        understood=_understood(rows, found, how, times, even, odd),
    )


def _even(rows: Rows, found: Columns, how: Reading, odd: Oddities) -> tuple[cells.Times, Even]:
    """The records over time; several series and several columns are summed."""
    if found.kind == "intervals":
        column = found.values[0]
        unit = cells.seconds_per(rows.header[column])
        gaps = cells.numbers_of(rows, column).values * unit
        if np.isnan(gaps).any():
            raise InputError(
                f"{rows.where(int(np.isnan(gaps).argmax()))}: an interval is missing; remove the "
                "row"
            )
        written = f"intervals of {cells.unit_of(rows.header[column])} from the beginning on"
        times = cells.Times(seconds=np.cumsum(gaps), written=written, epoch=False)
        return times, series.events(times.seconds, how.step)
    if found.time is None:
        step = how.step or 1.0
        times = cells.Times(
            seconds=step * np.arange(len(rows.lines), dtype=np.float64),
            written="none in the file",
            epoch=False,
        )
    else:
        times = cells.times_of(rows, found.time)
    if found.kind == "events":
        return times, series.events(times.seconds, how.step)
    values = _values(rows, found, odd)
    step = how.step or series.step_of(times.seconds)
    if not step:
        raise InputError("one row does not tell how long it lasts; give step=SECONDS")
    fill = how.fill or "line"
    parts = []
    for name, which in _series(rows, found, times.seconds):
        part_times, part_values = series.sorted_by_time(times.seconds[which], values[which], odd)
        _check_once(rows, found, part_times, name)
        if np.isnan(part_values).all():
            continue
        parts.append(
            series.even(part_times, part_values, found.kind, step=step, fill=fill, odd=odd)
        )
    if not parts:
        raise InputError("no row has a value; nothing to replay")
    odd.series = len(parts)
    odd.growing = (
        found.kind == "count"
        and len(parts) == 1
        and len(values) > GROWING
        and bool((np.diff(values) >= 0).all())
        and values[-1] > 2 * max(values[0], 1.0)
    )
    return times, parts[0] if len(parts) == 1 else series.summed(parts)


def _values(rows: Rows, found: Columns, odd: Oddities) -> Floats:
    total = np.zeros(len(rows.lines))
    for column in found.values:
        read = cells.numbers_of(rows, column)
        total = total + read.values
        if read.written and read.written not in odd.notes:
            odd.notes.append(read.written)
    return total


def _series(rows: Rows, found: Columns, times: Floats) -> Iterator[tuple[str, Any]]:
    """The rows of each series, where one moment has several."""
    if found.time is None or not found.labels or len(np.unique(times)) == len(times):
        yield "", slice(None)
        return
    names = list(zip(*(rows.columns[i] for i in found.labels), strict=True))
    different, which = np.unique(np.array(["\x1f".join(n) for n in names]), return_inverse=True)
    for number, name in enumerate(different.tolist()):
        yield name.replace("\x1f", ", "), np.flatnonzero(which == number)


def _check_once(rows: Rows, found: Columns, times: Floats, name: str) -> None:
    """Refuse two rows of one series for the same moment."""
    again = np.flatnonzero(np.diff(times) == 0)
    if not len(again) or found.time is None:
        return
    column = rows.columns[found.time]
    moment = float(times[again[0]])
    at = np.flatnonzero(cells.times_of(rows, found.time).seconds == moment)
    of = f" of {name}" if name else ""
    raise InputError(
        f"{rows.where(int(at[1]))}: {rows.header[found.time]} {column[at[1]].strip()!r}{of} is not "
        f"after {column[at[0]].strip()!r} in line {rows.lines[at[0]]}; keep one row per moment, or "
        "say that each row is a record (--as events, kind=events)"
    )


def _part(even: Even, times: cells.Times, how: Reading) -> Even:
    """What lies between start and end."""
    if not (how.start or how.end):
        return even
    first = cells.moment_of(how.start, option="start") if how.start else -math.inf
    last = cells.moment_of(how.end, option="end") if how.end else math.inf
    ends = even.begin + even.step * len(even.counts)
    if first >= last:
        raise InputError(f"start = {how.start!r} must be before end = {how.end!r}")
    low = max(0, math.ceil((first - even.begin) / even.step - 1e-9) if how.start else 0)
    high = len(even.counts)
    if how.end:
        high = min(high, math.floor((last - even.begin) / even.step + 1e-9))
    if low >= high:
        known = (
            f"{_date(even.begin)} to {_date(ends)} UTC"
            if times.epoch
            else f"{even.begin:g} to {ends:g} s"
        )
        raise InputError(
            f"nothing lies between start {how.start!r} and end {how.end!r}; the file has {known}"
        )
    return Even(begin=even.begin + low * even.step, step=even.step, counts=even.counts[low:high])


def _understood(
    rows: Rows, found: Columns, how: Reading, times: cells.Times, even: Even, odd: Oddities
) -> Understood:
    seconds = even.step * len(even.counts)
    names = ", ".join(rows.header[i] for i in found.values)
    values = f"{names}, " if names else ""
    values += f"{found.kind}: {KINDS[found.kind]} ({found.told_by})"
    return Understood(
        file=str(rows.path),
        form=rows.form,
        rows=len(rows.lines),
        times=times.written,
        values=values,
        begin=even.begin if times.epoch else None,
        end=even.begin + seconds if times.epoch else None,
        step=even.step,
        seconds=seconds,
        mean=float(even.counts.sum()) / seconds,
        peak=float(even.counts.max()) / even.step,
        remarks=tuple(_remarks(found, how, even, odd)),
    )


def _remarks(found: Columns, how: Reading, even: Even, odd: Oddities) -> Iterator[str]:
    if odd.series > 1:
        yield f"series: {odd.series}, summed"
    if odd.gaps:
        share = odd.missing / len(even.counts)
        filled = {"zero": "by 0", "last": "by the last value"}.get(how.fill, "by a straight line")
        if found.kind == "counter":
            filled = "evenly: the counter tells how much came in all"
        yield (
            f"gaps: {odd.gaps}, {odd.missing:,} rows ({share:.1%}), the longest "
            f"{_span(odd.longest_gap)}; filled {filled}"
        )
    if odd.resets:
        yield f"resets: the counter began anew {odd.resets} times"
    if odd.unsorted:
        yield f"order: {odd.unsorted:,} rows were earlier than the row before; sorted"
    if odd.jitter:
        yield "jitter: rows are not exactly evenly spaced; each was put into the nearest place"
    if odd.growing:
        yield "doubt: this count never falls; if it is a counter, say so (--as counter)"
    yield from odd.notes


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _rate(rate: float) -> str:
    return f"{rate:,.0f} records/s" if rate >= 100 else f"{rate:.3g} records/s"


def _span(seconds: float) -> str:
    for least, unit in ((2 * 86400.0, "days"), (2 * 3600.0, "hours"), (120.0, "minutes")):
        if seconds >= least:
            return f"{seconds / (least / 2 if unit != 'minutes' else 60.0):.3g} {unit}"
    return f"{seconds:.3g} s"
