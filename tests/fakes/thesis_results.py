"""Results made by hand, for tests of what is concluded from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from penstock.comparison.cell import Cell
from penstock.comparison.results import Results

SEEDS = (100, 101, 102, 103, 104)
SPREAD = (-0.02, 0.01, 0.0, -0.01, 0.02)  # of the values by seed, relative; sums to 0
DEFAULTS: Mapping[str, float] = {
    "slots_mean": 10.0,
    "slots_max": 20.0,
    "slot_seconds": 84_000.0,
    "latency_mean": 50.0,
    "latency_p50": 20.0,
    "latency_p95": 200.0,
    "actions": 26.0,
    "regret": 0.5,
    "oracle_slots_mean": 8.0,
    "oracle_slots_max": 15.0,
    "lag_end": 1e6,
    "slo_seconds": 600.0,
    "throughput": 0.99,
    "stage1_minutes": 39.0,
    "stage1_actions": 8.0,
    "stage1_converged": 0.0,
    "stage2_minutes": 10.0,
    "stage2_actions": 2.0,
    "stage2_converged": 1.0,
}
EXACT = ("stage1_converged", "stage2_converged", "actions", "slots_max")


def made(
    cells: Iterable[Cell],
    figures: Mapping[str, Mapping[str, float]] | None = None,
    *,
    seeds: Sequence[int] = SEEDS,
    by_seed: Mapping[tuple[str, str], Sequence[float]] | None = None,
) -> Results:
    """Every cell has the default scores, except for ``figures`` by key and score.

    Values differ a little from seed to seed, alike in all cells; ``by_seed`` gives them outright.
    """
    found = list({cell.key: cell for cell in cells}.values())
    scores: dict[tuple[str, int], dict[str, float | None]] = {}
    for cell in found:
        own = {**DEFAULTS, **(figures or {}).get(cell.key, {})}
        for number, seed in enumerate(seeds):
            factor = 1.0 + SPREAD[number % len(SPREAD)]
            row: dict[str, float | None] = {
                name: value if name in EXACT else value * factor for name, value in own.items()
            }
            for (key, score), values in (by_seed or {}).items():
                if key == cell.key:
                    row[score] = values[number]
            scores[cell.key, seed] = row
    return Results(found, seeds, scores)
