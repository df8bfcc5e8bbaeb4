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

    offered: records that came in that second
    consumed: records that the sources took
    delivered: records that reached the operators that nothing follows
    lag: records waiting in front of the sources at its end
    queue_latency: seconds that the record at the head of the queue has waited at its end
    latency: mean seconds from arrival to delivery
    down: share of the second in which the job stood still
    cpu: mean share of their CPU that all slots used
    expired: records that the log in front of the sources dropped
    slots: by pool

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
    cpu: Floats
    expired: Floats
    slots: Mapping[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTotals:
    """Records that came to an operator, that it worked off, that still wait in front, and that
    expired there; results that a window ``holds`` until it fires; records of ``state``.
    """

    received: float
    processed: float
    waiting: float
    expired: float = 0.0
    holds: float = 0.0
    state: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Where all records are.

    ``arrived`` at the sources = ``consumed`` + ``queued`` + ``expired`` · ``buffered`` between
    operators · ``delivered`` to the operators that nothing follows. Records change in number on
    the way (selectivity, several readers of one output), so what must balance is every operator.
    """

    arrived: float
    consumed: float
    queued: float
    expired: float
    buffered: float
    delivered: float
    operators: Mapping[str, OperatorTotals]

    @property
    def imbalance(self) -> float:
        """Largest |received − processed − waiting − expired| of an operator, relative."""
        return max(
            abs(o.received - o.processed - o.waiting - o.expired) / max(o.received, 1e-300)
            for o in self.operators.values()
        )
