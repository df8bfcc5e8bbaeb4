"""Times and numbers as people write them, a whole column at a time."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from penstock.core.errors import InputError
from penstock.workloads.pattern import Floats
from penstock.workloads.rate_files.text import Rows

MISSING = frozenset({"", "nan", "null", "none", "na", "n/a", "-", "undefined", "\\n"})
_EPOCHS = ((1e17, 1e-9, "nanoseconds"), (1e14, 1e-6, "microseconds"), (1e11, 1e-3, "milliseconds"))
_EPOCH_SECONDS = 1e8  # below that, numbers count from a beginning of their own
_SUFFIXES = {
    "ns": (1e-9, "nanoseconds"),
    "us": (1e-6, "microseconds"),
    "ms": (1e-3, "milliseconds"),
}
_SUFFIX = re.compile(r"[_( ](ns|us|µs|ms|s)\)?$")
_LOG_TIME = "%d/%b/%Y:%H:%M:%S %z"
_ZONE = re.compile(r"(Z|[+-]00:?00)$")
_THOUSANDS = {mark: re.compile(rf"[+-]?\d{{1,3}}(\{mark}\d{{3}})+(\{other}\d+)?")
              for mark, other in ((",", "."), (".", ","))}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Times:
    """Moments in seconds: since the epoch, or since a beginning of their own.

    written: how they are written, in words
    """

    seconds: Floats
    written: str
    epoch: bool


def times_of(rows: Rows, column: int) -> Times:
    """The column as moments; a time without a zone counts as UTC, so that no hour is missing."""
    texts = [text.strip() for text in rows.columns[column]]
    name = rows.header[column]
    if not texts:
        return Times(seconds=np.zeros(0), written="no times", epoch=False)
    if is_number(texts[0]):
        return _numeric(rows, name, texts)
    seconds = _iso_quickly(texts)
    written = "ISO 8601"
    if seconds is None:
        zoned = [_moment(rows, row, name, text) for row, text in enumerate(texts)]
        seconds = np.array([moment.timestamp() for moment, _ in zoned])
        if any(known for _, known in zoned):
            return Times(seconds=seconds, written=f"{written} with a zone", epoch=True)
    elif _ZONE.search(texts[0]):
        return Times(seconds=seconds, written=f"{written} with a zone", epoch=True)
    return Times(seconds=seconds, written=f"{written} without a zone, taken as UTC", epoch=True)


def _iso_quickly(texts: list[str]) -> Floats | None:
    """Plain ISO times of one form, by numpy; ``None`` where it cannot tell."""
    zone = _ZONE.search(texts[0])
    if zone is not None:
        suffix = zone[0]
        if not all(text.endswith(suffix) for text in texts):
            return None
        texts = [text[: -len(suffix)] for text in texts]
    if len(texts[0]) < 10:  # years and months alone are read, and mean something else
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            moments = np.array(texts, dtype="datetime64[ns]")
    except (ValueError, Warning):
        return None
    if np.isnat(moments).any():
        return None
    return np.asarray(moments.astype(np.int64) / 1e9)


def _moment(rows: Rows, row: int, name: str, text: str) -> tuple[datetime, bool]:
    """One time, and whether it told its zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        try:
            found = datetime.strptime(text, _LOG_TIME)
        except ValueError:
            raise _no_time(rows, row, name, text) from None
    return (found, True) if found.tzinfo else (found.replace(tzinfo=UTC), False)


def _no_time(rows: Rows, row: int, name: str, text: str) -> InputError:
    return InputError(
        f"{rows.where(row)}: {name} {text!r} is not a time; write ISO 8601, such as "
        "2013-05-01 00:00, or epoch seconds"
    )


def _numeric(rows: Rows, name: str, texts: list[str]) -> Times:
    """Epochs by their size; small numbers count from their own beginning, by the column's unit."""
    try:
        values = np.array(texts, dtype=np.float64)
    except ValueError:
        values = np.array([float(t) if is_number(t) else math.nan for t in texts])
    for row in np.flatnonzero(~np.isfinite(values)).tolist():
        raise _no_time(rows, row, name, texts[row])
    factor, unit, epoch = _unit(float(np.median(values)), name)
    if epoch:
        for row in (int(values.argmin()), int(values.argmax())):
            if _unit(float(values[row]), name)[1:] != (unit, True):
                raise InputError(
                    f"{rows.where(row)}: {name} {texts[row]!r} is not epoch {unit} like the "
                    "others; remove the row"
                )
    written = f"epoch {unit}" if epoch else f"{unit} from the first on"
    return Times(seconds=values * factor, written=written, epoch=epoch)


