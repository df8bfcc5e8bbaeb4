"""What was measured of each query before its first run, kept in the folder of a bench."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from penstock.capacity.curve import PowerCurve, fit
from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError

CAPACITY = "capacity.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Throughput of a query in records/s on the clock.

    ``one`` of one executor, ``all`` of ``slots`` executors · ``rows`` most records that a
    micro-batch took while it was measured, and takes in every run · ``again`` of ``slots``
    executors before each further seed, as machines are faster in one hour than in the next. Loads
    and oracle rest on the first measurement.
    """

    slots: int
    one: float
    all: float
    rows: int
    again: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        rates = (self.one, self.all, *self.again)
        if not (min(rates) > 0 and self.slots > 1 and self.rows > 0):
            raise InputError(f"{self} cannot have been measured; every figure must be above 0")

    @property
    def curve(self) -> PowerCurve:
        """C(n) = C₁ · n^β through both points."""
        return fit([1, self.slots], [self.one, self.all])

    @property
    def pace(self) -> float:
        """Records/s of all executors, the mean over the bench.

        >>> Capacity(slots=4, one=900.0, all=2000.0, rows=4000, again=(1800.0, 1900.0)).pace
        1900.0
        """
        return fmean([self.all, *self.again])


def read_capacities(folder: Path) -> dict[str, Capacity]:
    """By query; empty if nothing was measured yet."""
    path = folder / CAPACITY
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {query: from_json(Capacity, found) for query, found in document.items()}
    except (ValueError, AttributeError) as error:
        raise InputError(
            f"{path} does not hold capacities ({error}). The loads of the finished runs rest on "
            "them: restore the file, or start a new bench"
        ) from None


def write_capacities(folder: Path, capacities: dict[str, Capacity]) -> None:
    """All of them, at once or not at all."""
    path = folder / CAPACITY
    partial = path.with_name(path.name + ".part")
    text = json.dumps({query: to_json(c) for query, c in capacities.items()}, indent=1)
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(path)
