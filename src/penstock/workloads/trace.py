"""Recorded traffic, replayed: counts from a file, or one of the traces that come along."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from penstock.core.errors import InputError, unknown
from penstock.workloads.curve import Curve, Piecewise
from penstock.workloads.pattern import Floats, check_numbers

SHIPPED: Mapping[str, str] = {
    "taxi": "New York taxi drop-offs per minute, 1 and 2 May 2013",
    "nasa": "requests per minute to a NASA web server, 1 to 7 July 1995",
}
TIME_NAMES = ("time", "timestamp", "datetime", "date", "minute", "second", "epoch", "ts")
COUNT_NAMES = ("count", "counts", "records", "events", "requests", "n")
FILLS = ("", "zero", "last")
MOST_ROWS = 50_000_000
SLACK = 1e-6  # relative: epoch seconds may be written with fractions


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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Counts:
    """Records per row; each row lasts ``step`` seconds."""

    step: float
    counts: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a file. Empty texts and 0 mean: find out.

    ``time_column``, ``count_column`` names in the header · ``step`` seconds per row ·
    ``fill`` what stands for rows that are missing: ``zero``, ``last`` or nothing.
    """

    time_column: str = ""
    count_column: str = ""
    step: float = 0.0
    fill: str = ""

    def __post_init__(self) -> None:
        if self.fill not in FILLS:
            raise unknown("fill of a trace", self.fill, FILLS[1:])
        if not (math.isfinite(self.step) and self.step >= 0):
            raise InputError(f"trace: step = {self.step} must be a finite number of seconds ≥ 0")


@lru_cache(maxsize=4)
def _read(path: Path, stamp: tuple[int, int], how: Reading) -> Counts:
    """The counts of a CSV file, plain or gzipped, with a header; ``stamp`` tells its version.

    The time column holds ISO 8601 times or epoch seconds, evenly spaced; a file with nothing but
    counts has one row per second unless ``step`` says otherwise.
    """
    rows = _rows(path)
    first = next(rows, None)
    if first is None:
        raise InputError(
            f"{path}: is empty; a trace needs a header and one row per second or minute"
        )
    header = [cell.partition("#")[0].strip() for cell in first[1]]
    time_at, count_at = _columns(path, header, how)
    table = _Table(path, how, header, time_at)
    for line, cells in rows:
        if len(cells) != len(header):
            raise InputError(
                f"{path}, line {line}: {len(cells)} values under {len(header)} columns "
                f"({', '.join(header)}); every row needs one value per column"
            )
        count = _count(path, line, header[count_at], cells[count_at])
        table.add(line, None if time_at is None else cells[time_at].strip(), count)
    return table.done()


