"""What an agent beside an executor is told when it is started."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.core.errors import InputError
from penstock.decentralized.policy import Probabilistic
from penstock.lab.agents.protocol.setup import AgentSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """What all agents of a pipeline have in common.

    policy: by which each decides
    period: seconds between two trials of an agent; an executor has to start within it
    window: seconds over which its load is measured, several triggers
    patience: seconds of silence after which a peer is dialled again, longer than Spark takes to
        replace an executor
    arrival: seconds after which an executor that was asked for is no longer waited for
    """

    policy: Probabilistic = field(default_factory=Probabilistic)
    period: float = 20.0
    window: float = 12.0
    patience: float = 30.0
    arrival: float = 60.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.window <= self.period:
            raise InputError(
                f"0 < window {self.window:g} ≤ period {self.period:g} seconds must hold"
            )
        if not (self.patience > 0.0 and self.arrival > 0.0):
            raise InputError(
                f"patience {self.patience:g} and arrival {self.arrival:g} must be above 0 seconds"
            )

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> AgentSettings:
        """From plain values."""
        return cls(**{**document, "policy": Probabilistic(**document["policy"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorAgentSetup:
    """What an agent beside an executor is told when it is started.

    me: who it is
    executor: the one that it stands beside
    account: where that one's load can be read
    driver, key: where and how the executor's driver can be asked
    settings: what all agents of the pipeline have in common
    above, below: whether its operator has others before and after it
    """

    me: AgentSetup
    executor: str
    account: Mapping[str, Any]
    driver: str
    settings: AgentSettings
    key: str | None = None
    above: bool = False
    below: bool = False

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "me": self.me.document(),
            "executor": self.executor,
            "account": dict(self.account),
            "driver": self.driver,
            "settings": self.settings.document(),
            "key": self.key,
            "above": self.above,
            "below": self.below,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ExecutorAgentSetup:
        """From plain values."""
        me = AgentSetup.of(document["me"])
        settings = AgentSettings.of(document["settings"])
        return cls(**{**document, "me": me, "settings": settings})
