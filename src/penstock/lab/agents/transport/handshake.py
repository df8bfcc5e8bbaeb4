"""Who may join: both sides show that they know the run's secret, without sending it.

::

    listener → dialler   CHALLENGE   n₁
    dialler → listener   HELLO       n₂ · HMAC(secret, "hello" n₁ n₂ body) · body
    listener → dialler   WELCOME     HMAC(secret, "welcome" n₂ n₁ body) · body

n₁ and n₂ are 32 random bytes of this connection, so nothing recorded can be played again. The body
of a hello says who dials whom. What follows on the connection is neither encrypted nor signed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from typing import Any, Literal

from penstock.decentralized.messages import Address, Role
from penstock.lab.agents.transport.frames import FrameError, Malformed
from penstock.lab.agents.transport.wire import Place, read_place

NONCE = 32
MAC = hashlib.sha256().digest_size
Verdict = Literal["welcome", "gone", "stranger"]
"""What a dialler is told: come in; you were given up, end; you mean somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Who dials whom.

    ``life`` which process at this address, 1 for the first · ``channel`` numbers the channels of
    that process to this receiver · ``role`` what it is to the receiver; ``None`` neither.
    """

    sender: Address
    place: Place
    life: int
    channel: int
    role: Role | None
    receiver: Address


def nonce() -> bytes:
    """Random bytes for one connection."""
    return secrets.token_bytes(NONCE)


def hello(secret: bytes, challenge: bytes, mine: bytes, what: Hello) -> bytes:
    """The payload of a hello."""
    body = json.dumps(
        [
            [*what.sender, *what.place],
            what.life,
            what.channel,
            what.role,
            list(what.receiver),
        ]
    ).encode()
    return mine + _mac(secret, b"hello", challenge, mine, body) + body


def read_hello(secret: bytes, challenge: bytes, payload: bytes) -> tuple[bytes, Hello]:
    """The dialler's random bytes and who it is; ``FrameError`` if it does not know the secret."""
    theirs, body = payload[:NONCE], payload[NONCE + MAC :]
    _check(payload[NONCE : NONCE + MAC], _mac(secret, b"hello", challenge, theirs, body))
    match _parsed(body):
        case [list(place), int(life), int(channel), role, [str(operator), int(serial)]] if role in (
            "successor",
            "predecessor",
            None,
        ):
            sender, where = _placed(place)
            return theirs, Hello(
                sender=sender,
                place=where,
                life=life,
                channel=channel,
                role=role,
                receiver=Address(operator, serial),
            )
    raise FrameError("a hello that says nothing")


def welcome(secret: bytes, challenge: bytes, theirs: bytes, verdict: Verdict, life: int) -> bytes:
    """The payload of a welcome; ``life`` is the listener's."""
    body = json.dumps([verdict, life]).encode()
    return _mac(secret, b"welcome", theirs, challenge, body) + body


def read_welcome(
    secret: bytes, challenge: bytes, mine: bytes, payload: bytes
) -> tuple[Verdict, int]:
    """The verdict and the listener's life; ``FrameError`` if it does not know the secret."""
    body = payload[MAC:]
    _check(payload[:MAC], _mac(secret, b"welcome", mine, challenge, body))
    match _parsed(body):
        case [("welcome" | "gone" | "stranger") as verdict, int(life)]:
            return verdict, life
    raise FrameError("a welcome that says nothing")


def _mac(secret: bytes, what: bytes, first: bytes, second: bytes, body: bytes) -> bytes:
    # All but the body have a fixed length, so no two inputs run together.
    return hmac.digest(secret, what + first + second + body, "sha256")


def _check(given: bytes, right: bytes) -> None:
    if not hmac.compare_digest(given, right):
        raise FrameError("the peer does not know the secret of this run")


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise FrameError("a greeting that is no JSON") from None


def _placed(document: list[Any]) -> tuple[Address, Place]:
    try:
        return read_place(document)
    except Malformed as problem:
        raise FrameError(str(problem)) from None
