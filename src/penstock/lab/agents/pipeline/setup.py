"""What an instance is told when it is created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.decentralized.messages import Address
from penstock.lab.agents.pipeline.operators import Pipeline
from penstock.lab.agents.transport.wire import Place, read_place


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Who it is, what it is part of, and what it needs to join.

    ``life`` which process at this address it is · ``creator`` who will start it; ``None`` for the
    first instances of a run · ``patience`` seconds of silence after which a peer is dialled again ·
    ``succs``, ``preds`` for a keeper's next process: the keepers next to it, which are always there
    and always at the same place.
    """

    address: Address
    place: Place
    pipeline: Pipeline
    secret: bytes
    seed: int = 0
    life: int = 1
    creator: tuple[Address, Place] | None = None
    patience: float = 5.0
    succs: tuple[tuple[Address, Place], ...] = ()
    preds: tuple[tuple[Address, Place], ...] = ()

    def document(self, listening: int) -> dict[str, Any]:
        """As plain values, with the descriptor of the socket to listen on."""
        creator = self.creator
        return {
            "me": [*self.address, *self.place],
            "pipeline": self.pipeline.document(),
            "secret": self.secret.hex(),
            "seed": self.seed,
            "life": self.life,
            "creator": None if creator is None else [*creator[0], *creator[1]],
            "patience": self.patience,
            "succs": [[*address, *place] for address, place in self.succs],
            "preds": [[*address, *place] for address, place in self.preds],
            "listening": listening,
        }

    @classmethod
    def of(cls, document: dict[str, Any]) -> tuple[Setup, int]:
        """A set-up and the descriptor from plain values."""
        address, place = read_place(document["me"])
        creator = document["creator"]
        setup = cls(
            address=address,
            place=place,
            pipeline=Pipeline.of(document["pipeline"]),
            secret=bytes.fromhex(document["secret"]),
            seed=document["seed"],
            life=document["life"],
            creator=None if creator is None else read_place(creator),
            patience=document["patience"],
            succs=tuple(map(read_place, document["succs"])),
            preds=tuple(map(read_place, document["preds"])),
        )
        return setup, document["listening"]
