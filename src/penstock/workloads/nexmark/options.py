"""What to read of a stream of Nexmark events, as the options of a data source: texts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from penstock.core.errors import InputError, unknown
from penstock.workloads.nexmark.events import PRESETS, SCHEMAS, TABLES, NexmarkEvents, Table
from penstock.workloads.nexmark.stream import NexmarkStream
from penstock.workloads.patterns import parse, to_text
from penstock.workloads.schema import Schema

_EVENTS = tuple(f.name for f in dataclasses.fields(NexmarkEvents))
_STREAM = ("start", "seconds", "partitions", "max_rows")
_READING = ("preset", "pattern", "tables", "table", "columns", "until", "row_by_row")
_FLOATS = ("disorder", "start", "seconds", "until")
OPTIONS = (*_READING, *_STREAM, *_EVENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One table of a stream, with these columns or all; a batch of it ends at ``until``.

    ``until`` epoch second; ``None``: the end of the stream · ``row_by_row`` hands the rows to
    Spark as tuples instead of Arrow batches, to see what those gain.
    """

    stream: NexmarkStream
    table: Table
    columns: tuple[str, ...] | None = None
    until: float | None = None
    row_by_row: bool = False

    def __post_init__(self) -> None:
        if self.table not in self.stream.tables:
            raise unknown("table of this stream", self.table, self.stream.tables)
        if self.until is not None and not math.isfinite(self.until):
            raise InputError(f"until {self.until} must be a finite epoch second")
        SCHEMAS[self.table].select(self.columns)

    @property
    def schema(self) -> Schema:
        """The columns and their types."""
        return SCHEMAS[self.table].select(self.columns)

    @property
    def rows(self) -> int:
        """How many rows a batch has."""
        if self.until is None:
            return self.stream.total(self.table)
        return self.stream.released(self.table, self.until)

    def options(self) -> dict[str, str]:
        """As texts, from which ``from_options`` makes an equal reading."""
        values: dict[str, Any] = {name: getattr(self.stream.events, name) for name in _EVENTS}
        values |= {name: getattr(self.stream, name) for name in _STREAM}
        values |= {
            "pattern": to_text(self.stream.pattern),
            "tables": ",".join(self.stream.tables),
            "table": self.table,
            "columns": None if self.columns is None else ",".join(self.columns),
            "until": self.until,
            "row_by_row": str(self.row_by_row).lower(),
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Reading:
        """From texts; unknown ones are refused.

        Only ``start`` has no default: Spark asks in several processes, and they must agree.
        """
        texts = {key.lower(): text for key, text in options.items() if key.lower() != "path"}
        for key in texts:
            if key not in OPTIONS:
                raise unknown("option of the Nexmark source", key, OPTIONS)
        if "start" not in texts:
            raise InputError(
                "option start is missing: give the epoch second at which the events begin, such "
                "as int(time.time()), and the same one when the query is restarted"
            )
        numbers = {name: _number(name, texts[name]) for name in texts if name not in _READING}
        table = cast(Table, texts.get("table", "bid"))
        if table not in TABLES:
            raise unknown("table", table, TABLES)
        stream = NexmarkStream(
            events=_events(texts.get("preset", "nexmark"), numbers),
            pattern=parse(texts.get("pattern", "constant")),
            tables=cast(tuple[Table, ...], _names(texts.get("tables", table))),
            **{"seconds": 3600.0} | {name: numbers[name] for name in _STREAM if name in numbers},
        )
        return cls(
            stream=stream,
            table=table,
            columns=_names(texts["columns"]) if "columns" in texts else None,
            until=_number("until", texts["until"]) if "until" in texts else None,
            row_by_row=_flag("row_by_row", texts.get("row_by_row", "false")),
        )


def _events(preset: str, numbers: Mapping[str, Any]) -> NexmarkEvents:
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    changed = {name: numbers[name] for name in _EVENTS if name in numbers}
    return dataclasses.replace(PRESETS[preset], **changed)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _number(name: str, text: str) -> Any:
    kind, wanted = (float, "a number") if name in _FLOATS else (int, "a whole number")
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"option {name} = {text!r} is not {wanted}") from None


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InputError(f"option {name} = {text!r} must be true or false")
    return text.lower() == "true"
