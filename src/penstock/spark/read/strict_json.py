"""JSON that nobody vouches for: it has one meaning, or none, and a weight known before."""

from __future__ import annotations

import json
import math
from typing import Any

MOST_DIGITS = 100  # of a number; Spark's have twenty


def weight(text: bytes | bytearray) -> int:
    """About the most memory that a text takes while it is parsed, bytes.

    Measured: an object of one entry takes 190 bytes, a list 64, each further entry or element
    about as much, a key of its own 100. A list of Spark's stages comes to seven times its length.

    >>> weight(b'{"id":7}')
    306
    """
    copies = 2 if text.isascii() else 10  # one wide character widens all of them, twice
    counts = {b"{": 190, b"[": 64, b",": 64, b":": 100}
    return copies * len(text) + sum(text.count(sign) * each for sign, each in counts.items())


def parsed(text: bytes | bytearray) -> Any:
    """The value of a text; ``ValueError`` for what is no JSON, or means two things.

    >>> parsed(b'{"id": 1, "id": 2}')
    Traceback (most recent call last):
    ValueError: the key 'id' twice in one object
    """
    try:
        return json.loads(
            text.decode("utf-8"),
            parse_int=_whole,
            parse_float=_real,
            parse_constant=_constant,
            object_pairs_hook=_unambiguous,
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _real(digits: str) -> float:
    if len(digits) > MOST_DIGITS or not math.isfinite(value := float(digits)):
        raise ValueError(f"{digits[:MOST_DIGITS]} is out of range")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the key {name[:MOST_DIGITS]!r} twice in one object")
            seen.add(name)
    return found
