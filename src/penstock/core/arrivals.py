"""A window of single arrivals, as a policy sees it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, eq=False, init=False)
class Arrivals:
    """Seconds between the newest arrivals, oldest first; two windows are equal by ``digest``.

    ``each`` how many records one arrival stands for, where they come too fast to keep every one.
    A journal keeps the digest and how many there were; the values lie beside it.

    >>> Arrivals([0.5, 0.25]) == Arrivals([0.5, 0.25])
    True
    """

    intervals: npt.NDArray[np.float64] = field(repr=False)
    digest: str
    each: float = 1.0

    def __init__(self, intervals: npt.ArrayLike, each: float = 1.0) -> None:
        import numpy as np  # here: most commands have no use for it

        values = np.array(intervals, dtype=np.float64).reshape(-1)
        values.setflags(write=False)
        object.__setattr__(self, "intervals", values)
        object.__setattr__(self, "each", each)
        digest = hashlib.blake2b(values.tobytes(), digest_size=16)
        if each != 1.0:
            digest.update(repr(each).encode())
        object.__setattr__(self, "digest", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.intervals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arrivals) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def last(self, count: int) -> Arrivals:
        """The newest of them."""
        return self if count >= len(self) else Arrivals(self.intervals[-count:], self.each)
