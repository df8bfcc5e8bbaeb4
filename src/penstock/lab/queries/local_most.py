"""A filter that runs in Spark's Python workers; light, because each of them imports it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def most_of_its_window(windows: pa.Array, counts: pa.Array) -> pa.Array:
    """Whether no other of the given rows of the same window has a higher count.

    >>> most_of_its_window(pa.array([0, 0, 60, 60]), pa.array([3, 5, 1, 1])).to_pylist()
    [False, True, True, True]
    """
    if not len(windows):
        return pa.array([], pa.bool_())
    found, place = np.unique(windows.cast(pa.int64()).to_numpy(), return_inverse=True)
    values = counts.to_numpy()
    most = np.zeros(len(found), dtype=values.dtype)
    np.maximum.at(most, place, values)
    return pa.array(values == most[place])
