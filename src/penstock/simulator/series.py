"""What a simulation leaves behind: one figure per second, and totals that must balance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One figure per simulated second; views, not copies.

    ``offered``, ``consumed`` (by the sources), ``delivered`` (to the operators that nothing
    follows): records in that second · ``lag`` records waiting in front of the sources at its end
    · ``queue_latency`` seconds that the record at the head of the queue has waited at its end ·
    ``latency`` mean seconds from arrival to delivery · ``down`` share of the second in which the
    job stood still · ``slots`` by pool.

    In a second in which nothing is delivered, ``latency`` repeats ``queue_latency``; weight by
    ``delivered`` to leave such seconds out.
    """

    offered: Floats
    consumed: Floats
    delivered: Floats
    lag: Floats
    queue_latency: Floats
    latency: Floats
    down: Floats
    slots: Mapping[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTotals:
    """Records that came to an operator, that it worked off, and that still wait in front."""

    received: float
    processed: float
    waiting: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Where all records are.

    ``arrived`` at the sources = ``consumed`` + ``queued`` · ``buffered`` between operators ·
    ``delivered`` to the operators that nothing follows. Records change in number on the way
    (selectivity, several readers of one output), so what must balance is every operator.
    """

    arrived: float
    consumed: float
    queued: float
    buffered: float
    delivered: float
    operators: Mapping[str, OperatorTotals]

    @property
    def imbalance(self) -> float:
        """Largest |received − processed − waiting| of an operator, relative to its received."""
        return max(
            abs(o.received - o.processed - o.waiting) / max(o.received, 1e-300)
            for o in self.operators.values()
        )
