"""The backlog in front of the sources, and what a rescale would add to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.core.model import Proposal, Snapshot
from penstock.core.sanity import idle_for_sure
from penstock.policies.signals.windows import Samples, remember, slope

RECENT = 60.0  # seconds that the offered rate is averaged over
SOURCES_NOT_MEASURED = Proposal(
    reason="no change: rates or lag of the sources not measured", term="sources-not-measured"
)
RESCALE_UNDER_WAY = Proposal(
    reason="no change: a rescale was under way in this window", term="rescale"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits in front of the sources, and what one more rescale would add to it.

    ``rate`` offered to all sources, records/s · ``lag`` records that wait · ``downtime`` seconds
    without processing that a rescale costs · ``most`` records/s that the sources took in while
    records waited all the time, which is all they can; ``None`` if not seen.

    >>> Backlog(rate=1000.0, lag=60_000.0, downtime=40.0).factor(catch_up=200.0)
    1.5
    """

    rate: float
    lag: float
    downtime: float
    most: float | None = None

    @property
    def use(self) -> float:
        """ρ, the offered rate over what the sources can take in; 0 if that was not seen."""
        return self.rate / self.most if self.most else 0.0

    @property
    def seconds(self) -> float:
        """The lag in seconds of input."""
        return self.lag / self.rate if self.rate else 0.0

    def factor(self, catch_up: float) -> float:
        """How much faster than the input a pipeline must be to be level again in time.

        g = 1 + (lag/λ + downtime) / catch_up, λ the offered rate: the lag, and the records that
        come in during the rescale, are worked off within ``catch_up`` seconds.
        """
        return 1.0 + (self.seconds + self.downtime) / catch_up

    def drains_in(self, use: float) -> float:
        """Seconds until nothing waits at the present size: (lag/λ) / (1/ρ − 1), ρ the ``use``."""
        if not self.lag:
            return 0.0
        return self.seconds * use / (1.0 - use) if use < 1.0 else math.inf


def backlog_of(seen: Snapshot, *, downtime: float, calm: float) -> Backlog | None:
    """The backlog; ``None`` unless offered rate, arrival rate and lag of every source are known.

    ``downtime`` is taken where none was measured · ``calm`` seconds of work that have to wait, at
    the beginning and the end of the window, for the sources to have taken in all they can.
    """
    rate = lag = taken = 0.0
    for name in seen.pipeline.sources:
        o = seen.operators.get(name)
        if o is None or o.lag is None or o.offered_rate is None or o.arrival_rate is None:
            return None
        if not o.offered_rate and not idle_for_sure(seen, name):
            return None  # a zero alone may be a metric that broke
        rate += o.offered_rate
        lag += o.lag
        taken += o.arrival_rate
    waited = min(lag, lag - (rate - taken) * seen.window) > calm * taken
    return Backlog(
        rate=rate,
        lag=lag,
        downtime=downtime_of(seen, downtime),
        most=taken if waited and not stopped(seen) else None,
    )


def smoothed(
    backlog: Backlog | None, memory: Samples, time: float
) -> tuple[Backlog | None, Samples, float]:
    """The backlog at the mean rate of the last minute, that memory, and mean over present rate.

    Loads go up and down within a minute; a size that lasts for several should not follow.
    """
    if backlog is None:
        return None, remember(memory, time, None, RECENT), 1.0
    offered = remember(memory, time, backlog.rate, RECENT)
    if not backlog.rate:
        return backlog, offered, 1.0
    mean = sum(v[1] for v in offered) / len(offered)
    return replace(backlog, rate=mean), offered, mean / backlog.rate


def downtime_of(seen: Snapshot, default: float) -> float:
    """Mean seconds without processing of the past rescales; ``default`` if none was measured."""
    known = [r.downtime for r in seen.rescales if r.downtime is not None]
    return sum(known) / len(known) if known else default


def stopped(seen: Snapshot) -> bool:
    """Whether a rescale is under way, or was within the window of the snapshot."""
    return seen.acting or any(
        r.time + max(r.downtime or 0.0, r.registered or 0.0) > seen.time - seen.window
        for r in seen.rescales
    )


def lag_words(backlog: Backlog) -> str:
    """The lag for a person.

    >>> lag_words(Backlog(rate=1e5, lag=3.2e6, downtime=0.0))
    'lag of 3.2 M records (32 s of input)'
    """
    records = f"{backlog.lag:.0f}"
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if backlog.lag >= size:
            records = f"{backlog.lag / size:.1f} {unit}"
    return f"lag of {records} records ({backlog.seconds:,.0f} s of input)"


PERIOD = 60.0  # seconds that a derivative is taken over                   [kanis23, table 6.4]

Lags = list[list[float | None]]
"""``[time, lag of the first source, of the second, …]`` in the order of ``Pipeline.sources``."""


def remember_lag(seen: Snapshot, lags: Lags, period: float = PERIOD) -> Lags:
    """The samples of the last ``period`` seconds, both ends included, and the present one."""
    row: list[float | None] = [seen.time]
    for name in seen.pipeline.sources:
        o = seen.operators.get(name)
        row.append(None if o is None else o.lag)
    kept = [past for past in lags if past[0] is not None and past[0] >= seen.time - period]
    kept.append(row)
    return kept


def consumed_rate(seen: Snapshot, operators: Sequence[str]) -> float | None:
    """Records/s that some operators took in; ``None`` unless measured of every one."""
    total = 0.0
    for name in operators:
        o = seen.operators.get(name)
        if o is None or o.arrival_rate is None:
            return None
        total += o.arrival_rate
    return total


def lag_rate(
    seen: Snapshot, lags: Lags, period: float = PERIOD, source: str | None = None
) -> float | None:
    """How fast the lag grows, records/s, of all sources together or of one; ``None``: not known.

    ``lags`` as ``remember_lag`` returns them, the present sample included. The least-squares slope
    of the last ``period`` seconds, if the samples cover at least half of it. They do not after a
    pause (a loop that sleeps through its cool-down) or a gap; then it is offered − consumed, the
    same derivative over the window of the snapshot. That is the difference of two large figures
    and so a noisy one, but no lag can have grown by more than is there.
    """
    sources = seen.pipeline.sources
    first, after = 1, len(sources) + 1
    if source is not None:
        first = 1 + sources.index(source)
        after = first + 1
    points: list[tuple[float, float]] = []
    for row in lags:
        time = row[0]
        if time is None or time < seen.time - period or len(row) != len(sources) + 1:
            continue  # too old, or of another pipeline
        total = 0.0
        for value in row[first:after]:
            if value is None:
                break
            total += value
        else:
            points.append((time, total))
    if points and points[-1][0] == seen.time and seen.time - points[0][0] >= period / 2:
        return slope(points)
    return _rate_of_window(seen, sources if source is None else (source,))


def _rate_of_window(seen: Snapshot, sources: tuple[str, ...]) -> float | None:
    total = 0.0
    for name in sources:
        o = seen.operators.get(name)
        if o is None or o.offered_rate is None or o.arrival_rate is None:
            return None
        if not o.offered_rate and not idle_for_sure(seen, name) and not o.lag:
            return None  # records taken that nobody sent: the zero is a broken reading
        rate = o.offered_rate - o.arrival_rate
        if o.lag is not None and seen.window > 0.0:
            rate = min(rate, o.lag / seen.window)  # it cannot have been less than none before
        total += rate
    return total
