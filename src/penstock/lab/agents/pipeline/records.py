"""Records: what becomes of them, and which have come.

A record is its id, and what becomes of it depends on that alone. So every record that should come
out of a pipeline is known from the number of those that went in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from penstock.lab.agents.pipeline.operators import Operator, Pipeline
from penstock.lab.agents.transport.frames import ids_of

if TYPE_CHECKING:  # an agent that changes no record starts without numpy
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.uint64]

PAGE = 1 << 16
CHUNK = 1 << 18
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def emitted(first: int, after: int, serial: int, sources: int) -> bytes:
    """The ids that a source gives to its records ``first`` up to ``after``: all are different.

    >>> emitted(0, 2, 1, 3) == ids_of(range(1, 7, 3))
    True
    """
    return ids_of(range(first * sources + serial, after * sources + serial, sources))


def transformed(ids: bytes, operator: Operator) -> bytes:
    """What becomes of records: each ⌊s⌋ records, and one more by a hash of it; s selectivity.

    >>> one = ids_of(range(1000))
    >>> transformed(one, Operator(name="A")) == one
    True
    >>> 400 < len(transformed(one, Operator(name="A", selectivity=0.5))) // 8 < 600
    True
    >>> len(transformed(one, Operator(name="A", selectivity=2.0))) // 8
    2000
    """
    if operator.selectivity == 1.0:
        return ids
    import numpy as np

    whole = math.floor(operator.selectivity)
    values = np.frombuffer(ids, dtype=np.uint64)
    more = _draws(values, operator.name) < operator.selectivity - whole
    if operator.copies == 1:
        return values[more].tobytes()
    made = values[:, None] * np.uint64(operator.copies) + np.arange(
        operator.copies, dtype=np.uint64
    )
    kept = np.ones(made.shape, dtype=bool)
    if whole < operator.copies:
        kept[:, whole] = more
    return made[kept].tobytes()


def _draws(values: Ids, name: str) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for each: splitmix64, another sequence for every operator."""
    import numpy as np

    salt = int.from_bytes(name.encode()[-8:], "little") * _STEP % 2**64
    with np.errstate(over="ignore"):
        z = values * np.uint64(_STEP) + np.uint64(salt)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Seen:
    """Which ids have come: a bit map in pages, so that any ids may come in any order.

    >>> seen = Seen()
    >>> seen.add(ids_of(range(5))), seen.add(ids_of(range(3, 8)))
    (5, 3)
    >>> seen.distinct, seen.again
    (8, 2)
    """

    def __init__(self) -> None:
        self._pages: dict[int, npt.NDArray[np.bool_]] = {}
        self.distinct = 0
        self.again = 0

    def add(self, ids: bytes) -> int:
        """Note ids; how many of them are new."""
        import numpy as np

        new = 0
        for number, places in _by_page(ids):
            page = self._pages.setdefault(number, np.zeros(PAGE, dtype=bool))
            different = np.unique(places)
            new += int(np.count_nonzero(~page[different]))
            page[different] = True
        self.distinct += new
        self.again += len(ids) // 8 - new
        return new

    def count(self, ids: bytes) -> int:
        """How many of these, all different, have come."""
        import numpy as np

        return sum(
            int(np.count_nonzero(self._pages[number][places]))
            for number, places in _by_page(ids)
            if number in self._pages
        )


def _by_page(ids: bytes) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield the number of each page that ids are on, and their places there."""
    import numpy as np

    values = np.frombuffer(ids, dtype=np.uint64)
    numbers = values // PAGE
    for number in np.unique(numbers).tolist():
        yield number, (values[numbers == number] % PAGE).astype(np.int64)


def audit(seen: Seen, pipeline: Pipeline, sent: Mapping[int, int]) -> dict[str, int]:
    """What came against what should have; ``sent`` records by the serial of their source.

    ``expected`` · ``delivered`` those of them that came · ``lost`` those that did not ·
    ``unexpected`` others that came · ``duplicated`` that came again, and were dropped.
    """
    expected = delivered = 0
    for serial, records in sent.items():
        for first in range(0, records, CHUNK):
            ids = emitted(first, min(first + CHUNK, records), serial, pipeline.sources)
            for operator in pipeline.operators:
                ids = transformed(ids, operator)
            expected += len(ids) // 8
            delivered += seen.count(ids)
    return {
        "expected": expected,
        "delivered": delivered,
        "lost": expected - delivered,
        "unexpected": seen.distinct - delivered,
        "duplicated": seen.again,
    }
