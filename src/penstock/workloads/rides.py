"""Taxi rides from real pick-up places, made from a seed: any range of them, always the same."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import ClassVar

import numpy as np
import pyarrow as pa

from penstock.core.errors import InputError
from penstock.workloads.draws import Whole, below, draw
from penstock.workloads.pattern import Floats
from penstock.workloads.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Rides:
    """Number, moment and pick-up place of taxi rides in New York. [arkian21, §V-A]

    Each place is one of 52,561 at which a yellow taxi took someone up in the night to
    1 January 2013, all as likely; a place that many used comes as often as it was used.

    >>> Rides(seed=1).rows(5, np.array([0, 1_000_000])).column("id").to_pylist()
    [5, 6]
    """

    seed: int = 0

    schema: ClassVar[Schema] = Schema(
        types={"id": "bigint", "time": "timestamp", "lon": "double", "lat": "double"}
    )

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"seed {self.seed} must be ≥ 0")

    def rows(self, first: int, times: Whole) -> pa.RecordBatch:
        """The rides from number ``first`` on, at these moments (microseconds since the epoch)."""
        numbers = np.arange(first, first + len(times), dtype=np.int64)
        known = pickups()
        places = known[below(len(known), draw(self.seed, "ride.place", first, first + len(times)))]
        return pa.RecordBatch.from_arrays(
            [
                pa.array(numbers),
                pa.array(times, pa.timestamp("us", tz="UTC")),
                pa.array(np.ascontiguousarray(places[:, 0])),
                pa.array(np.ascontiguousarray(places[:, 1])),
            ],
            schema=self.schema.arrow,
        )


@lru_cache(maxsize=1)
def pickups() -> Floats:
    """Longitude and latitude of the places, in degrees; see ``data/README.md``."""
    data = files("penstock.workloads").joinpath("data", "pickups.csv.gz").read_bytes()
    lines = gzip.decompress(data).decode("ascii").replace("\n", ",").split(",")[2:-1]
    places = np.array(lines, dtype=np.float64).reshape(-1, 2)
    places.setflags(write=False)
    return places
