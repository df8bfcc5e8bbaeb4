"""How large the micro-batches of a bench are: as large as all executors do in two triggers.

A batch of n records costs c₀ + c₁·n. Where c₀ is more than a trigger, a batch takes twice as long
as c₀: else a capacity would be one of batches that are mostly c₀, which more executors do not
make shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

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
