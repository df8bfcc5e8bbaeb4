"""Rows that are released on the wall clock by a rate pattern, and their form as texts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, get_type_hints

import numpy as np
import pyarrow as pa

from penstock.core.errors import InputError, unknown
from penstock.workloads.draws import Whole
from penstock.workloads.pattern import Pattern
from penstock.workloads.patterns import parse, to_text
from penstock.workloads.release import Releases, check_schedule, releases
from penstock.workloads.rides import Rides
from penstock.workloads.schema import Schema
from penstock.workloads.sensors import Sensors


class Content(Protocol):
    """What rows say: a pure function of their numbers and the moments of their release."""

    @property
    def schema(self) -> Schema:
        """Their columns."""
        ...

    def rows(self, first: int, times: Whole) -> pa.RecordBatch:
        """Those from number ``first`` on, at moments in microseconds since the epoch."""
        ...


CONTENTS: Mapping[str, type[Any]] = {"rides": Rides, "sensors": Sensors}
_NUMBERS: Mapping[str, type] = {
    "start": float,
    "seconds": float,
    "partitions": int,
    "max_rows": int,
    "until": float,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRows:
    """Rows of some content, each released when a rate pattern has offered one more.

    ``start`` epoch second at which the pattern begins · ``seconds`` how long it lasts ·
    ``partitions`` tasks per micro-batch · ``max_rows`` most rows that a micro-batch takes
    (``None``: all that wait) · ``until`` epoch second at which a batch over them ends (``None``:
    all there will ever be); a stream takes no notice of it.

    >>> from penstock.workloads.patterns import Constant
    >>> rows = TimedRows(content=Rides(), pattern=Constant(rps=100.0), start=0.0, seconds=10.0)
    >>> rows.total, rows.released(2.5)
    (1000, 250)
    """

    content: Content
    pattern: Pattern
    start: float
    seconds: float
    partitions: int = 8
    max_rows: int | None = None
    until: float | None = None

    def __post_init__(self) -> None:
        check_schedule(
            start=self.start,
            seconds=self.seconds,
            partitions=self.partitions,
            max_rows=self.max_rows,
        )
        if self.until is not None and not math.isfinite(self.until):
            raise InputError(f"until {self.until} must be a finite epoch second")

    @property
    def end(self) -> float:
        """Epoch second at which the pattern ends."""
        return self.start + self.seconds

    @property
    def total(self) -> int:
        """All rows that there will ever be."""
        return self._releases.total

    def released(self, now: float) -> int:
        """Rows released until an epoch second, to the microsecond."""
        return self._releases.count(round(now * 1e6) - self._start)

    def rows(self, first: int, end: int) -> pa.RecordBatch:
        """Rows ``first`` to ``end`` − 1, however many others are asked for."""
        if not 0 <= first <= end <= self.total:
            raise InputError(f"rows {first} to {end} must lie within 0 and {self.total}")
        times = self._releases.at(np.arange(first, end, dtype=np.int64)) + self._start
        return self.content.rows(first, times)

    def options(self) -> dict[str, str]:
        """As texts, from which ``from_options`` makes equal rows."""
        kind = next(name for name, kind in CONTENTS.items() if type(self.content) is kind)
        values: dict[str, Any] = {"content": kind, "pattern": to_text(self.pattern)}
        fields = dataclasses.fields(self.content)  # type: ignore[arg-type]
        values |= {f.name: getattr(self.content, f.name) for f in fields}
        values |= {name: getattr(self, name) for name in _NUMBERS}
        return {name: str(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> TimedRows:
        """From texts; unknown ones are refused.

        ``content`` and ``start`` have no default: Spark asks in several processes, and they must
        agree.
        """
        texts = {key.lower(): text for key, text in options.items() if key.lower() != "path"}
        for name in ("content", "start"):
            if name not in texts:
                raise InputError(f"option {name} is missing: {_HINTS[name]}")
        if texts["content"] not in CONTENTS:
            raise unknown("content", texts["content"], CONTENTS)
        kind = CONTENTS[texts["content"]]
        hints = get_type_hints(kind)
        own = {f.name: hints[f.name] for f in dataclasses.fields(kind)}
        known = ("content", "pattern", *_NUMBERS, *own)
        for key in texts:
            if key not in known:
                raise unknown(f"option of {texts['content']}", key, known)
        given = {name: _typed(name, texts[name], t) for name, t in own.items() if name in texts}
        numbers = {
            name: _typed(name, texts[name], t) for name, t in _NUMBERS.items() if name in texts
        }
        return cls(
            content=kind(**given),
            pattern=parse(texts.get("pattern", "constant")),
            **{"seconds": 3600.0} | numbers,
        )

    @property
    def _releases(self) -> Releases:
        return releases(self.pattern, self.seconds)  # type: ignore[arg-type]

    @property
    def _start(self) -> int:
        return round(self.start * 1e6)


_HINTS = {
    "content": f"give one of {', '.join(CONTENTS)}",
    "start": "give the epoch second at which the rows begin, such as int(time.time()), and the "
    "same one when the query is restarted",
}


def _typed(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        wanted = "a number" if kind is float else "a whole number"
        raise InputError(f"option {name} = {text!r} is not {wanted}") from None
