"""Random numbers that are a pure function of their place: the same whoever asks, in any order.

Two engines that ask for the draw of the same instance at the same step get the same number. The
mixing is that of ``penstock.workloads.draws``, but places here are picked one by one and salted by
numbers; there they are whole ranges of a sequence that has a name, and give 64 bits each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Salts = npt.NDArray[np.uint64]

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = 2**64 - 1


def salt(*numbers: int) -> int:
    """One number for several, such as a seed and the number of an operator."""
    mixed = 0
    for number in numbers:
        mixed = _mix(mixed + number * _STEP + _STEP)
    return mixed


def draw(salt: int, place: int) -> float:
    """A number in [0, 1): splitmix64, entered at any place. [steele14]

    >>> 0.0 <= draw(salt(1, 2), 7) < 1.0
    True
    """
    return (_mix(salt + place * _STEP) >> 11) * 2.0**-53


def draws(salts: int | Salts, places: Whole) -> Floats:
    """The same of many places at once, each with its own salt or all with one.

    >>> draws(5, np.array([3])).tolist() == [draw(5, 3)]
    True
    """
    x = places.astype(np.uint64)
    x *= np.uint64(_STEP)
    x += np.uint64(salts) if isinstance(salts, int) else salts
    x ^= x >> np.uint64(30)
    x *= np.uint64(_FIRST)
    x ^= x >> np.uint64(27)
    x *= np.uint64(_SECOND)
    x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(x: int) -> int:
    x &= _MASK
    x = (x ^ x >> 30) * _FIRST & _MASK
    x = (x ^ x >> 27) * _SECOND & _MASK
    return x ^ x >> 31