def _unit(value: float, name: str) -> tuple[float, str, bool]:
    for least, factor, unit in _EPOCHS:
        if value >= least:
            return factor, unit, True
    if value >= _EPOCH_SECONDS:
        return 1.0, "seconds", True
    return *_SUFFIXES.get(unit_of(name), (1.0, "seconds")), False


def unit_of(name: str) -> str:
    """The unit that the name of a column ends in; seconds if in none.

    >>> unit_of("iat_us"), unit_of("Delay (ms)"), unit_of("time")
    ('us', 'ms', 's')
    """
    found = _SUFFIX.search(name.lower())
    return found[1].replace("µ", "u") if found else "s"


def seconds_per(name: str) -> float:
    """How many seconds one unit of a column is, by its name."""
    return _SUFFIXES.get(unit_of(name), (1.0, ""))[0]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Numbers:
    """Values, NaN where a cell says that there is none; ``written`` what is special about them."""

    values: Floats
    written: str


def numbers_of(rows: Rows, column: int) -> Numbers:
    """The column as numbers ≥ 0; thousands may be separated."""
    name, texts = rows.header[column], rows.columns[column]
    try:
        values = np.array(texts, dtype=np.float64) if texts else np.zeros(0)
        written = ""
    except ValueError:
        values, written = _one_by_one(rows, name, [text.strip() for text in texts])
    for row in np.flatnonzero(np.isinf(values) | (values < 0)).tolist():
        raise InputError(
            f"{rows.where(row)}: {name} {texts[row].strip()} must be a finite number ≥ 0; write 0 "
            "where nothing came, or leave the cell empty where nothing is known"
        )
    return Numbers(values=values, written=written)


def _one_by_one(rows: Rows, name: str, texts: list[str]) -> tuple[Floats, str]:
    mark = _thousands_mark(rows, texts)
    decimal = {",": ".", ".": ","}.get(mark, "." if _plain_decimals(texts) else ",")
    values = np.empty(len(texts))
    for row, text in enumerate(texts):
        if text.lower() in MISSING:
            values[row] = math.nan
            continue
        plain = text.replace(mark, "") if mark else text
        plain = plain.replace(decimal, ".")
        if not is_number(plain) or "_" in plain:
            raise InputError(
                f"{rows.where(row)}: {name} {text!r} is not a number; write a count ≥ 0 without "
                "a unit (Grafana: export without formatting)"
            )
        values[row] = float(plain)
    said = []
    if mark:
        said.append(f"{mark!r} separates thousands")
    if decimal == ",":
        said.append("',' is the decimal mark")
    return values, ", ".join(said)


def _thousands_mark(rows: Rows, texts: list[str]) -> str:
    """What separates thousands in a column; empty if nothing does.

    A mark does where each cell that has it is grouped by it in threes, and one of them shows that
    it is no decimal mark: by a second one, or by the other mark behind it. A comma in a file with
    commas between cells stands in quotes, which nobody does to a decimal mark.
    """
    spaced = any(re.fullmatch(r"\d{1,3}([ \u00a0\u202f']\d{3})+([.,]\d+)?", t) for t in texts)
    if spaced:
        return next(m for m in " \u00a0\u202f'" if any(m in t for t in texts))
    for mark, grouped in _THOUSANDS.items():
        having = [t for t in texts if mark in t]
        if not having or not all(grouped.fullmatch(t) for t in having):
            continue
        other = "." if mark == "," else ","
        certain = any(t.count(mark) > 1 or other in t for t in having)
        if certain or (mark == "," and rows.form == "CSV with commas"):
            return mark
    return ""


def _plain_decimals(texts: list[str]) -> bool:
    return not any(re.fullmatch(r"[+-]?\d+,\d+", t) for t in texts)


def is_number(text: str) -> bool:
    """Whether Python reads it as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_time(text: str) -> bool:
    """Whether a cell reads like a date with a time."""
    text = text.strip()
    if len(text) < 10 or is_number(text):
        return False
    for read in (datetime.fromisoformat, lambda t: datetime.strptime(t, _LOG_TIME)):
        try:
            read(text)
        except ValueError:
            continue
        return True
    return False


def moment_of(text: str, *, option: str) -> float:
    """Epoch seconds of a moment that was given as an option."""
    if is_number(text):
        return float(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{option} {text!r} is not a time; write ISO 8601, such as 2013-05-01 00:00"
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
