"""What the operators of the geo jobs do to rows, in Spark's Python workers.

Light, because each of them imports it. The work is done record by record on purpose: a loop over
vectors would cost as much for 16 records as for 1,000, and an operator whose cost does not grow
with its records cannot be overloaded by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]

MASK = 2**61 - 1

ATTRACTIONS: Mapping[str, tuple[float, float]] = {  # longitude and latitude, degrees
    "Empire State Building": (-73.98566, 40.74844),
    "Metropolitan Museum of Art": (-73.96323, 40.77944),
    "Statue of Liberty": (-74.04450, 40.68925),
}
# Metres per degree on a sphere of 6,371 km, of longitude at 40.75° north: written out, so that no
# two machines can differ in the last digit of a cosine.
EAST, NORTH = 84_237.4, 111_194.9


def fibonacci(first: int, second: int, additions: int) -> int:
    """Number ``additions`` of a Fibonacci sequence that begins with two numbers, modulo 2^61.

    >>> [fibonacci(0, 1, n) for n in range(8)]
    [0, 1, 1, 2, 3, 5, 8, 13]
    """
    for _ in range(additions):
        first, second = second, (first + second) & MASK
    return first


def fibonaccis(additions: int) -> Callable[[pa.Array, pa.Array], pa.Array]:
    """One sequence per record, from two of its columns; the second number is one more than that
    column says, so that none is all 0.
    """

    def work(firsts: pa.Array, seconds: pa.Array) -> pa.Array:
        pairs = zip(firsts.to_pylist(), seconds.to_pylist(), strict=True)
        return pa.array([fibonacci(a, b + 1, additions) for a, b in pairs], pa.int64())

    return work


def nearest(lon: Floats, lat: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """The nearest of ``ATTRACTIONS`` to each place, by its position there, and the metres to it.

    d = √((Δlon · 84,237.4)² + (Δlat · 111,194.9)²): straight lines on a flat map.
    """
    places = np.array(list(ATTRACTIONS.values()))
    east = (lon[:, None] - places[:, 0]) * EAST
    north = (lat[:, None] - places[:, 1]) * NORTH
    metres = np.sqrt(east * east + north * north)
    which = metres.argmin(axis=1)
    return which, metres[np.arange(len(which)), which]


def nearest_of(additions: int) -> Callable[[pa.Array, pa.Array, pa.Array], pa.Array]:
    """The name of the attraction nearest to each ride, and the metres to it.

    ``additions`` more work per ride; what it comes to is not part of the result.
    """
    more = fibonaccis(additions)

    def work(ids: pa.Array, lon: pa.Array, lat: pa.Array) -> pa.Array:
        which, metres = nearest(lon.to_numpy(), lat.to_numpy())
        more(ids, ids)
        names = pa.array(list(ATTRACTIONS)).take(pa.array(which))
        return pa.StructArray.from_arrays(
            [names, pa.array(metres)], names=["attraction", "distance"]
        )

    return work
