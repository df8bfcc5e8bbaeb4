"""MDL-NLUnaware: Gesscale without latencies: slots in proportion, any node. [arkian21, V-A]"""

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
class MdlNlunaware:
    """Gesscale with MST = α·n and nodes chosen at random.             [arkian21, eq. 2, V-A]

    Parameters as of ``gesscale``.
    """

    period: float = PERIOD
    head_room: float = HEAD_ROOM
    backpressured: float = HELD_BACK
    gain_per_price: float = 0.0

    def __post_init__(self) -> None:
        self._terms().check("mdl-nlunaware")

    def start(self, seed: int) -> Memory:
        """Nothing measured yet."""
        return started(seed)

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """One slot more for what is at its limit, some less for what has room."""
        return decided(self._terms(), seen, memory)

    def figures(self, memory: Memory) -> dict[str, float]:
        """``measurements``, and the ``model_error`` of the model."""
        return figures_of(memory["pools"].values())

    def _terms(self) -> Terms:
        return Terms(
            aware=False,
            parameters=1,
            period=self.period,
            head_room=self.head_room,
            backpressured=self.backpressured,
            gain_per_price=self.gain_per_price,
        )
