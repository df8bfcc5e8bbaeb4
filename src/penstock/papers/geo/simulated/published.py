"""What the study reports. [arsalane24, IV]

Its figures are pictures; these are the values that its text names.
"""

from __future__ import annotations

from collections.abc import Mapping

JOBS: Mapping[str, str] = {"map": "Map", "id-id": "Id-Id", "id-value": "Id-Value"}
CASES: Mapping[str, str] = {"none": "no delay", "fixed": "25 ms", "jitter": "25 ± 10 ms"}
FIGURES: Mapping[str, str] = {"none": "7", "fixed": "8", "jitter": "9"}

GAINS: Mapping[str, float] = {"map": 0.9, "id-id": 0.7}
"""Of each further instance, as a share of what the first one does, without delay."""

FULL: Mapping[tuple[str, str], int] = {
    ("map", "none"): 7,
    ("map", "fixed"): 7,
    ("map", "jitter"): 6,
    ("id-value", "none"): 7,
    ("id-value", "fixed"): 7,
}
"""Instances with which the whole load is taken in; of Map with 25 ms *"scales normally"*."""

STALLED, RUNS = 4, 5  # runs of Id-Id with 25 ms that ended at 8

WORST: Mapping[tuple[str, str], float] = {
    ("id-id", "fixed"): 0.34,
    ("id-id", "jitter"): 0.34,
    ("id-value", "none"): 0.52,
    ("id-value", "fixed"): 0.62,
}
"""Greatest error of a prediction; of Map, and of Id-Id without delay, errors are called small."""

HELD_BACK = 0.5  # of a second: below, the auto-scaler adds nothing
TARGETS: Mapping[str, float] = {"map": 0.05, "id-id": 0.10, "id-value": 0.15}
"""Ours, not the study's: mean error that predictions of ``gesscale+`` are to keep."""
