"""Which runs tell what a query costs: sizes, batch sizes and resizes, known before any begins."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.core.errors import InputError, unknown
from penstock.lab.rig.capacity_file import Capacity
from penstock.lab.rig.settings import KAFKA, SparkSettings

SHARES = (0.1, 0.3, 1.0)  # of the largest batch
QUICK_SHARES = (0.2, 1.0)
REPEATS, MOST_REPEATS = 2, 20
BATCHES = 8  # of a run, if they end in time
LEAST_BATCHES = 3
LONGEST_BATCH = 6.0  # seconds; larger ones are left to more executors
SMALL = 0.1  # share of the largest batch in runs that have pauses
LEAST_ROWS = 100
LAST_BATCHES = 3  # of the run whose data end
ENDLESS = 3_600.0  # seconds of event time that wait where that costs nothing
SPARE_BATCHES = 4
BEFORE_SHARE = 0.5  # of the events of a run, written to Kafka before it begins
LONGEST_RESIZE = 100.0  # seconds, until its executors are warm
STARTING, CAPACITY, RESIZING, QUERY = 25.0, 90.0, 20.0, 6.0  # about, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSpec:
    """Which query, on how many executors, how long each run (``seconds``), and the cluster.

    ``sizes`` numbers of executors; the largest is all of them · ``repeats`` of all runs: a machine
    is faster and slower by the minute · ``quick`` fewer runs, for a first look · ``seed`` of the
    order.
    """

    query: str
    settings: SparkSettings
    sizes: tuple[int, ...] = (1, 2, 4, 8)
    seconds: float = 15.0
    repeats: int = REPEATS
    seed: int = 0
    quick: bool = False

    def __post_init__(self) -> None:
        from penstock.lab.queries.nexmark_queries import QUERIES

        if self.query not in QUERIES:
            raise unknown("query", self.query, QUERIES)
        if len(self.sizes) < 2 or min(self.sizes) < 1 or len(set(self.sizes)) < len(self.sizes):
            raise InputError(f"sizes {list(self.sizes)} must be at least two different numbers ≥ 1")
        if max(self.sizes) != self.settings.slots:
            raise InputError(
                f"the largest of the sizes {list(self.sizes)} must be all "
                f"{self.settings.slots} executors"
            )
        if not 1 <= self.repeats <= MOST_REPEATS:
            raise InputError(f"--repeats {self.repeats} must lie between 1 and {MOST_REPEATS}")
        if not self.seconds > 0:
            raise InputError(f"seconds {self.seconds} must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRun:
    """One run: with ``before`` executors at its beginning and ``executors`` from then on.

    ``rows`` of a batch, of which more wait than it can take · ``density`` records per second of
    event time, as many as it will do · ``last`` the data end, after a few batches · ``warm``
    whether it goes on until new executors are as slow as the others.
    """

    before: int
    executors: int
    rows: int
    density: float
    last: bool = False
    warm: bool = False

    @property
    def resizes(self) -> bool:
        """Whether the number of executors changes."""
        return self.before != self.executors

    def __str__(self) -> str:
        if self.resizes:
            return f"{self.before} to {self.executors} executors"
        one = "executor" if self.executors == 1 else "executors"
        return f"{self.executors} {one}, batches of {self.rows:,}"


def steps_of(spec: ProfileSpec, capacity: Capacity) -> list[ProfileRun]:
    """All runs, from one executor on; sizes and batch sizes in random order.

    A resize is a run of its own. Batches that would take so few executors too long are left out.
    """
    order = random.Random(spec.seed)
    now = 1
    steps: list[ProfileRun] = []
    for size in _order(spec, order):
        if size != now:
            steps.append(_resize(now, size, spec, capacity, warm=size > now))
        shares = list(QUICK_SHARES if spec.quick else SHARES)
        order.shuffle(shares)
        steps += [
            _step(size, size, share, spec, capacity)
            for share in shares
            if _batch_seconds(size, share, capacity) <= LONGEST_BATCH or share == min(shares)
        ]
        now = size
    for size in _more(spec.sizes, now):
        steps.append(_resize(now, size, spec, capacity, warm=False))
        now = size
    return [*steps, replace(_step(now, now, SMALL, spec, capacity), last=True)]


def _order(spec: ProfileSpec, order: random.Random) -> list[int]:
    """Every size ``repeats`` times, all of them before the next time."""
    return [size for _ in range(spec.repeats) for size in order.sample(spec.sizes, len(spec.sizes))]


def seconds_of_events(step: ProfileRun, settings: SparkSettings) -> tuple[float, float]:
    """Seconds of event time that wait when a run begins, and in all.

    As good as endless, but for the run whose data end. In Kafka what it may take: a part is
    written first, the rest meanwhile, as in a bench, where the producer needs its CPU as well.
    """
    batch = step.rows / step.density
    if step.last:
        return LAST_BATCHES * batch, LAST_BATCHES * batch
    if settings.source != KAFKA:
        return ENDLESS, ENDLESS
    whole = LONGEST_RESIZE if step.resizes else (BATCHES + SPARE_BATCHES) * batch
    return BEFORE_SHARE * whole, whole


def seconds_of(spec: ProfileSpec) -> float:
    """About how long all of it takes."""
    runs = spec.repeats * len(spec.sizes) * len(QUICK_SHARES if spec.quick else SHARES)
    resizes = spec.repeats * len(spec.sizes) + 1
    usual = 0.65 * spec.seconds
    return STARTING + CAPACITY + runs * (usual + QUERY) + resizes * (RESIZING + QUERY)


def _more(sizes: Sequence[int], now: int) -> list[int]:
    """Further resizes, so that executors go, and one or a few come, whatever the order was."""
    few, more = sorted(sizes)[:2]
    return [size for size, before in ((few, now), (more, few)) if size != before]


def _resize(
    before: int, after: int, spec: ProfileSpec, capacity: Capacity, *, warm: bool
) -> ProfileRun:
    """Large batches where executors come, so that they have much to do; else small ones."""
    share = 1.0 if after > before else SMALL
    return replace(_step(before, after, share, spec, capacity), warm=warm)


def _step(
    before: int, after: int, share: float, spec: ProfileSpec, capacity: Capacity
) -> ProfileRun:
    rows = max(LEAST_ROWS, round(capacity.rows * share))
    most = capacity.all * after / capacity.slots
    density = max(1.0, min(most, rows / spec.settings.trigger))
    return ProfileRun(before=before, executors=after, rows=rows, density=density)


def _batch_seconds(size: int, share: float, capacity: Capacity) -> float:
    return capacity.rows * share / (capacity.all * size / capacity.slots)
