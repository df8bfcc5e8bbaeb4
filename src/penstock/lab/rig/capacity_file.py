"""What was measured of each query before its first run, kept in the folder of a bench."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from penstock.capacity.curve import PowerCurve, fit
from penstock.core.codec import from_json, to_json
from penstock.core.errors import InputError
from penstock.history.files import write_text

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
    """The capacity of each query; empty if nothing was measured yet."""
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
    text = json.dumps({query: to_json(c) for query, c in capacities.items()}, indent=1)
    write_text(path, text + "\n")


# How large the micro-batches of a bench are: as large as all executors do in two triggers.
#
# A batch of n records costs c₀ + c₁·n. Where c₀ is more than a trigger, a batch takes twice as long
# as c₀: else a capacity would be one of batches that are mostly c₀, which more executors do not
# make shorter.

FIRST_ROWS = 5_000  # per executor, where nothing is known yet
LEAST_ROWS = 1_000
TRIGGERS = 2.0  # a full batch takes all executors so many triggers
FIXED = 2.0  # or so many times its fixed cost
CLOSE = 1.5  # batches that are so many times too large or too small will do
OTHER = 2.0  # times a size that will do, to see how the cost grows
MOST_CHANGE = 4.0  # times the size of one round that the next may have

Size = tuple[int, float]  # rows of a batch, and the seconds it took


def next_rows(sizes: Sequence[Size], target: float) -> int:
    """The size of batches that should take ``target`` seconds, from what others took.

    With one size only, c₀ = 0, and the next is another size. Larger batches would blind a policy
    for longer while one executor works on them, smaller ones would limit all of them.

    >>> next_rows([(1_000, 0.5)], 2.0), next_rows([(1_000, 1.0), (2_000, 1.5)], 2.0)
    (4000, 3000)
    >>> next_rows([(1_000, 3.1), (2_000, 3.2)], 2.0)  # c₀ = 3 s; 30,000 would take twice that
    8000
    """
    rows, seconds = sizes[-1]
    wanted = rows * target / seconds
    if close_to(rows, wanted):
        wanted = rows * OTHER
    if len({size for size, _ in sizes}) > 1:
        each, fixed = np.polyfit([n for n, _ in sizes], [s for _, s in sizes], 1)
        fixed = max(float(fixed), 0.0)
        wanted = (max(target, FIXED * fixed) - fixed) / each if each > 0 else np.inf
    least = max(LEAST_ROWS, rows / MOST_CHANGE)
    return round(min(max(wanted, least), rows * MOST_CHANGE))


def close_to(rows: int, wanted: float) -> bool:
    """Whether batches of so many rows will do."""
    return wanted / CLOSE <= rows <= wanted * CLOSE


def settle(
    seconds: Callable[[int], float],
    rows: int,
    target: float,
    *,
    rounds: int,
    warm: Callable[[], bool] = lambda: True,
    say: Callable[[str], None] = lambda line: None,
) -> int:
    """Try sizes until batches take about ``target`` seconds, at most so many ``rounds``.

    ``seconds`` runs batches of a size and tells what one took. Rounds of executors that are not
    ``warm`` yet are forgotten.

    >>> settle(lambda rows: 0.2 + rows / 5_000, 2_000, 3.0, rounds=8)
    14000
    """
    sizes: list[Size] = []
    for _ in range(rounds):
        ready = warm()
        now = rows, seconds(rows)
        say(f"{rows:,} records in {now[1]:.1f} s{'' if ready else ', warming up'}")
        if ready:
            sizes.append(now)
        wanted = next_rows(sizes or [now], target)
        if ready and close_to(rows, wanted):
            break
        rows = wanted
    return rows
