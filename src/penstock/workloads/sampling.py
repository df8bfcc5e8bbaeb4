"""A pattern as numbers: its rate in small cells, and the figures of the whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.core.errors import InputError
from penstock.workloads.pattern import Floats, Pattern, offered_at

CELLS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 3600.0)  # seconds
MOST_CELLS = 4_000_000
LONGEST = MOST_CELLS * CELLS[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of a load over ``seconds``: rates in records/s, the lowest and highest of one cell.

    ``peak_to_mean`` is ``None`` where nothing came.
    """

    seconds: float
    total: float
    mean: float
    lowest: float
    highest: float
    peak_to_mean: float | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sample:
    """The mean rate in each cell of ``cell`` seconds; the last cell may be shorter."""

    seconds: float
    cell: float
    rates: Floats
    figures: Figures


def sample(pattern: Pattern, seconds: float, cell: float | None = None) -> Sample:
    """The rates of a pattern from 0 on, by the second if that is not too many.

    >>> from penstock.workloads.patterns import Step
    >>> s = sample(Step(low=1.0, high=3.0, at=5.0), 10.0)
    >>> s.rates.tolist(), s.figures.mean
    ([1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0], 2.0)
    """
    if not 1 <= seconds <= LONGEST:
        raise InputError(f"a load of {seconds:g} s cannot be drawn: 1 s to {LONGEST:.0e} s can")
    if cell is None:
        cell = next(c for c in CELLS if seconds / c <= MOST_CELLS)
    if seconds / cell > MOST_CELLS:
        raise InputError(
            f"{seconds:g} s in cells of {cell:g} s are more than {MOST_CELLS:,} rates; take a "
            "shorter part"
        )
    edges = np.append(np.arange(0.0, seconds - cell * 1e-9, cell), seconds)
    offered = offered_at(pattern, edges)
    rates = np.diff(offered) / np.diff(edges)
    total = float(offered[-1])
    mean, highest = total / seconds, float(rates.max())
    figures = Figures(
        seconds=seconds,
        total=total,
        mean=mean,
        lowest=float(rates.min()),
        highest=highest,
        peak_to_mean=highest / mean if mean > 0 else None,
    )
    return Sample(seconds=seconds, cell=cell, rates=rates, figures=figures)
