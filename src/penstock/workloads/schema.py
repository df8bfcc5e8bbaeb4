"""Columns of the rows that sources make, for Spark and for Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.core.errors import InputError, unknown

_ARROW: Mapping[str, pa.DataType] = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Columns with their Spark types, in order."""

    types: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names."""
        return tuple(self.types)

    @property
    def ddl(self) -> str:
        """As Spark writes a schema.

        >>> Schema(types={"id": "bigint", "time": "timestamp"}).ddl
        'id bigint, time timestamp'
        """
        return ", ".join(f"{name} {kind}" for name, kind in self.types.items())

    @property
    def arrow(self) -> pa.Schema:
        """As Arrow has it; a timestamp counts microseconds in UTC."""
        return pa.schema([(name, _ARROW[kind]) for name, kind in self.types.items()])

    def select(self, columns: Sequence[str] | None) -> Schema:
        """Only these columns, in this order; ``None`` means all."""
        if columns is None:
            return self
        for name in columns:
            if name not in self.types:
                raise unknown("column", name, self.types)
        if not columns or len(set(columns)) < len(columns):
            text = ", ".join(columns)
            raise InputError(f"columns [{text}] must be at least one, each of them once")
        return Schema(types={name: self.types[name] for name in columns})
