"""What an agent is told of itself and its peers when it is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.decentralized.messages import Address
from penstock.lab.agents.transport.wire import Place, read_place

Neighbours = tuple[tuple[Address, Place], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """Who an agent is, and what it needs to join its peers.

    address: its operator and its serial there
    place: where it listens
    secret: what all agents of a run know
    life: which process at its address it is
    creator: who will start it; ``None`` for the first agents of a run
    patience: seconds of silence after which a peer is dialled again
    succs, preds: for a keeper: the keepers next to it, which are always there and always at the
        same place
    """

    address: Address
    place: Place
    secret: bytes
    life: int = 1
    creator: tuple[Address, Place] | None = None
    patience: float = 5.0
    succs: Neighbours = ()
    preds: Neighbours = ()

    def document(self) -> dict[str, Any]:
        """As plain values."""
        creator = self.creator
        return {
            "at": [*self.address, *self.place],
            "secret": self.secret.hex(),
            "life": self.life,
            "creator": None if creator is None else [*creator[0], *creator[1]],
            "patience": self.patience,
            "succs": [[*address, *place] for address, place in self.succs],
            "preds": [[*address, *place] for address, place in self.preds],
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> AgentSetup:
        """From plain values."""
        address, place = read_place(document["at"])
        creator = document["creator"]
        return cls(
            address=address,
            place=place,
            secret=bytes.fromhex(document["secret"]),
            life=document["life"],
            creator=None if creator is None else read_place(creator),
            patience=document["patience"],
            succs=tuple(map(read_place, document["succs"])),
            preds=tuple(map(read_place, document["preds"])),
        )
