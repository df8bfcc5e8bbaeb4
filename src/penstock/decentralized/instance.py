"""What one instance knows: itself and its neighbours, nothing global."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import InputError
from penstock.decentralized.messages import NOBODY, Address, Addresses, Start

Phase = Literal["inactive", "active", "duplicating", "leaving", "terminated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One instance of an operator, as a value.

    phase: *inactive* created and not started yet, *duplicating* and *leaving* while it waits for
        acknowledgements
    succs, preds: its view, the neighbours it knows; while inactive, those announced so far
        (``succsToAdd`` and ``predsToAdd`` of the paper)
    gone: neighbours that left while it was inactive (``succsToDelete``, ``predsToDelete``)
    awaited: acknowledgements still missing
    newborn, start: the siblings it will start when none is missing, and what it will tell them
    unaware: who has not acknowledged them yet
    """

    address: Address
    phase: Phase = "active"
    succs: Addresses = NOBODY
    preds: Addresses = NOBODY
    gone: Addresses = NOBODY
    awaited: int = 0
    newborn: tuple[Address, ...] = ()
    start: Start | None = None
    unaware: Addresses = NOBODY

    @property
    def neighbours(self) -> int:
        """How many neighbours it knows."""
        return len(self.succs) + len(self.preds)


def siblings_of(address: Address, neighbour: Instance) -> int:
    """n_t: how many instances an operator has, by the view of a neighbour. [belkhiria19, §4.1.1]

    A predecessor shares its records out among them, so it knows, and it can write the number on
    every record it sends; no message of its own is needed. At the head of a pipeline, where
    nobody comes before, a successor knows it as well.

    >>> system = wired({"A": 1, "B": 3}, [("A", "B")])
    >>> siblings_of(Address("B", 1), system[Address("A", 0)])
    3
    """
    view = neighbour.succs | neighbour.preds
    return sum(other.operator == address.operator for other in view)


def wired(sizes: Mapping[str, int], edges: Iterable[tuple[str, str]]) -> dict[Address, Instance]:
    """Every operator with so many instances, each knowing all of its neighbours.

    >>> [str(address) for address in wired({"A": 1, "B": 2}, [("A", "B")])]
    ['A0', 'B0', 'B1']
    """
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"operator {name} has {size} instances; it needs at least its keeper")
    members = {n: frozenset(Address(n, i) for i in range(size)) for n, size in sizes.items()}
    succs = dict.fromkeys(sizes, NOBODY)
    preds = dict.fromkeys(sizes, NOBODY)
    for a, b in edges:
        succs[a] |= members[b]
        preds[b] |= members[a]
    return {
        address: Instance(address=address, succs=succs[name], preds=preds[name])
        for name in sizes
        for address in sorted(members[name])
    }
