"""Which columns of a file tell when and how much, and what the figures are: rates, counts, …"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import InputError, unknown
from penstock.workloads.rate_files.cells import MISSING, is_number, is_time
from penstock.workloads.rate_files.text import Rows

Kind = Literal["rate", "count", "counter", "events", "intervals"]
KINDS: dict[Kind, str] = {
    "rate": "records per second",
    "count": "records since the row before, or in the row's own time",
    "counter": "records in all, ever growing; it may begin anew",
    "events": "one row per record",
    "intervals": "the time from one record to the next",
}
TIME_NAMES = ("time", "timestamp", "datetime", "date", "minute", "second", "epoch", "ts", "t")
_TIME_NAME = re.compile(r"time|date|minute|second|(^|_)(ts|t)(_|$)")
_NAMED: dict[Kind, re.Pattern[str]] = {
    "intervals": re.compile(r"^(iat|inter_?arrival\w*)(_[a-zµ]+)?$"),
    "rate": re.compile(r"(^|[^a-z])i?rate([^a-z]|$)|(^|[^a-z])(rps|qps|tps|eps|ops)([^a-z]|$)|"
                       r"per_?s(ec|$|_)|/s(ec)?$"),
    "counter": re.compile(r"_total($|[^a-z])|offset|counter|cumulative"),
    "count": re.compile(r"^n$|count|records|events|requests|messages"),
}  # fmt: skip
_LAG = re.compile(r"(^|[^a-z])lag([^a-z]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Places in the header: ``time`` (``None``: rows are evenly spaced), ``values``, ``labels``.

    kind: what the values are
    told_by: how that is known, in words
    """

    time: int | None
    values: tuple[int, ...]
    labels: tuple[int, ...]
    kind: Kind
    told_by: str


def columns_of(
    rows: Rows, *, time_column: str, value_column: str, kind: str, step: float
) -> Columns:
    """What each column is; raises :class:`InputError` where names and cells do not tell."""
    if any(is_number(name) for name in rows.header):
        raise InputError(
            f"{rows.path}, line 1: {','.join(rows.header)!r} is no header; the first line must "
            "name the columns, such as minute,count"
        )
    if kind and kind not in KINDS:
        raise unknown("kind of values", kind, KINDS)
    time = _time_column(rows, time_column)
    values = _value_columns(rows, time, value_column, kind)
    if time is not None and time in values:
        raise InputError(
            f"{rows.path}: {rows.header[time]!r} cannot be both the time and the count"
        )
    if kind:
        known: Kind = kind
        told = "as told"
    elif not values:
        known, told = "events", "there is nothing but times"
    else:
        known, told = _kind_of(rows, values), "by its name"
    if time is None and known == "events":
        raise InputError(f"{rows.path}, line 1: events need a column of times; give time_column")
    if time is None and known != "intervals" and len(rows.header) > 1 and not step:
        raise InputError(
            f"{rows.path}, line 1: no time column among {', '.join(rows.header)}; give "
            "time_column=NAME, or step=SECONDS if the rows are evenly spaced"
        )
    taken = {time, *values}
    labels = tuple(i for i in range(len(rows.header)) if i not in taken and _is_label(rows, i))
    values = () if known == "events" else values
    return Columns(time=time, values=values, labels=labels, kind=known, told_by=told)


def _time_column(rows: Rows, given: str) -> int | None:
    if given:
        return _place(rows, given, "time column")
    lower = [name.lower() for name in rows.header]
    alike = [n for n in lower if _TIME_NAME.search(n) and _kind_named(n) is None]
    for names in (TIME_NAMES, alike):
        found = next((i for i, name in enumerate(lower) if name in names), None)
        if found is not None:
            return found
    return next((i for i, cell in enumerate(_first(rows)) if is_time(cell)), None)


def _value_columns(rows: Rows, time: int | None, given: str, kind: str) -> tuple[int, ...]:
    if given:
        names = [name.strip() for name in given.split(",")]
        return tuple(_place(rows, name, "value column") for name in names)
    if kind == "events":
        return ()
    others = [i for i in range(len(rows.header)) if i != time]
    named = [i for i in others if _kind_named(rows.header[i]) is not None]
    if not named:
        lags = [rows.header[i] for i in others if _LAG.search(rows.header[i].lower())]
        if lags:
            raise InputError(
                f"{rows.path}, line 1: {lags[0]!r} tells what waits, not what comes; export the "
                "newest offsets instead, or give value_column=NAME"
            )
        named = [i for i in others if _is_figure(rows, i)]
        if others and not named and not kind:
            raise InputError(
                f"{rows.path}, line 1: no count column among {', '.join(rows.header)}; give "
                "value_column=NAME, or say that each row is a record (--as events, kind=events)"
            )
        if len(named) == 1 and not kind:
            raise InputError(
                f"{rows.path}, line 1: {rows.header[named[0]]!r} may be anything; say what it is "
                "(--as, kind=): rate, count, counter, events or intervals"
            )
    if kind and len(named) > 1:
        same = [i for i in named if _kind_named(rows.header[i]) == kind]
        named = same or named
    if len(named) > 1:
        raise InputError(
            f"{rows.path}, line 1: no count column among {', '.join(rows.header)} stands out; give "
            f"value_column={rows.header[named[0]]} (several by comma are summed), or say that "
            "each row is a record (--as events, kind=events)"
        )
    return tuple(named)


def _kind_of(rows: Rows, values: tuple[int, ...]) -> Kind:
    """What values are by the names of their columns, which must agree."""
    kinds = {_kind_named(rows.header[i]) for i in values}
    found = kinds.pop()
    if found is None or kinds:
        names = ", ".join(rows.header[i] for i in values)
        raise InputError(
            f"{rows.path}, line 1: {names} does not tell what it is; say it (--as, kind=): rate, "
            "count, counter, events or intervals"
        )
    return found


def _kind_named(name: str) -> Kind | None:
    lower = name.lower()
    return next((kind for kind, pattern in _NAMED.items() if pattern.search(lower)), None)


def _place(rows: Rows, name: str, what: str) -> int:
    if name not in rows.header:
        raise unknown(f"{what} of {rows.path}", name, rows.header)
    return rows.header.index(name)


def _first(rows: Rows) -> list[str]:
    return [column[0] for column in rows.columns] if rows.lines else []


def _is_figure(rows: Rows, column: int) -> bool:
    """Whether the first cells of a column are numbers."""
    cells = [c.strip() for c in rows.columns[column][:20]]
    known = [c for c in cells if c.lower() not in MISSING]
    return bool(known) and all(is_number(c.replace(",", ".")) for c in known)


def _is_label(rows: Rows, column: int) -> bool:
    """Whether a column tells series apart: by words, or because it is a partition."""
    return rows.header[column].lower() in ("partition", "topic") or not _is_figure(rows, column)
