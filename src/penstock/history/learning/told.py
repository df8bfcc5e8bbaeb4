"""What a query was told and nobody wrote down: its trigger and its limits, from its batches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from penstock.batches.values import Batch

TRIGGERS = (
    0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 45.0,
    60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 600.0, 900.0, 1200.0, 1800.0, 3600.0, 7200.0, 21600.0,
    43200.0, 86400.0,
)  # fmt: skip
AT_ONCE = 0.1  # seconds between two batches that follow one another at once
LATE = 0.1  # seconds (or share of the interval) after its multiple at which a batch is planned
MOST_LATE = 0.15  # of the batches that waited
LEAST = 3  # batches that must show it
NEAR = 0.01  # of the limit


def trigger_of(batches: Sequence[Batch]) -> float | None:
    """Seconds between batches; 0 if one follows the other; ``None`` if that cannot be told.

    Spark plans batches at multiples of the interval since the epoch, so that those which had to
    wait begin right after one. Of the intervals that fit, the longest.
    """
    ran = [b for b in batches if not b.idle]
    waited = [b.start for a, b in pairwise(ran) if b.start - a.end > AT_ONCE and b.id == a.id + 1]
    if len(ran) < LEAST:
        return None
    gaps = np.diff([b.start for b in ran])
    if len(waited) < LEAST:
        return None if len(ran) < 2 * LEAST else 0.0
    starts = np.array(waited)
    # Of a query whose batches are further apart than its trigger, more than one interval fits.
    longest = float(np.quantile(gaps[gaps > AT_ONCE], 0.1)) if (gaps > AT_ONCE).any() else 0.0
    for interval in reversed(TRIGGERS):
        if interval > 1.2 * longest + LATE:
            continue
        late = np.mod(starts + 0.01, interval) > min(max(LATE, LATE * interval), 0.2 * interval)
        # By chance a tenth of all starts lies right after a multiple.
        if late.mean() <= MOST_LATE:
            return interval
    return 0.0


def limits_of(batches: Sequence[Batch]) -> tuple[int | None, ...]:
    """The most that a batch takes of each source: what several took while more was waiting."""
    ran = [b for b in batches if not b.idle and b.rows]
    if not ran:
        return ()
    inputs = len(ran[-1].inputs)
    found: list[int | None] = []
    for place in range(inputs):
        sources = [b.inputs[place] for b in ran if len(b.inputs) == inputs]
        held = [
            s.rows
            for s in sources
            if s.available is not None and s.taken is not None and s.available > s.taken
        ]
        most = max((s.rows for s in sources), default=0)
        full = [rows for rows in held if rows >= (1.0 - NEAR) * most]
        clear = most > 1 and len(full) >= LEAST and 2 * len(full) > len(held)
        found.append(most if clear else None)
    return tuple(found)
