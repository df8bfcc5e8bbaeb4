"""THR-NLUnaware: one slot more or less by CPU, on any node. [arkian21, V-A]"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.model import Proposal, Snapshot
from penstock.policies.gesscale.moves import PERIOD
from penstock.policies.gesscale.thresholds import HIGH, LOW, Memory, Terms, decided, started


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrNlunaware:
    """CPU > ``high``: n + 1; CPU < ``low``: n − 1; nodes at random.        [arkian21, V-A]

    CPU is the mean share of their allowance that the slots of a pool used. It looks every
    ``period`` seconds.
    """

    high: float = HIGH
    low: float = LOW
    period: float = PERIOD

    def __post_init__(self) -> None:
        self._terms().check("thr-nlunaware")

    def start(self, seed: int) -> Memory:
        """No choice made yet."""
        return started(seed)

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """At most one slot more or less for every pool."""
        return decided(self._terms(), seen, memory)

    def _terms(self) -> Terms:
        return Terms(aware=False, high=self.high, low=self.low, period=self.period)
