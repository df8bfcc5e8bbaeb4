"""Figures that can be true: what is refused before anything is made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from penstock.batches.values import Batch
from penstock.core.errors import InputError

MOST = 10**15  # no count, and no number of milliseconds, is larger
LONGEST = 1e9  # seconds of a batch
ODD = (
    KeyError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError,
)  # fmt: skip
"""What documents of another shape than Spark's raise when they are read."""


def check_figures(figures: Mapping[str, float | None]) -> None:
    """Refuse what is not finite, below 0 or beyond all bounds; ``None`` is not known."""
    for name, value in figures.items():
        if value is not None and not (math.isfinite(value) and 0 <= value <= MOST):
            raise InputError(f"{name} = {value:.6g} must be from 0 to {MOST:.0e}; remove the line")


def check_batch(batch: Batch) -> None:
    """Refuse a batch that cannot have been."""
    check_figures(
        {
            "batchId": batch.id,
            "timestamp": batch.start,
            "numInputRows": batch.rows,
            "numRowsTotal": batch.state_rows,
            "memoryUsedBytes": batch.state_bytes,
            **{f"numInputRows of source {n}": s.rows for n, s in enumerate(batch.inputs, 1)},
        }
    )
    if not 0 <= batch.duration <= LONGEST:
        raise InputError(
            f"batchDuration = {batch.duration * 1e3:.6g} ms must be from 0 to {LONGEST:.0e} s; "
            "remove the line"
        )
