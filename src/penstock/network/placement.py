"""Which node to use next, and which slot to give up first. [arkian21, IV-E; arsalane24, III-A]

Up: the free node whose greatest round trip to the nodes in use is least. Down: the slot without
which the greatest round trip among the rest is least. Ties: least mean, then the name. Round trips
are compared in whole nanoseconds, so that equal ones are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from penstock.core.latency import LatencyMap

NANOSECONDS = 1e9  # in a second
GONE = -1  # nanoseconds to a slot that has left: less than to any other

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One node to add or one slot to remove.

    ``worst`` the greatest round trip among the nodes in use after it, in seconds; ``None`` where
    nobody looked.
    """

    name: str
    worst: float | None = None


class Draws(TypedDict):
    """Where a sequence of random choices has come to: a plain JSON value."""

    seed: int
    count: int


def ranked(rtt: LatencyMap, used: Sequence[str], free: Sequence[str]) -> tuple[Step, ...]:
    """All free nodes, best first, each as if it alone were added to the nodes in use.

    Where none is in use yet, the node that is nearest to the other free ones is best.

    >>> near = LatencyMap(["a", "b", "c"], [[0, 0.05, 0.01], [0.05, 0, 0.02], [0.01, 0.02, 0]])
    >>> ranked(near, ["a"], ["b", "c"])
    (Step(name='c', worst=0.01), Step(name='b', worst=0.05))
    """
    names = sorted(free)
    farthest, total = _distances(rtt, used, names)
    order = np.lexsort((total, farthest))  # stable: by name where both are equal
    worst = np.maximum(farthest / NANOSECONDS, rtt.worst(used))
    return tuple(Step(name=names[i], worst=float(worst[i])) for i in order)


def joining(rtt: LatencyMap, used: Sequence[str], free: Sequence[str]) -> Iterator[Step]:
    """Free nodes in the order in which to add them, each the best once those before it are there.

    A node that is named twice has room for two slots.

    >>> near = LatencyMap(["a", "b", "c"], [[0, 0.05, 0.01], [0.05, 0, 0.02], [0.01, 0.02, 0]])
    >>> [step.name for step in joining(near, ["a"], ["b", "c"])]
    ['c', 'b']
    """
    names = sorted(free)
    rows = np.array(rtt.rows(names), dtype=np.intp)
    farthest, total = _distances(rtt, used, names)
    waits = np.ones(len(names), dtype=bool)
    worst = round(rtt.worst(used) * NANOSECONDS)
    for added in range(len(names)):
        among = np.flatnonzero(waits)
        among = among[farthest[among] == farthest[among].min()]
        best = int(among[total[among].argmin()])
        waits[best] = False
        row = _whole(rtt.rtt[rows[best], rows])
        if added == 0 and not used:
            farthest, total = row.copy(), row.copy()
        else:
            worst = max(worst, int(farthest[best]))
            np.maximum(farthest, row, out=farthest)
            total += row
        yield Step(name=names[best], worst=worst / NANOSECONDS)


def leaving(rtt: LatencyMap, slots: Sequence[tuple[str, str]]) -> Iterator[Step]:
    """Slots, by name and node, in the order in which to remove them; the last one stays.

    Several slots of one node are 0 s apart: without one of them the others are as far away.

    >>> near = LatencyMap(["a", "b", "c"], [[0, 0.05, 0.01], [0.05, 0, 0.02], [0.01, 0.02, 0]])
    >>> list(leaving(near, [("s1", "a"), ("s2", "b"), ("s3", "c")]))
    [Step(name='s2', worst=0.01), Step(name='s1', worst=0.0)]
    """
    ordered = sorted(slots)
    if len(ordered) < 2:
        return
    rows = rtt.rows([node for _, node in ordered])
    apart = _whole(rtt.rtt[np.ix_(rows, rows)])
    total = apart.sum(axis=1)
    bounds = apart.max(axis=1)
    for _ in range(len(ordered) - 1):
        first = int(bounds.argmax())
        pair = sorted({first, int(apart[first].argmax())})
        after = {slot: _without(slot, apart, bounds) for slot in pair}
        worst = {slot: int(found.max()) for slot, found in after.items()}
        least = min(worst.values())
        if least < bounds[first]:
            gone = max((s for s in pair if worst[s] == least), key=lambda s: (total[s], -s))
        else:  # farthest apart are pairs without a slot in common: no one slot helps
            gone = int(np.where(bounds == GONE, GONE, total).argmax())
        bounds = after[gone] if gone in after else _without(gone, apart, bounds)
        total -= np.maximum(apart[gone], 0)
        apart[gone], apart[:, gone] = GONE, GONE
        yield Step(name=ordered[gone][0], worst=int(bounds.max()) / NANOSECONDS)


def first_draw(seed: int) -> Draws:
    """The draws before the first random choice."""
    return {"seed": abs(seed), "count": 0}


def drawn(names: Iterable[str], draws: Draws) -> tuple[tuple[str, ...], Draws]:
    """All names in a random order, and the draws to go on with.

    >>> drawn(["a", "b", "c"], first_draw(2))
    (('c', 'a', 'b'), {'seed': 2, 'count': 1})
    """
    known = sorted(names)
    order = np.random.default_rng([draws["seed"], draws["count"]]).permutation(len(known))
    return tuple(known[i] for i in order), {**draws, "count": draws["count"] + 1}


def _distances(rtt: LatencyMap, used: Sequence[str], names: Sequence[str]) -> tuple[Whole, Whole]:
    """The greatest and the total round trip of each name to the nodes in use, nanoseconds.

    With none in use: nothing, and the total to all the others.
    """
    columns = rtt.rows(names)
    if used:
        apart = _whole(rtt.rtt[np.ix_(rtt.rows(used), columns)])
        return apart.max(axis=0, initial=0), apart.sum(axis=0)
    apart = _whole(rtt.rtt[np.ix_(columns, columns)])
    return np.zeros(len(names), dtype=np.int64), apart.sum(axis=0)


def _without(gone: int, apart: Whole, bounds: Whole) -> Whole:
    """Upper bounds of every slot's greatest round trip once one has left; the greatest is exact.

    What was known before is a bound still. Only the greatest is looked up again, until it holds:
    a handful of rows, where looking up all would be the square of the slots for every one that
    leaves.
    """
    bounds = bounds.copy()
    bounds[gone] = GONE
    while True:
        row = int(bounds.argmax())
        others = apart[row]
        kept, others[gone] = others[gone], GONE
        true = others.max()
        others[gone] = kept
        if true == bounds[row]:
            return bounds
        bounds[row] = true


def _whole(seconds: npt.NDArray[np.float64]) -> Whole:
    return np.rint(seconds * NANOSECONDS).astype(np.int64)
