"""What instances say to each other. [belkhiria19, §3.1 and §4.2]

Channels between two instances are reliable and first-in-first-out; nothing else is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Role = Literal["successor", "predecessor"]
"""What the sender of a message is to its receiver."""


class Address(NamedTuple):
    """Where an instance lives; given by the platform, never given twice.

    Serial 0 is the operator's keeper: its first instance, which never leaves.

    >>> print(Address("B", 0), Address("B", 2), Address("B", 0).keeper)
    B0 B2 True
    """

    operator: str
    serial: int

    @property
    def keeper(self) -> bool:
        """Whether it is the instance that never leaves."""
        return self.serial == 0

    def __str__(self) -> str:
        return f"{self.operator}{self.serial}"


Addresses = frozenset[Address]
NOBODY: Addresses = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplication:
    """“I am your ``role``; ``new`` instances of my operator are coming.”"""

    role: Role
    new: Addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """“I am your ``role``; I am leaving.”"""

    role: Role


@dataclass(frozen=True, slots=True)
class DuplicationAck:
    """“I know your new siblings.”"""


@dataclass(frozen=True, slots=True)
class DeletionAck:
    """“I know that you leave; nothing comes from me after this.”"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """“All neighbours know you: begin. These are mine.”"""

    succs: Addresses
    preds: Addresses


Message = Duplication | Deletion | DuplicationAck | DeletionAck | Start
Sends = tuple[tuple[Address, Message], ...]
"""Receivers and messages, in the order they are sent."""

DUPLICATION_ACK, DELETION_ACK = DuplicationAck(), DeletionAck()
