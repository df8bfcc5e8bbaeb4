"""Random numbers that are a pure function of their place: no state, the same on every machine.

Only whole numbers and single IEEE operations are used, so no two machines or versions of numpy
can round differently, as they may with ``exp`` or with numpy's own generators. The mixing is that
of ``penstock.decentralized.draws``, which gives numbers in [0, 1) of single places, salted by
numbers instead of a name.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Draws = npt.NDArray[np.uint64]
Whole = npt.NDArray[np.int64]

_STEP = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def draw(seed: int, name: str, first: int, end: int) -> Draws:
    """64 random bits for each place from ``first`` to ``end`` − 1 of a named sequence.

    splitmix64, entered at any place: mix(salt + place · step). [steele14]
    """
    begin = (_salt(seed, name) + first * _STEP) % 2**64
    x = np.arange(end - first, dtype=np.uint64)
    x *= np.uint64(_STEP)
    x += np.uint64(begin)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def below(bound: int | Whole, bits: Draws) -> Whole:
    """Whole numbers from 0 to ``bound`` − 1, evenly, by the upper half of the bits.

    bound · bits / 2^32: for a bound b, no number is more likely than another by over b/2^32.
    """
    scaled = (bits >> _HALF) * np.asarray(bound).astype(np.uint64)
    return (scaled >> _HALF).view(np.int64)


def one_of(bound: int, bits: Draws) -> Whole:
    """As ``below``, by the lower half of the bits, so that both may be asked of one draw."""
    return (((bits & _LOW) * np.uint64(bound)) >> _HALF).view(np.int64)


def unit(bits: Draws) -> npt.NDArray[np.float64]:
    """Numbers from 0 to below 1."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


@lru_cache(maxsize=256)
def _salt(seed: int, name: str) -> int:
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return int.from_bytes(digest[:8], "little")
