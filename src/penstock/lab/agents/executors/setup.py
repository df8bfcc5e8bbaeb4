"""What an agent beside an executor is told when it is started."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.core.errors import InputError
from penstock.decentralized.messages import Address
from penstock.decentralized.policy import Probabilistic
from penstock.lab.agents.transport.wire import Place, read_place

Neighbours = tuple[tuple[Address, Place], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """What all agents of a pipeline have in common.

    ``policy`` by which each decides · ``period`` seconds between two trials of an agent; an
    executor has to start within it · ``window`` seconds over which its load is measured, several
    triggers · ``patience`` seconds of silence after which a peer is dialled again, longer than
    Spark takes to replace an executor · ``arrival`` seconds after which an executor that was asked
    for is no longer waited for.
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
class Setup:
    """Who it is, which executor it stands beside, and what it needs to join.

    ``account`` where the executor's load can be read, ``driver`` and ``key`` where and how its
    driver can be asked · ``above``, ``below`` whether its operator has others before and after it ·
    ``succs``, ``preds`` for a keeper: the keepers next to it, with which it begins · the rest as in
    ``penstock.lab.agents.pipeline.setup.Setup``.
    """

    address: Address
    place: Place
    executor: str
    account: Mapping[str, Any]
    driver: str
    settings: AgentSettings
    secret: bytes
    key: str | None = None
    above: bool = False
    below: bool = False
    life: int = 1
    creator: tuple[Address, Place] | None = None
    succs: Neighbours = ()
    preds: Neighbours = ()

    @property
    def patience(self) -> float:
        """Seconds of silence after which a peer is dialled again."""
        return self.settings.patience

    def document(self, listening: int) -> dict[str, Any]:
        """As plain values, with the descriptor of the socket to listen on."""
        creator = self.creator
        return {
            "me": [*self.address, *self.place],
            "executor": self.executor,
            "account": dict(self.account),
            "driver": self.driver,
            "key": self.key,
            "settings": self.settings.document(),
            "secret": self.secret.hex(),
            "above": self.above,
            "below": self.below,
            "life": self.life,
            "creator": None if creator is None else [*creator[0], *creator[1]],
            "succs": [[*address, *place] for address, place in self.succs],
            "preds": [[*address, *place] for address, place in self.preds],
            "listening": listening,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> tuple[Setup, int]:
        """A set-up and the descriptor from plain values."""
        given = {**document}
        address, place = read_place(given.pop("me"))
        listening: int = given.pop("listening")
        creator = given["creator"]
        given["creator"] = None if creator is None else read_place(creator)
        for name in ("succs", "preds"):
            given[name] = tuple(map(read_place, given[name]))
        given["secret"] = bytes.fromhex(given["secret"])
        given["settings"] = AgentSettings.of(given["settings"])
        return cls(address=address, place=place, **given), listening
