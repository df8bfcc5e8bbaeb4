"""What a run of agents came to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.lab.agents.processes.host import AgentAction


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSample:
    """A look at a run: ``offered`` and ``delivered`` in records/s, ``instances`` by operator."""

    time: float
    offered: float
    delivered: float
    instances: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRunResult:
    """A run from start to end.

    emitted: records that the sources sent
    expected: what the operators make of them
    delivered: different ones at the sink
    lost: expected and not delivered
    duplicated: those that came to the sink again, and were dropped
    unexpected: those that nobody sent
    counts: what all instances together have counted
    seconds: from the start until the last record was done
    """

    emitted: int
    expected: int
    delivered: int
    lost: int
    duplicated: int
    unexpected: int
    seconds: float
    counts: Mapping[str, int]
    samples: tuple[PipelineSample, ...]
    actions: tuple[AgentAction, ...]

    @property
    def exact(self) -> bool:
        """Whether every record was delivered, and nothing else."""
        return self.lost == 0 and self.unexpected == 0

    @property
    def duplications(self) -> int:
        """How often an instance created others."""
        return sum(action.what.startswith("duplicates") for action in self.actions)

    @property
    def deletions(self) -> int:
        """How often an instance left."""
        return sum(action.what == "leaves" for action in self.actions)

    def span(self, operator: str) -> tuple[int, int]:
        """The fewest and the most instances that an operator had."""
        sizes = [sample.instances[operator] for sample in self.samples] or [0]
        return min(sizes), max(sizes)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {
            **dataclasses.asdict(self),
            "exact": self.exact,
            "duplications": self.duplications,
            "deletions": self.deletions,
        }
