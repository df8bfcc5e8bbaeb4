"""Moments and values → records in cells of even length, with what was missing, late or odd."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from penstock.core.errors import InputError
from penstock.workloads.pattern import Floats
from penstock.workloads.rate_files.columns import Kind

FILLS = ("line", "zero", "last", "none")
MOST_CELLS = 50_000_000
NICE = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0,
        21600.0, 86400.0)  # fmt: skip
JITTER = 0.25  # of a step: how far a row may stand from where it belongs
SLACK = 1e-6
EVENT_STEPS = ((7 * 86400.0, 1.0), (math.inf, 60.0))  # by the span of all events


@dataclass(slots=True)
class Oddities:
    """What was not as it should be, and what was done about it."""

    unsorted: int = 0
    missing: int = 0
    gaps: int = 0
    longest_gap: float = 0.0
    resets: int = 0
    jitter: bool = False
    series: int = 1
    growing: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Even:
    """Records in cells of ``step`` seconds from ``begin`` on."""

    begin: float
    step: float
    counts: Floats


def sorted_by_time(times: Floats, values: Floats, odd: Oddities) -> tuple[Floats, Floats]:
    """Rows in the order of their times."""
    late = int(np.count_nonzero(np.diff(times) < 0))
    odd.unsorted += late
    if not late:
        return times, values
    order = np.argsort(times, kind="stable")
    return times[order], values[order]


def step_of(times: Floats) -> float:
    """The usual distance of two rows: the most frequent one, or a round number near the median."""
    apart = np.sort(np.diff(np.unique(times)))
    if not len(apart):
        return 0.0
    median = float(apart[(len(apart) - 1) // 2])  # the lower one: gaps only make it longer
    equal = np.abs(apart - median) <= SLACK * median + 1e-6
    if np.count_nonzero(equal) * 2 >= len(apart):
        return _tidy(median)
    near = min(NICE, key=lambda nice: abs(nice - median))
    return near if abs(near - median) <= 0.1 * near else _tidy(median)


def _tidy(seconds: float) -> float:
    """Without the dust of binary fractions."""
    near = round(seconds, 6 if seconds < 1 else 3)
    return near if near and abs(near - seconds) < 1e-5 * seconds else seconds


def events(times: Floats, step: float) -> Even:
    """How many records there are in each cell."""
    span = float(times.max() - times.min())
    step = step or next(step for longest, step in EVENT_STEPS if span <= longest)
    begin = math.floor(float(times.min()) / step) * step
    cells = int((float(times.max()) - begin) // step) + 1
    _check_cells(cells, step)
    counts = np.bincount(((times - begin) // step).astype(np.int64), minlength=cells)
    return Even(begin=begin, step=step, counts=counts.astype(np.float64))


def even(
    times: Floats, values: Floats, kind: Kind, *, step: float, fill: str, odd: Oddities
) -> Even:
    """One series in cells of even length; what is missing is filled as told, and counted."""
    if kind == "counter":
        return _grown(times, values, step=step, odd=odd)
    begin = float(times[0])
    places = (times - begin) / step
    cells = round(float(places[-1])) + 1
    _check_cells(cells, step)
    whole = np.rint(places)
    off = np.abs(places - whole)
    apart = step_of(times) or step
    uneven = np.count_nonzero(off > JITTER) * 100 > len(times)
    if uneven or abs(apart - step) > JITTER * step:
        return _resampled(times, values, kind, step=step, apart=apart, odd=odd)
    odd.jitter = odd.jitter or bool((off > SLACK).any())
    at = whole.astype(np.int64)
    known = ~np.isnan(values)
    sums = np.bincount(at[known], weights=values[known], minlength=cells)
    rows = np.bincount(at[known], minlength=cells)
    per_cell = np.divide(sums, rows, out=np.full(cells, np.nan), where=rows > 0)
    if kind == "count":
        per_cell = np.where(rows > 0, sums, np.nan)
    counts = per_cell * (step if kind == "rate" else 1.0)
    return Even(begin=begin, step=step, counts=_filled(counts, begin, step, fill, odd))


def _filled(counts: Floats, begin: float, step: float, fill: str, odd: Oddities) -> Floats:
    """What stands for cells of which nothing is known."""
    missing = np.isnan(counts)
    number = int(np.count_nonzero(missing))
    if not number:
        return counts
    edges = np.diff(np.concatenate(([0], missing.astype(np.int8), [0])))
    first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    odd.missing += number
    odd.gaps += len(first)
    odd.longest_gap = max(odd.longest_gap, float((last - first).max()) * step)
    if fill == "none":
        raise InputError(
            f"{number} rows are missing, the first of them {first[0] * step:g} s after the "
            "beginning; add them, or give fill=line, fill=zero or fill=last"
        )
    if number * 2 > len(counts):
        raise InputError(
            f"{number} of {len(counts)} rows (one every {step:g} s) are missing; give the true "
            "spacing as step=SECONDS, or a part of the file (start=, end=)"
        )
    places = np.arange(len(counts))
    if fill == "zero":
        return np.where(missing, 0.0, counts)
    if fill == "last":
        before = np.maximum.accumulate(np.where(missing, -1, places))
        return np.where(before >= 0, counts[np.maximum(before, 0)], 0.0)
    return np.interp(places, places[~missing], counts[~missing])


def _grown(times: Floats, values: Floats, *, step: float, odd: Oddities) -> Even:
    """A counter's growth: what came in a gap is known in all, and spread evenly over it.

    Where it falls it has begun anew, from 0.
    """
    known = ~np.isnan(values)
    times, values = times[known], values[known]
    if len(times) < 2:
        raise InputError("a counter needs at least two readings to tell how much came")
    apart = np.diff(times)
    wide = apart > 1.5 * step
    odd.gaps += int(np.count_nonzero(wide))
    odd.missing += int(np.rint(apart[wide] / step).sum() - np.count_nonzero(wide))
    odd.longest_gap = max(odd.longest_gap, float(apart.max()) if wide.any() else 0.0)
    grown = np.diff(values)
    odd.resets += int(np.count_nonzero(grown < 0))
    grown = np.where(grown < 0, values[1:], grown)
    begin = float(times[0])
    cells = max(1, math.ceil((float(times[-1]) - begin) / step - SLACK))
    _check_cells(cells, step)
    edges = begin + step * np.arange(cells + 1)
    total = np.concatenate(([0.0], np.cumsum(grown)))
    return Even(begin=begin, step=step, counts=np.diff(np.interp(edges, times, total)))


def _resampled(
    times: Floats, values: Floats, kind: Kind, *, step: float, apart: float, odd: Oddities
) -> Even:
    """Rows that do not fit the cells: each holds until the next; no record is lost or made."""
    known = ~np.isnan(values)
    times, values = times[known], values[known]
    ends = np.append(times[1:], times[-1] + apart)
    lengths = ends - times
    records = values * lengths if kind == "rate" else values
    begin = float(times[0])
    cells = max(1, math.ceil((float(ends[-1]) - begin) / step - SLACK))
    _check_cells(cells, step)
    total = np.concatenate(([0.0], np.cumsum(records)))
    counts = np.diff(
        np.interp(begin + step * np.arange(cells + 1), np.append(times, ends[-1]), total)
    )
    odd.notes.append(
        f"rows: {lengths.min():.3g} to {lengths.max():.3g} s apart, spread over cells of {step:g} s"
    )
    return Even(begin=begin, step=step, counts=counts)


def summed(parts: list[Even]) -> Even:
    """Several series of one step together; each counts where it is known."""
    step = parts[0].step
    begin = min(part.begin for part in parts)
    places = [round((part.begin - begin) / step) for part in parts]
    cells = max(at + len(part.counts) for at, part in zip(places, parts, strict=True))
    _check_cells(cells, step)
    counts = np.zeros(cells)
    for at, part in zip(places, parts, strict=True):
        counts[at : at + len(part.counts)] += part.counts
    return Even(begin=begin, step=step, counts=counts)


def _check_cells(cells: int, step: float) -> None:
    if cells > MOST_CELLS:
        raise InputError(
            f"from the first to the last row there are {cells:,} rows of {step:g} s, more than "
            f"{MOST_CELLS:,}; give a larger step=SECONDS, or a part of the file (start=, end=)"
        )
