"""Numbers as people read them: 1.25 M records, 4.2 s, 1:05:00."""

from __future__ import annotations

from collections.abc import Callable

Format = Callable[[float | None], str]

UNKNOWN = "–"
_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(value: float | None) -> str:
    """A number of records, or of records per second, in three digits.

    >>> count(1_254_000), count(12.0), count(0.25), count(None)
    ('1.25M', '12', '0.25', '–')
    """
    if value is None:
        return UNKNOWN
    for size, letter in _THOUSANDS:
        if abs(value) >= size * 0.9995:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def seconds(value: float | None) -> str:
    """A duration in the unit that fits it.

    >>> seconds(0.0421), seconds(4.21), seconds(250.0), seconds(8400.0), seconds(None)
    ('42 ms', '4.2 s', '4.2 min', '2.3 h', '–')
    """
    if value is None:
        return UNKNOWN
    size = abs(value)
    if 0 < size < 1:
        return f"{value * 1000:.0f} ms"
    if size < 120:
        return f"{_tenths(value)} s"
    return f"{_tenths(value / 60)} min" if size < 7200 else f"{_tenths(value / 3600)} h"


def _tenths(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def clock(value: float) -> str:
    """Time since the start.

    >>> clock(75.0), clock(3900.0)
    ('1:15', '1:05:00')
    """
    whole = round(value)
    hours, minutes, secs = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def share(value: float | None) -> str:
    """A share as a percentage; never rounded up to 100 %.

    >>> share(0.5), share(0.9999), share(None)
    ('50 %', '99.9 %', '–')
    """
    if value is None:
        return UNKNOWN
    percent = value * 100
    if 99 < percent < 100:
        return f"{min(percent, 99.9):.1f} %"
    return f"{percent:.0f} %"
