"""CPU threshold: one CPU level up above a bound, one down below another. [russo21, §VII]"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.errors import InputError
from penstock.core.model import Need, Proposal, Snapshot
from penstock.policies.mead.parameters import LEVELS, levels_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuThreshold:
    """U > ``high``: the next level of CPU; U < ``low``: the level below.    [russo21, §VII]

    U is the share of its allowance that an operator used. It knows no response time; the paper
    lets it decide every 10 s, where MEAD decides every 60 s.
    """

    high: float = 0.7
    low: float = 0.5
    levels: str = LEVELS

    def __post_init__(self) -> None:
        if not 0.0 < self.low < self.high <= 1.0:
            raise InputError(f"cpu-threshold: 0 < low {self.low} < high {self.high} ≤ 1 must hold")
        levels_of("cpu-threshold", self.levels)

    def start(self, seed: int) -> None:
        """Nothing to remember."""

    def decide(self, seen: Snapshot, memory: None) -> tuple[Proposal, None]:
        """The next level up or down, for every operator that needs it."""
        levels = levels_of("cpu-threshold", self.levels)
        needs, words = {}, []
        for name, o in seen.operators.items():
            if o.cpu is None:
                continue
            now = seen.pools[seen.pipeline.operators[name].pool][0].cpu_share
            share = now
            if o.cpu > self.high:
                share = min((level for level in levels if level > now), default=now)
            elif o.cpu < self.low:
                share = max((level for level in levels if level < now), default=now)
            needs[name] = Need(slots=o.parallelism, cpu_share=share)
            words.append(f"{name} {o.cpu:.0%}")
        reason = ", ".join(words) or "no change: CPU not measured"
        return Proposal(
            needs=needs, reason=reason, term="" if needs else "cpu-not-measured"
        ), memory
