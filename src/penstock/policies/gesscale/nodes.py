"""Nodes: where to add slots and which to remove, by latency or at random. [arkian21, IV-E]"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.model import Snapshot
from penstock.network.placement import Draws, Step, drawn, leaving, ranked


class Nodes:
    """The free nodes of one decision; each is handed out once.

    ``aware`` chooses by the round trips between nodes, else at random. Where an engine tells no
    round trips (an unaware policy: no nodes), which to use is left to it.
    """

    def __init__(self, seen: Snapshot, draws: Draws, *, aware: bool) -> None:
        self._seen = seen
        self._aware = aware
        self._free = list(seen.free_nodes)
        self.draws = draws

    def candidates(self, pool: str) -> tuple[Step, ...] | None:
        """Free nodes for one more slot of a pool, best first; ``None``: the engine chooses."""
        rtt = self._seen.rtt
        if self._aware:
            if rtt is None:
                return None
            used = [node for node in nodes_of(self._seen, pool) if node in rtt]
            return ranked(rtt, used, [node for node in self._free if node in rtt])
        if rtt is None and not self._seen.free_nodes:
            return None
        return self._drawn(self._free)

    @property
    def none(self) -> str:
        """Why there is no candidate."""
        return "no free node is in the latency map" if self._free else "no node is free"

    def take(self, node: str) -> None:
        """From now on it is not free."""
        self._free.remove(node)

    def leavers(self, pool: str) -> Iterator[Step] | None:
        """Slots of a pool in the order in which to remove them; ``None``: the engine chooses."""
        rtt, slots = self._seen.rtt, self._seen.pools[pool]
        if self._aware:
            if rtt is None or unknown_nodes(self._seen, pool):
                return None
            return leaving(rtt, [(slot.id, slot.node) for slot in slots])
        if rtt is None and not self._seen.free_nodes:
            return None
        return iter(self._drawn([slot.id for slot in slots])[:-1])

    def _drawn(self, names: list[str]) -> tuple[Step, ...]:
        chosen, self.draws = drawn(names, self.draws)
        return tuple(Step(name=name) for name in chosen)


def nodes_of(seen: Snapshot, pool: str) -> list[str]:
    """The nodes that the slots of a pool are on."""
    return [slot.node for slot in seen.pools[pool]]


def unknown_nodes(seen: Snapshot, pool: str) -> tuple[str, ...]:
    """Nodes of a pool that the latency map does not know; none where there is no map."""
    if seen.rtt is None:
        return ()
    return tuple(dict.fromkeys(n for n in nodes_of(seen, pool) if n not in seen.rtt))


def delay_of(seen: Snapshot, pool: str) -> float | None:
    """NDmax, the greatest round trip among a pool's nodes; 0 without a map, ``None``: not known."""
    if seen.rtt is None:
        return 0.0
    if unknown_nodes(seen, pool):
        return None
    return seen.rtt.worst(nodes_of(seen, pool))


def farther(before: float | None, after: float | None) -> str:
    """How the greatest round trip changes, for a person.

    >>> farther(0.14, 0.18)
    ' (+40 ms → 180 ms at most)'
    """
    if before is None or after is None:
        return ""
    return f" ({(after - before) * 1e3:+.0f} ms → {after * 1e3:.0f} ms at most)"
