"""Lag: how many records wait in front of the sources, and how fast they become more."""

from __future__ import annotations

from penstock.core.model import Snapshot
from penstock.core.sanity import idle_for_sure
from penstock.policies.signals.windows import slope

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


def total_lag(seen: Snapshot) -> float | None:
    """Records in front of all sources; ``None`` unless measured of every one."""
    total = 0.0
    for name in seen.pipeline.sources:
        o = seen.operators.get(name)
        if o is None or o.lag is None:
            return None
        total += o.lag
    return total


def consumed_rate(seen: Snapshot) -> float | None:
    """Records/s that all sources took in; ``None`` unless measured of every one."""
    total = 0.0
    for name in seen.pipeline.sources:
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
