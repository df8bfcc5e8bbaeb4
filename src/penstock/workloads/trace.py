"""Recorded traffic, replayed: counts from a file, or one of the traces that come along."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from penstock.core.errors import InputError
from penstock.workloads.curve import Curve, Piecewise
from penstock.workloads.pattern import check_numbers
from penstock.workloads.rate_files.read import Reading, RecordedRates, Understood, read_rates

SHIPPED: Mapping[str, str] = {
    "taxi": "New York taxi drop-offs per minute, 1 and 2 May 2013",
    "nasa": "requests per minute to a NASA web server, 1 to 7 July 1995",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(Piecewise):
    """Recorded traffic from ``file``: CSV, Prometheus's JSON, a web log, or ``taxi`` or ``nasa``.

    rate(t) = scale · r(speed · t), with r the count of a row over its seconds. So ``speed=10``
    squeezes ten minutes into one and leaves the rates; ``scale`` makes the rates higher. After
    the last row nothing comes, or all comes again with ``repeat``.

    ``time_column``, ``value_column`` (several by comma are summed), ``kind`` of the values (rate,
    count, counter, events, intervals) and ``step`` (seconds per row) are found out from the file
    unless given; ``understood`` tells what was found. Rows that are missing are filled by a
    straight line, or as ``fill`` says: ``zero``, ``last``, or ``none`` for an error. ``start`` and
    ``end`` cut a part out. ``count_column`` is a ``value_column`` of counts.
    """

    file: str = dataclasses.field(default="taxi", kw_only=False)
    scale: float = 1.0
    speed: float = 1.0
    repeat: bool = False
    time_column: str = ""
    count_column: str = ""
    step: float = 0.0
    fill: str = ""
    value_column: str = ""
    kind: str = ""
    start: str = ""
    end: str = ""
    # Size and time of change: two patterns of one file differ if it changed in between.
    stamp: tuple[int, int] = dataclasses.field(init=False, repr=False, default=(0, 0))

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.speed == 0:
            raise InputError("trace: speed = 0 must be above 0")
        object.__setattr__(self, "stamp", _stamp(_path(self.file)))
        self._counts()  # fail now, not in the middle of a run

    @property
    def duration(self) -> float:
        """Seconds from the first row to the end of the last."""
        recorded = self._counts()
        return len(recorded.counts) * recorded.step / self.speed

    def curve(self, until: float) -> Curve:
        """A piece per row, and then nothing."""
        return _curve(self)

    def scaled_to(self, rate: float, *, percentile: float = 100.0) -> Trace:
        """The same with other rates: so large a percentile of them is ``rate`` records/s.

        >>> taxi = Trace("taxi").scaled_to(1000.0)
        >>> round(float(taxi.curve(0.0).rates.max()))
        1000
        """
        if not 0 <= percentile <= 100:
            raise InputError(f"percentile = {percentile} must lie between 0 and 100")
        recorded = self._counts()
        now = float(np.percentile(recorded.counts, percentile)) / recorded.step
        if not now:
            raise InputError(
                f"{self.file}: percentile {percentile:g} of its rates is 0 and cannot be scaled to "
                f"{rate:g} records/s; take a higher one"
            )
        return dataclasses.replace(self, scale=rate / now)

    @property
    def understood(self) -> Understood:
        """What was made of the file: its rows, span, unit, rates, gaps."""
        return self._counts().understood

    def _counts(self) -> RecordedRates:
        how = Reading(
            time_column=self.time_column,
            value_column=self.value_column or self.count_column,
            kind=self.kind or ("count" if self.count_column else ""),
            step=self.step,
            fill=self.fill,
            start=self.start,
            end=self.end,
        )
        return _read(_path(self.file), self.stamp, how)


@lru_cache(maxsize=16)
def _curve(pattern: Trace) -> Curve:
    recorded = pattern._counts()
    rows = len(recorded.counts)
    edges = np.arange(rows + 1, dtype=np.float64) * (recorded.step / pattern.speed)
    rates = np.append(recorded.counts * (pattern.scale / recorded.step), 0.0)
    return Curve.of(edges, rates, period=float(edges[-1]) if pattern.repeat else None)


def _path(file: str) -> Path:
    if file in SHIPPED:
        return Path(str(files("penstock.workloads").joinpath("data", f"{file}.csv.gz")))
    return Path(file)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        about = path.stat()
    except OSError as error:
        raise InputError(
            f"trace: file = {str(path)!r} cannot be read ({error.strerror}); give the path of a "
            f"CSV file, or one of {', '.join(SHIPPED)}"
        ) from None
    return about.st_size, about.st_mtime_ns


@lru_cache(maxsize=4)
def _read(path: Path, stamp: tuple[int, int], how: Reading) -> RecordedRates:
    """The file as it was when it had this ``stamp``."""
    return read_rates(path, how)


def scaled(trace: Trace, how: str) -> Trace:
    """A trace as ``--scale`` says: ``2`` times, or so that ``peak``, ``mean`` or ``p99`` is a rate.

    >>> scaled(Trace("taxi"), "mean=100").scale == 100 / Trace("taxi").understood.mean
    True
    """
    name, equals, value = how.partition("=")
    try:
        number = float(value if equals else name)
        if not equals:
            return dataclasses.replace(trace, scale=number)
        if name == "mean":
            return dataclasses.replace(trace, scale=number / trace.understood.mean)
        return trace.scaled_to(number, percentile=100.0 if name == "peak" else float(name[1:]))
    except (ValueError, ZeroDivisionError):
        raise InputError(
            f"--scale {how!r} must be a factor such as 2, or the rate that the peak, the mean or a "
            "percentile is to have: peak=5000, mean=800, p99=3000"
        ) from None
