"""Messages of many sensors, made from a seed: any range of them, always the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from penstock.core.errors import InputError
from penstock.workloads.draws import Whole, below, draw
from penstock.workloads.schema import Schema

MOST = 2**31  # of sensors and values: draws are even up to 2^32


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensors:
    """⟨id, time, value⟩ of sensors 0 to x − 1 that send in turn. [arsalane24, §III-B]

    Row n is message n // x of sensor n mod x: released at x records/s, every sensor sends one
    message per second. A ``value`` is one of 0 to ``values`` − 1, all as likely. Streams of
    different names draw different values from one seed.

    >>> rows = Sensors(sensors=3, values=10).rows(4, np.array([0, 1_000_000]))
    >>> rows.column("id").to_pylist()
    [1, 2]
    """

    sensors: int = 1_000
    values: int = 1_000
    stream: str = "s1"
    seed: int = 0

    schema: ClassVar[Schema] = Schema(
        types={"id": "bigint", "time": "timestamp", "value": "bigint"}
    )

    def __post_init__(self) -> None:
        for name in ("sensors", "values"):
            if not 1 <= getattr(self, name) < MOST:
                raise InputError(f"{name} {getattr(self, name)} must be ≥ 1 and below 2^31")
        if self.seed < 0:
            raise InputError(f"seed {self.seed} must be ≥ 0")
        if not self.stream:
            raise InputError("stream must be a name, such as s1")

    def rows(self, first: int, times: Whole) -> pa.RecordBatch:
        """The messages from row ``first`` on, at these moments (microseconds since the epoch)."""
        end = first + len(times)
        ids = np.arange(first, end, dtype=np.int64) % self.sensors
        values = below(self.values, draw(self.seed, f"{self.stream}.value", first, end))
        return pa.RecordBatch.from_arrays(
            [pa.array(ids), pa.array(times, pa.timestamp("us", tz="UTC")), pa.array(values)],
            schema=self.schema.arrow,
        )
