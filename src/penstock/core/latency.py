"""Round-trip times between nodes, as a policy sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.core.errors import InputError, unknown

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, eq=False, init=False)
class LatencyMap:
    """Seconds that a packet takes from one node to another and back, for every pair of nodes.

    Round trips, not the one-way delays that are injected to emulate them: two nodes whose inbound
    links are delayed by 25 ms each are 50 ms apart. A node is 0 s from itself, and as far from
    another as that one is from it.

    >>> near = LatencyMap(["a", "b", "c"], [[0, 0.01, 0.05], [0.01, 0, 0.02], [0.05, 0.02, 0]])
    >>> near.between("a", "c"), near.worst(["a", "b"]), near.worst(["a"])
    (0.05, 0.01, 0.0)
    """

    nodes: tuple[str, ...]
    rtt: npt.NDArray[np.float64] = field(repr=False)
    _place: dict[str, int] = field(repr=False)

    def __init__(self, nodes: Iterable[str], rtt: npt.ArrayLike) -> None:
        import numpy as np  # here: most commands have no use for it

        names = tuple(nodes)
        times = np.array(rtt, dtype=np.float64)
        if times.shape != (len(names), len(names)):
            raise InputError(f"round trips of {len(names)} nodes: a matrix of {times.shape}")
        if len(set(names)) < len(names):
            raise InputError(f"a node stands twice in the latency map: {', '.join(names)}")
        if not (np.isfinite(times).all() and (times >= 0).all() and not np.diag(times).any()):
            raise InputError("round trips must be finite and ≥ 0 s, and 0 s from a node to itself")
        if not np.array_equal(times, times.T):
            raise InputError("a round trip takes as long from either end; the matrix is not even")
        times.setflags(write=False)
        object.__setattr__(self, "nodes", names)
        object.__setattr__(self, "rtt", times)
        object.__setattr__(self, "_place", {name: i for i, name in enumerate(names)})

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: str) -> bool:
        return node in self._place

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LatencyMap) or self.nodes != other.nodes:
            return False
        return bool((self.rtt == other.rtt).all())

    def __hash__(self) -> int:
        return hash((self.nodes, self.rtt.tobytes()))

    def rows(self, nodes: Sequence[str]) -> list[int]:
        """Where nodes stand in ``rtt``."""
        try:
            return [self._place[node] for node in nodes]
        except KeyError as error:
            raise unknown("node", error.args[0], self.nodes) from None

    def between(self, one: str, other: str) -> float:
        """Seconds there and back."""
        row, column = self.rows((one, other))
        return float(self.rtt[row, column])

    def worst(self, nodes: Iterable[str]) -> float:
        """The greatest round trip among some nodes, which may be named more than once."""
        rows = self.rows(tuple(dict.fromkeys(nodes)))
        return float(self.rtt[rows][:, rows].max()) if rows else 0.0
