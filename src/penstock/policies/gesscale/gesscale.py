"""Gesscale: scale by a model of throughput over slots and network delay. [arkian21]"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.model import Proposal, Snapshot
from penstock.policies.gesscale.calibration import figures_of
from penstock.policies.gesscale.moves import PERIOD
from penstock.policies.gesscale.sustained import (
    HEAD_ROOM,
    HELD_BACK,
    Memory,
    Terms,
    decided,
    started,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gesscale:
    """MST = α·n^β − γ·NDmax; n + 1 at the limit, n − k where MST(n − k) suffices. [arkian21]

    n slots · NDmax greatest round trip between their nodes, seconds · α, β, γ fitted to what was
    measured at the limit, in stages. At its limit is what holds up all operators above it: they
    are back-pressured more than ``backpressured`` of their time and it is not. It gets one slot
    more, on the free node that adds the least latency. Slots are removed, those that add most
    latency first, while MST(n − 1) ≥ input and (MST(n) − throughput) / MST(n) ≥ ``head_room``.

    It looks every ``period`` seconds. With ``gain_per_price`` above 0 the node that gains most
    records/s per price is taken, and none that gains less than that.

    >>> Gesscale().head_room, Gesscale().period
    (0.3, 60.0)
    """

    period: float = PERIOD
    head_room: float = HEAD_ROOM
    backpressured: float = HELD_BACK
    gain_per_price: float = 0.0

    def __post_init__(self) -> None:
        self._terms().check("gesscale")

    def start(self, seed: int) -> Memory:
        """Nothing measured yet."""
        return started(seed)

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """One slot more for what is at its limit, some less for what has room."""
        return decided(self._terms(), seen, memory)

    def figures(self, memory: Memory) -> dict[str, float]:
        """``measurements``, and the ``model_error`` of the fully calibrated model."""
        return figures_of(memory["pools"].values())

    def _terms(self) -> Terms:
        return Terms(
            aware=True,
            parameters=3,
            period=self.period,
            head_room=self.head_room,
            backpressured=self.backpressured,
            gain_per_price=self.gain_per_price,
        )
