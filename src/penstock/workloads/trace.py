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
from penstock.workloads.counts import Counts, Reading, read_counts
from penstock.workloads.curve import Curve, Piecewise
from penstock.workloads.pattern import check_numbers

SHIPPED: Mapping[str, str] = {
    "taxi": "New York taxi drop-offs per minute, 1 and 2 May 2013",
    "nasa": "requests per minute to a NASA web server, 1 to 7 July 1995",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(Piecewise):
    """Recorded counts from ``file``: a CSV file, or ``taxi`` or ``nasa``.

    rate(t) = scale · r(speed · t), with r the count of a row over its seconds. So ``speed=10``
    squeezes ten minutes into one and leaves the rates; ``scale`` makes the rates higher. After
    the last row nothing comes, or all comes again with ``repeat``.

    ``time_column``, ``count_column`` and ``step`` (seconds per row) are found out from the file
    unless given. A missing row is an error unless ``fill`` is ``zero`` or ``last``.
    """

    file: str = dataclasses.field(default="taxi", kw_only=False)
    scale: float = 1.0
    speed: float = 1.0
    repeat: bool = False
    time_column: str = ""
    count_column: str = ""
    step: float = 0.0
    fill: str = ""
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

    def _counts(self) -> Counts:
        how = Reading(
            time_column=self.time_column,
            count_column=self.count_column,
            step=self.step,
            fill=self.fill,
        )
        return _read(_path(self.file), self.stamp, how)


@lru_cache(maxsize=4)
def _read(path: Path, stamp: tuple[int, int], how: Reading) -> Counts:
    return read_counts(path, how)


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
