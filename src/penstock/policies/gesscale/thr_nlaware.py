"""THR-NLAware: one slot more or less by CPU, on the nearest node. [arkian21, V-A]"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.model import Proposal, Snapshot
from penstock.policies.gesscale.moves import PERIOD
from penstock.policies.gesscale.thresholds import HIGH, LOW, Memory, Terms, decided, started


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrNlaware:
    """CPU > ``high``: n + 1; CPU < ``low``: n − 1; nodes by latency.       [arkian21, V-A]

    As ``thr-nlunaware``, but the node to add is the one with the least latency to the others, and
    the slot to remove the one with the greatest.
    """

    high: float = HIGH
    low: float = LOW
    period: float = PERIOD

    def __post_init__(self) -> None:
        self._terms().check("thr-nlaware")

    def start(self, seed: int) -> Memory:
        """No choice made yet."""
        return started(seed)

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """At most one slot more or less for every pool."""
        return decided(self._terms(), seen, memory)

    def _terms(self) -> Terms:
        return Terms(aware=True, high=self.high, low=self.low, period=self.period)
