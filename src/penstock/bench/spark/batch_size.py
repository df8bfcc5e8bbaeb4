"""How large the micro-batches of a bench are: as large as all executors do in two triggers."""

from __future__ import annotations

FIRST_ROWS = 5_000  # per executor, where nothing is known yet
LEAST_ROWS = 1_000
TRIGGERS = 2.0  # a full batch takes all executors so many triggers
CLOSE = 1.5  # batches that are so many times too large or too small will do
MOST_CHANGE = 4.0  # times the size of one round that the next may have

Size = tuple[int, float]  # rows of a batch, and the seconds it took


def next_rows(before: Size | None, now: Size, target: float) -> int:
    """The size of batches that should take ``target`` seconds, from what the last two took.

    A batch of n records costs c₀ + c₁·n; with one point only, c₀ = 0. Larger batches would blind
    a policy for longer while one executor works on them, smaller ones would limit all of them.

    >>> next_rows(None, (1_000, 1.0), 2.0), next_rows((1_000, 1.0), (2_000, 1.5), 2.0)
    (2000, 3000)
    """
    rows, seconds = now
    wanted = rows * target / seconds
    if before is not None and before[0] != rows:
        slope = (seconds - before[1]) / (rows - before[0])
        if slope > 0:
            wanted = rows + (target - seconds) / slope
    least = max(LEAST_ROWS, rows / MOST_CHANGE)
    return round(min(max(wanted, least), rows * MOST_CHANGE))


def close_to(rows: int, wanted: int) -> bool:
    """Whether batches of so many rows will do."""
    return wanted / CLOSE <= rows <= wanted * CLOSE
