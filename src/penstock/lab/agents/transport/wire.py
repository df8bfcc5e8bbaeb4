"""Messages of the protocol as bytes, with the places of the instances they name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from penstock.decentralized.messages import (
    DELETION_ACK,
    DUPLICATION_ACK,
    Address,
    Deletion,
    DeletionAck,
    Duplication,
    DuplicationAck,
    Message,
    Role,
    Start,
)
from penstock.lab.agents.transport.frames import Malformed


class Place(NamedTuple):
    """Where an instance listens."""

    host: str
    port: int


Places = dict[Address, Place]
LONGEST_NAME = 40


def read_place(document: Any) -> tuple[Address, Place]:
    """An instance and its place from a plain value, checked.

    >>> read_place(["A", 3, "127.0.0.1", 4000])
    (Address(operator='A', serial=3), Place(host='127.0.0.1', port=4000))
    """
    match document:
        case [str(operator), int(serial), str(host), int(port)] if (
            0 < len(operator) <= LONGEST_NAME
            and 0 <= serial < 2**31
            and 0 < len(host) <= LONGEST_NAME
            and 0 < port < 2**16
        ):
            return Address(operator, serial), Place(host, port)
    raise Malformed(f"{document!r:.60} is no instance")


def read_address(document: Any) -> Address:
    """An address, from a plain value of our own.

    >>> read_address(["A", 3])
    Address(operator='A', serial=3)
    """
    return Address(str(document[0]), int(document[1]))


def encode(message: Message, places: Mapping[Address, Place]) -> bytes:
    """A message as bytes."""

    def all_of(addresses: Iterable[Address]) -> list[list[Any]]:
        return [[*address, *places[address]] for address in sorted(addresses)]

    match message:
        case Duplication(role=role, new=new):
            document: list[Any] = ["duplication", role, all_of(new)]
        case Deletion(role=role):
            document = ["deletion", role]
        case DuplicationAck():
            document = ["duplication_ack"]
        case DeletionAck():
            document = ["deletion_ack"]
        case Start(succs=succs, preds=preds):
            document = ["start", all_of(succs), all_of(preds)]
    return json.dumps(document, separators=(",", ":")).encode()


def decode(body: bytes) -> tuple[Message, Places]:
    """A message and the places it names, or ``Malformed``."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise Malformed("a message that is no JSON") from None
    match document:
        case ["duplication", str(role), list(new)] if new:
            places = _places(new)
            return Duplication(role=_role(role), new=frozenset(places)), places
        case ["deletion", str(role)]:
            return Deletion(role=_role(role)), {}
        case ["duplication_ack"]:
            return DUPLICATION_ACK, {}
        case ["deletion_ack"]:
            return DELETION_ACK, {}
        case ["start", list(succs), list(preds)]:
            after, before = _places(succs), _places(preds)
            return Start(succs=frozenset(after), preds=frozenset(before)), after | before
    raise Malformed(f"{document!r:.60} is no message")


def _role(text: str) -> Role:
    match text:
        case "successor" | "predecessor":
            return text
    raise Malformed(f"{text!r:.40} is no role")


def _places(documents: list[Any]) -> Places:
    return dict(map(read_place, documents))
