"""How long records waited: what a source had at each planning, and when it was committed.

Between two plannings records are taken as released evenly, so what was released is a piecewise
linear curve A(t). A batch that has taken T records of a source when it ends, and T′ before, commits
the records from T′ to T; a record's latency is the end of its batch minus the moment at which A
reached it. All of it is exact for that curve, and needs no loop over records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from penstock.batches.values import Batch, Source

Floats = npt.NDArray[np.float64]

TRUSTED = 0.1  # offsets count records if they grow by the rows of the batches, within this share
LEAST_KNOWN = 0.5  # share of the records whose release must be known
SHORTEST = 1e-6  # s; a piece is at least this long, so that its density is finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """One source of a query at each planning, oldest first; seconds and records.

    ``released`` what it had then · ``taken`` what the query had taken after that batch, ``before``
    the first one · ``counted`` whether the source told so. Sources that do not tell hand all they
    have to every batch, so what was released is what was taken · ``now`` the moment of the
    observation, ``newest`` what the source has then; ``None`` where only plannings are known.
    """

    times: Floats
    ends: Floats
    released: Floats
    taken: Floats
    before: float
    counted: bool
    now: float | None = None
    newest: float | None = None

    def offered_rate(self, first: int) -> float | None:
        """Records/s released between a planning and the last, or now."""
        end, released = float(self.times[-1]), float(self.released[-1])
        if self.newest is not None and self.now is not None and self.now > end:
            end, released = self.now, max(released, self.newest)
        seconds = end - float(self.times[first])
        if seconds <= 0:
            return None
        return (released - float(self.released[first])) / seconds

    def waiting(self, offered: float | None) -> float | None:
        """Records that wait now: what the last planning left, and what has come since.

        What has come is what the source says, else what is ``offered`` per second.
        """
        if self.now is None:
            return self.lag()
        if self.newest is not None:
            return max(0.0, self.newest - float(self.taken[-1]))
        if offered is None:
            return self.lag()
        left = float(self.released[-1] - self.taken[-1])
        return left + offered * max(0.0, self.now - float(self.times[-1]))

    def lag(self, at: int = -1) -> float | None:
        """Records that a batch left behind; not measured where the source does not tell."""
        return float(self.released[at] - self.taken[at]) if self.counted else None

    def lag_seconds(self, offered: float | None) -> float | None:
        """How long the first record that the last batch left behind has waited.

        If it was there before the first known planning: the lag in seconds of what is offered.
        """
        since = 0.0 if self.now is None else max(0.0, self.now - float(self.times[-1]))
        lag = self.lag() if self.now is None else float(self.released[-1] - self.taken[-1])
        if not lag:
            return since if self.now is not None and self.waiting(offered) else lag
        taken = self.taken[-1]
        if taken < self.released[0]:
            return since + lag / offered if offered else None
        after = int(np.searchsorted(self.released, taken, side="right"))
        low, high = self.released[after - 1], self.released[after]
        share = (taken - low) / (high - low)
        came = self.times[after - 1] + share * (self.times[after] - self.times[after - 1])
        return since + float(self.times[-1] - came)

    def waits(self, first: int) -> Waits:
        """The latencies of the records that were committed by the batches from ``first`` on."""
        start = np.concatenate(([self.before], self.taken[:-1]))[first:, None]
        end, commit = self.taken[first:, None], self.ends[first:, None]
        low, high = np.maximum(start, self.released[:-1]), np.minimum(end, self.released[1:])
        some = high > low
        steps = np.diff(self.released)
        pace = np.diff(self.times) / np.where(steps > 0, steps, 1.0)  # seconds per record
        longest = commit - self.times[:-1] - (low - self.released[:-1]) * pace
        shortest = commit - self.times[:-1] - (high - self.released[:-1]) * pace
        return Waits(
            shortest=shortest[some],
            longest=longest[some],
            records=(high - low)[some],
            committed=float(self.taken[-1] - start[0, 0]) if len(start) else 0.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Latencies in seconds: pieces of ``records`` spread evenly from shortest to longest.

    ``committed`` all records, those whose release is not known included.
    """

    shortest: Floats
    longest: Floats
    records: Floats
    committed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds from release to commit: the mean over all records, and percentiles."""

    mean: float
    p50: float
    p95: float
    p99: float


def intakes_of(
    batches: Sequence[Batch],
    *,
    now: float | None = None,
    newest: Sequence[int | None] = (),
) -> list[Intake]:
    """Every source of a query, in the order of its plan, over its batches.

    ``newest`` what each has ``now``, if these are known.
    """
    times = np.array([b.start for b in batches])
    ends = np.array([b.end for b in batches])
    inputs = list(zip(*(b.inputs for b in batches), strict=True))
    has = newest if len(newest) == len(inputs) else [None] * len(inputs)
    found = (_intake(times, ends, s, asked=n is not None) for s, n in zip(inputs, has, strict=True))
    return [
        replace(intake, now=now, newest=n if intake.counted else None)
        for intake, n in zip(found, has, strict=True)
    ]


def latency_of(waits: Sequence[Waits]) -> Latency | None:
    """Over the records of all sources; ``None`` if too few of them are known."""
    low, high, weight = (
        np.concatenate([getattr(w, name) for w in waits])
        for name in ("shortest", "longest", "records")
    )
    known = float(weight.sum())
    if not known or known < LEAST_KNOWN * sum(w.committed for w in waits):
        return None
    mean = float(((low + high) / 2 * weight).sum()) / known
    p50, p95, p99 = quantiles(low, high, weight, (0.5, 0.95, 0.99))
    return Latency(mean=mean, p50=p50, p95=p95, p99=p99)


def quantiles(low: Floats, high: Floats, weight: Floats, shares: Sequence[float]) -> list[float]:
    """Quantiles of a mixture of uniform distributions, exact to a microsecond.

    Its density is constant between the ends of its pieces, so its distribution function is linear
    there and can be inverted. In place as far as possible: a week has millions of pieces.
    """
    high = np.maximum(high, low + SHORTEST)
    density = weight / (high - low)
    points = np.concatenate((low, high))
    order = np.argsort(points, kind="stable")
    points = points[order]
    slopes = np.concatenate((density, -density))[order]
    np.cumsum(slopes, out=slopes)
    below = np.diff(points, prepend=points[:1])
    below[1:] *= slopes[:-1]
    np.cumsum(below, out=below)
    np.maximum.accumulate(below, out=below)  # rounding may dip by a hair
    return [float(np.interp(share * below[-1], below, points)) for share in shares]


def _intake(
    times: Floats, ends: Floats, sources: Sequence[Source], *, asked: bool = False
) -> Intake:
    """``asked``: the source told what it has; before that it hands all it has to every batch."""
    rows = np.array([s.rows for s in sources], dtype=float)
    taken = np.array([np.nan if s.taken is None else s.taken for s in sources], dtype=float)
    released = np.array([np.nan if s.available is None else s.available for s in sources])
    if asked:
        released = np.where(np.isnan(released), taken, released)
    if np.isnan(taken).any() or np.isnan(released).any() or not _counts(taken, rows):
        taken = np.cumsum(rows)
        return Intake(
            times=times, ends=ends, released=taken, taken=taken, before=0.0, counted=False
        )
    return Intake(
        times=times,
        ends=ends,
        released=np.maximum.accumulate(np.maximum(released, taken)),
        taken=np.maximum.accumulate(taken),
        before=float(taken[0] - rows[0]),
        counted=True,
    )


def _counts(taken: Floats, rows: Floats) -> bool:
    """Whether offsets count records: then they grow by the rows of each batch."""
    grown, read = float(taken[-1] - taken[0]), float(rows[1:].sum())
    return abs(grown - read) <= TRUSTED * max(grown, read)
