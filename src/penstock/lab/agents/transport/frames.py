"""Frames: a length, a kind and a payload. Everything on a connection is one.

::

    4 bytes   length of the payload, little endian
    1 byte    kind
    n bytes   payload

A payload has an upper bound, a small one before a peer has shown that it knows the secret.
"""

from __future__ import annotations

import asyncio
import struct
from array import array
from enum import IntEnum

HEADER = struct.Struct("<IB")
NUMBERED = struct.Struct("<Q")  # the place of a frame in its channel
RECORDS = struct.Struct("<QI")  # the same, and the number of siblings
MOST_RECORDS = 8192
MOST_BYTES = 128 * 1024  # above MOST_RECORDS ids and above the view of a thousand neighbours
FIRST_BYTES = 1024


class Kind(IntEnum):
    """What a frame is."""

    CHALLENGE = 1
    HELLO = 2
    WELCOME = 3
    RECORDS = 4
    MESSAGE = 5
    DONE = 6
    PING = 7
    PONG = 8
    BYE = 9


class FrameError(Exception):
    """The peer broke the rules in a way that this connection cannot go on after."""


class Malformed(Exception):  # noqa: N818 (what it is, not what went wrong here)
    """The frame cannot be understood; the next one may be."""


def frame(kind: Kind, payload: bytes = b"") -> bytes:
    """A frame as bytes.

    >>> frame(Kind.PING)
    b'\\x00\\x00\\x00\\x00\\x07'
    """
    return HEADER.pack(len(payload), kind) + payload


def records_frame(number: int, siblings: int, ids: bytes) -> bytes:
    """Records: ids of eight bytes each, and how many siblings the receiver has."""
    return frame(Kind.RECORDS, RECORDS.pack(number, siblings) + ids)


def message_frame(number: int, body: bytes) -> bytes:
    """A message of the protocol."""
    return frame(Kind.MESSAGE, NUMBERED.pack(number) + body)


def done_frame(numbers: list[int]) -> bytes:
    """The frames of these numbers need not be sent again."""
    return frame(Kind.DONE, struct.pack(f"<{len(numbers)}Q", *numbers))


def read_records(payload: bytes) -> tuple[int, int, bytes]:
    """Number, siblings and ids of a frame of records."""
    size = len(payload) - RECORDS.size
    if size <= 0 or size % 8 or size > 8 * MOST_RECORDS:
        raise Malformed(f"{len(payload)} bytes are no frame of records")
    number, siblings = RECORDS.unpack_from(payload)
    return number, siblings, payload[RECORDS.size :]


def read_message(payload: bytes) -> tuple[int, bytes]:
    """Number and body of a message."""
    if len(payload) <= NUMBERED.size:
        raise Malformed(f"{len(payload)} bytes are no message")
    return NUMBERED.unpack_from(payload)[0], payload[NUMBERED.size :]


def read_done(payload: bytes) -> list[int]:
    """The numbers that are done."""
    if not payload or len(payload) % 8:
        raise Malformed(f"{len(payload)} bytes are no list of numbers")
    return list(struct.unpack(f"<{len(payload) // 8}Q", payload))


def ids_of(values: range) -> bytes:
    """Ids as bytes.

    >>> len(ids_of(range(3)))
    24
    """
    return array("Q", values).tobytes()


class FrameReader:
    """Reads frames; a read that was given up can be made again, nothing is lost by it."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._header: tuple[int, int] | None = None
        self.most = FIRST_BYTES

    async def read(self) -> tuple[int, bytes]:
        """The next frame: its kind, which may be unknown, and its payload."""
        if self._header is None:
            self._header = HEADER.unpack(await self._reader.readexactly(HEADER.size))
        length, kind = self._header
        if length > self.most:
            raise FrameError(f"a frame of {length} bytes; at most {self.most} are taken")
        payload = await self._reader.readexactly(length) if length else b""
        self._header = None
        return kind, payload
