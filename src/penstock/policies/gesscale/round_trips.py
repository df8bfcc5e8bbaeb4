"""Round trips over several looks: a single measurement of a link that fluctuates says little."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from penstock.core.latency import LatencyMap

NEW = 0.3  # weight of a new measurement against all older ones
MOST = 32  # nodes up to which round trips are remembered


class RoundTrips(TypedDict):
    """Nodes by name, and the seconds between each and those before it."""

    nodes: list[str]
    below: list[list[float]]


def no_round_trips() -> RoundTrips:
    """Before the first look."""
    return {"nodes": [], "below": []}


def smoothed(rtt: LatencyMap | None, memory: RoundTrips) -> tuple[LatencyMap | None, RoundTrips]:
    """The map with the mean of this and past measurements, in which this one counts 0.3.

    Links that were not known before are as measured; of more than 32 nodes nothing is remembered.

    >>> before, after = (LatencyMap(["a", "b"], [[0, s], [s, 0]]) for s in (0.02, 0.03))
    >>> _, memory = smoothed(before, no_round_trips())
    >>> mixed, _ = smoothed(after, memory)
    >>> round(mixed.between("a", "b"), 4)
    0.023
    """
    mixed = _mixed(rtt, memory, NEW)
    if mixed is None or len(mixed) > MOST:
        return mixed, no_round_trips()
    below = [row[:i] for i, row in enumerate(mixed.rtt.tolist())]
    return mixed, {"nodes": list(mixed.nodes), "below": below}


def remembered(rtt: LatencyMap | None, memory: RoundTrips) -> LatencyMap | None:
    """The map with what is remembered, as far as it is; this measurement does not count."""
    return _mixed(rtt, memory, 0.0)


def _mixed(rtt: LatencyMap | None, memory: RoundTrips, new: float) -> LatencyMap | None:
    known = [] if rtt is None else [i for i, node in enumerate(memory["nodes"]) if node in rtt]
    if rtt is None or not known:
        return rtt
    below = memory["below"]
    old = np.array([[below[max(i, j)][min(i, j)] if i != j else 0.0 for j in known] for i in known])
    rows = np.ix_(*[rtt.rows([memory["nodes"][i] for i in known])] * 2)
    mixed = rtt.rtt.copy()
    mixed[rows] = old + new * (mixed[rows] - old)
    return LatencyMap(rtt.nodes, mixed)
