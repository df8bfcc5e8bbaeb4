"""What the paper reports. [arkian21, Table III, V-B and IV-C]"""

from __future__ import annotations

from collections.abc import Mapping

GESSCALE, PLUS = "gesscale", "gesscale+"
NAMES: Mapping[str, str] = {
    "thr-nlunaware": "THR-NLUnaware",
    "thr-nlaware": "THR-NLAware",
    "mdl-nlunaware": "MDL-NLUnaware",
    GESSCALE: "Gesscale",
}
METRICS: Mapping[str, str] = {
    "accuracy_o": "accuracy O",
    "accuracy_u": "accuracy U",
    "timeshare_o": "timeshare O %",
    "timeshare_u": "timeshare U %",
    "excess_time": "excess time",
    "reconfigurations": "reconf.",
    "cost": "cost",
}
"""The columns of Table III, by the names of an outcome's fields."""

TABLE_3: Mapping[str, Mapping[str, float]] = {
    policy: dict(zip(METRICS, row, strict=True))
    for policy, row in {
        "thr-nlunaware": (1.636, 0.742, 51.11, 30.28, 0.163, 25, 1199.5),
        "thr-nlaware": (1.517, 0.640, 46.67, 22.99, 0.115, 19, 1193.75),
        "mdl-nlunaware": (1.713, 0.622, 60.42, 25.00, 0.126, 16, 1270.5),
        GESSCALE: (0.838, 0.499, 49.31, 21.74, 0.042, 12, 999.5),
    }.items()
}

RATIOS: tuple[tuple[str, str], ...] = (
    ("thr-nlunaware", "reconfigurations"),
    ("thr-nlunaware", "cost"),
    ("thr-nlaware", "reconfigurations"),
    ("thr-nlaware", "cost"),
    ("thr-nlaware", "excess_time"),
)
"""What the text compares Gesscale with, and in what."""

MODEL_ERROR = 0.02  # of the fully calibrated model, at most
MINUTES = 288  # two days at ten times their speed


def ratio(base: str, metric: str) -> float:
    """Gesscale's figure over another's, minus 1.

    >>> round(ratio("thr-nlunaware", "reconfigurations"), 2)
    -0.52
    """
    return TABLE_3[GESSCALE][metric] / TABLE_3[base][metric] - 1.0
