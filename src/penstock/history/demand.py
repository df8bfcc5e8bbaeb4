"""What came to a source over time, rebuilt from what the batches of a query took."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from penstock.batches.latency import TRUSTED
from penstock.batches.values import Batch, Source
from penstock.core.errors import InputError

Floats = npt.NDArray[np.float64]

SHORTEST = 1e-3  # seconds between two plannings that make a piece of their own
FULL = 0.99  # of the limit: a batch that took as much may have left records behind


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Demand:
    """Records/s that came to one source: ``rates[i]`` from ``edges[i]`` to ``edges[i + 1]``.

    edges: seconds after ``start``, ascending, one more than there are rates
    start: seconds since the epoch
    lower_bound: share of the time in which more may have come than is known

    >>> Demand(start=0.0, edges=np.array([0.0, 10.0, 40.0]), rates=np.array([8.0, 0.0])).mean
    2.0
    """

    start: float
    edges: Floats
    rates: Floats
    lower_bound: float = 0.0

    def __post_init__(self) -> None:
        good = len(self.edges) == len(self.rates) + 1 and bool(np.all(np.diff(self.edges) > 0))
        if not (good and np.isfinite(self.rates).all() and (self.rates >= 0).all()):
            raise InputError(
                f"{len(self.edges)} edges and {len(self.rates)} rates make no demand: edges "
                "ascend and are one more than the rates, which are finite and ≥ 0"
            )

    @property
    def seconds(self) -> float:
        """From the first edge to the last."""
        return float(self.edges[-1] - self.edges[0])

    @property
    def records(self) -> float:
        """All that came."""
        return float(self.rates @ np.diff(self.edges))

    @property
    def mean(self) -> float:
        """Records/s over the whole time; 0 where nothing is known of any."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def peak(self) -> float:
        """The highest rate of a piece."""
        return float(self.rates.max(initial=0.0))

    def since(self, start: float) -> Demand:
        """The same with edges that count from another moment."""
        moved = self.edges + (self.start - start)
        return Demand(start=start, edges=moved, rates=self.rates, lower_bound=self.lower_bound)

    def even(self, step: float) -> Floats:
        """The mean rates of cells of ``step`` seconds, from the first edge on."""
        before = np.concatenate(([0.0], np.cumsum(self.rates * np.diff(self.edges))))
        cells = max(1, math.ceil(self.seconds / step - 1e-9))
        ends = self.edges[0] + step * np.arange(cells + 1)
        counts = np.diff(np.interp(ends, self.edges, before))
        rates: Floats = np.maximum(0.0, counts / step)
        return rates


@dataclass(slots=True)
class _SourceLog:
    rows: array[float] = field(default_factory=lambda: array("d"))
    available: array[float] = field(default_factory=lambda: array("d"))
    taken: array[float] = field(default_factory=lambda: array("d"))


class Plannings:
    """When batches were planned and what each took: 40 bytes of a batch and source, so all of them.

    names: of the sources, in the order of the plan; those of the first batch that told any
    """

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self._times = array("d")
        self._sources: list[_SourceLog] = []
        self.first = math.inf  # seconds since the epoch
        self.last = -math.inf
        self.count = 0  # of batches that ran

    def add(self, batch: Batch) -> None:
        """Take a batch, or a moment of idleness."""
        inputs = batch.inputs
        if not self._sources:
            self.names = names_of_sources(inputs)
            self._sources = [_SourceLog() for _ in inputs]
        if len(inputs) != len(self._sources):  # the plan has changed; its sources are others
            inputs = _as_many(batch, len(self._sources))
        self._times.append(batch.start)
        self.first, self.last = min(self.first, batch.start), max(self.last, batch.end)
        self.count += not batch.idle
        for log, source in zip(self._sources, inputs, strict=True):
            log.rows.append(float(source.rows))
            log.available.append(math.nan if source.available is None else float(source.available))
            log.taken.append(math.nan if source.taken is None else float(source.taken))

    def demand(self, most_rows: Sequence[int | None] = ()) -> dict[str, Demand]:
        """What came to each source; none where fewer than two plannings are known.

        ``most_rows`` that a batch takes of each source, where that is known.
        """
        order = np.argsort(np.asarray(self._times), kind="stable")
        times = np.asarray(self._times)[order]
        limits = [*most_rows, *[None] * len(self._sources)]
        found = {}
        for name, log, most in zip(self.names, self._sources, limits, strict=False):
            rows, available, taken = (
                np.asarray(column)[order] for column in (log.rows, log.available, log.taken)
            )
            made = _demand(times, rows, available, taken, most)
            if made is not None:
                found[name] = made
        return found