class _Table:
    """The rows so far; knows the spacing once it has seen two times."""

    def __init__(self, path: Path, how: Reading, header: list[str], time_at: int | None) -> None:
        self.path, self.fill = path, how.fill
        self.step = how.step or (1.0 if time_at is None else 0.0)
        self.time_name = "" if time_at is None else header[time_at]
        self.counts: list[float] = []
        self.last: float | None = None
        self.last_text = ""

    def add(self, line: int, time: str | None, count: float) -> None:
        if time is not None:
            now = _seconds(self.path, line, self.time_name, time)
            if self.last is not None:
                self._after(line, now, now - self.last, time)
            self.last, self.last_text = now, time
        self.counts.append(count)

    def done(self) -> Counts:
        if not self.counts:
            raise InputError(f"{self.path}: has a header but no rows; nothing to replay")
        if not self.step:
            raise InputError(
                f"{self.path}: one row does not tell how long it lasts; give step=SECONDS"
            )
        return Counts(step=self.step, counts=np.array(self.counts))

    def _after(self, line: int, now: float, apart: float, text: str) -> None:
        """Check that this row follows the one before, and fill what is missing if allowed."""
        where = f"{self.path}, line {line}: {self.time_name} {text!r}"
        if apart <= 0:
            raise InputError(
                f"{where} is not after {self.last_text!r} in the row before; sort the rows by "
                "time and keep one per moment"
            )
        self.step = self.step or apart
        missing = round(apart / self.step) - 1
        if abs(apart - (missing + 1) * self.step) > SLACK * apart:
            raise InputError(
                f"{where} is {apart:g} s after the row before, but rows are {self.step:g} s apart; "
                "space the rows evenly, or give the true spacing as step=SECONDS"
            )
        if not missing:
            return
        if not self.fill:
            gap = _like(self.last_text, now - apart + self.step)
            what = f"{gap!r} is" if missing == 1 else f"{gap!r} and {missing - 1} more rows are"
            raise InputError(
                f"{where}: {what} missing before it (rows are {self.step:g} s apart); "
                "add the rows, or give fill=zero or fill=last"
            )
        if len(self.counts) + missing > MOST_ROWS:
            raise InputError(
                f"{where}: {missing} rows are missing before it, more than can be filled "
                f"({MOST_ROWS} rows in all)"
            )
        self.counts += [self.counts[-1] if self.fill == "last" else 0.0] * missing


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells; empty lines are allowed only at the end."""
    reader = csv.reader(io.StringIO(_text(path), newline=""))
    empty = 0
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                empty = empty or reader.line_num
                continue
            if empty:
                raise InputError(f"{path}, line {empty}: is empty; remove it or fill it in")
            yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: is not CSV ({error})") from None


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: the gzip file is damaged ({error})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not a text file in UTF-8 ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _columns(path: Path, header: list[str], how: Reading) -> tuple[int | None, int]:
    """Where the time and the count stand; no time in a file of counts only."""
    if any(_is_number(name) for name in header):
        raise InputError(
            f"{path}, line 1: {','.join(header)!r} is no header; the first line must name the "
            "columns, such as minute,count"
        )
    count_at = _find(path, header, how.count_column, COUNT_NAMES, "count")
    if count_at is None:
        raise InputError(
            f"{path}, line 1: no count column among {', '.join(header)}; name it 'count' or give "
            "count_column=NAME"
        )
    time_at = _find(path, header, how.time_column, TIME_NAMES, "time")
    if time_at is None and len(header) > 1 and not how.step:
        raise InputError(
            f"{path}, line 1: no time column among {', '.join(header)}; give time_column=NAME, or "
            "step=SECONDS if the rows are evenly spaced"
        )
    if time_at == count_at:
        raise InputError(f"{path}: {header[count_at]!r} cannot be both the time and the count")
    return time_at, count_at


def _find(
    path: Path, header: list[str], given: str, usual: tuple[str, ...], what: str
) -> int | None:
    if given:
        if given not in header:
            raise unknown(f"{what} column of {path}", given, header)
        return header.index(given)
    return next((i for i, name in enumerate(header) if name.lower() in usual), None)


def _count(path: Path, line: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(
            f"{path}, line {line}: {name} {text.strip()!r} is not a number; write a count ≥ 0"
        ) from None
    if not (math.isfinite(value) and value >= 0):
        raise InputError(
            f"{path}, line {line}: {name} {text.strip()} must be a finite number ≥ 0; write 0 "
            "where nothing came"
        )
    return value


def _seconds(path: Path, line: int, name: str, text: str) -> float:
    """Epoch seconds; a time without a zone counts as UTC, so that no hour is missing."""
    if _is_number(text):
        value = float(text)
        if math.isfinite(value):
            return value
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{path}, line {line}: {name} {text!r} is not a time; write ISO 8601, such as "
            "2013-05-01 00:00, or epoch seconds"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _like(example: str, seconds: float) -> str:
    """A moment, written as the example is."""
    if _is_number(example):
        return f"{seconds:.15g}"
    zone = datetime.fromisoformat(example).tzinfo
    moment = datetime.fromtimestamp(seconds, zone or UTC)
    text = moment.isoformat(sep=" " if " " in example else "T", timespec="seconds")
    return text[: len(example)] if not zone else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