def demand_of(
    runs: Sequence[Sequence[Batch]], most_rows: Sequence[int | None] = ()
) -> dict[str, Demand]:
    """What came to each source of a query, over all of its runs.

    Records that were planned together came between that planning and the one before. Where a
    source tells how much it has, that counts; else what batches took, which is a lower bound while
    a limit kept them from taking more.
    """
    log = Plannings()
    for batches in runs:
        for batch in batches:
            log.add(batch)
    return log.demand(most_rows)


def joined(parts: Mapping[str, Sequence[Demand]]) -> dict[str, Demand]:
    """Demands of several runs one after the other, by source; nothing is known of the time
    between them, which counts as idle.
    """
    return {name: _joined(some) for name, some in parts.items() if some}


def _joined(parts: Sequence[Demand]) -> Demand:
    ordered = sorted(parts, key=lambda d: d.start + d.edges[0])
    start = ordered[0].start
    edges: list[Floats] = []
    rates: list[Floats] = []
    bound = 0.0
    last = -math.inf
    for part in (d.since(start) for d in ordered):
        keep = part.edges[:-1] >= last - 1e-9
        if not keep.any():
            continue
        first = int(np.argmax(keep))
        if edges:
            if part.edges[first] > last + SHORTEST:
                edges.append(part.edges[first : first + 1])
                rates.append(np.zeros(1))
        else:
            edges.append(part.edges[:1])
        rates.append(part.rates[first:])
        edges.append(part.edges[first + 1 :])
        bound += part.lower_bound * part.seconds
        last = float(part.edges[-1])
    whole = np.concatenate(edges)
    span = float(whole[-1] - whole[0])
    return Demand(
        start=start,
        edges=whole,
        rates=np.concatenate(rates),
        lower_bound=min(1.0, bound / span) if span else 0.0,
    )


def names_of_sources(inputs: Sequence[Source]) -> tuple[str, ...]:
    """A readable name for each source, no two the same.

    >>> names_of_sources([Source(rows=1, name="KafkaV2[Subscribe[bids]]"), Source(rows=1)])
    ('bids', 'source 2')
    """
    names: list[str] = []
    for number, source in enumerate(inputs, 1):
        name = _short(source.name) or f"source {number}"
        names.append(name if name not in names else f"{name} ({number})")
    return tuple(names)


def _short(description: str) -> str:
    """The topic, host or last folder in what Spark says of a source."""
    kind, bracket, rest = description.strip().partition("[")
    inner = rest.rstrip("]").strip()
    if not bracket or not inner:
        return kind
    if kind.startswith("Kafka"):
        return inner.partition("[")[2] or inner
    if kind.startswith("FileStream"):
        return inner.rstrip("/").rpartition("/")[2] or inner
    for begin, name in (("Rate", "rate"), ("TextSocket", "socket"), ("Memory", "memory")):
        if kind.startswith(begin):
            return name
    return description.strip()


def _as_many(batch: Batch, count: int) -> tuple[Source, ...]:
    """The first sources of a batch of another plan; all rows in the first where there is one."""
    if count == 1:
        return (Source(rows=batch.rows, available=batch.available, taken=batch.taken),)
    return (*batch.inputs, *[Source(rows=0)] * count)[:count]


def _demand(
    times: Floats, rows: Floats, available: Floats, taken: Floats, most: int | None
) -> Demand | None:
    """The pieces between plannings that lie apart."""
    if len(times) < 2:
        return None
    came = rows.copy()
    full = np.zeros(len(rows), dtype=bool)
    counted = _counts(rows, taken) and bool(np.isfinite(available).all())
    if counted:
        # A source that began anew has fewer than before; then what was taken counts.
        grown = np.diff(available, prepend=available[0])
        came = np.where(grown >= 0, grown, rows)
    elif most is not None:
        full = rows >= FULL * most
    keep = np.concatenate(([True], np.diff(times) > SHORTEST))
    group = np.cumsum(keep) - 1
    sums = np.bincount(group, weights=np.where(np.arange(len(came)) == 0, 0.0, came))
    edges = times[keep]
    if len(edges) < 2:
        return None
    lengths = np.diff(edges)
    bound = np.bincount(group, weights=full)[1:] > 0
    return Demand(
        start=float(edges[0]),
        edges=edges - edges[0],
        rates=np.maximum(0.0, sums[1:] / lengths),
        lower_bound=float(lengths[bound].sum() / lengths.sum()),
    )


def _counts(rows: Floats, taken: Floats) -> bool:
    """Whether offsets count records: they grow by the rows of the batches."""
    if not np.isfinite(taken).all():
        return False
    steps, read = np.diff(taken), rows[1:]
    whole = float(read.sum())
    return whole > 0 and float(np.abs(steps - read).sum()) <= TRUSTED * whole
