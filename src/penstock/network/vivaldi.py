"""Vivaldi: round trips between all nodes from a few measured ones, by coordinates. [dabek04]

Every node has a place on a plane and a height above it, the delay of its own link. Two nodes are
as far apart as their places, plus both heights. A measured round trip pulls a node towards its
peer, or pushes it away, the more the surer the peer is of its place. Constants as in Serf; place
and height share a force in proportion, as in the paper, and half and half while two nodes are at
one place. (Serf moves the place by all of it: then the delays of the nodes' own links, all there
is where delays are injected, pass for distances that no plane has room for.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.core.errors import InputError
from penstock.core.latency import LatencyMap

DIMENSIONS = 2
MOST_ERROR = 1.5  # of a node that knows nothing yet
ERROR_STEP, PLACE_STEP = 0.25, 0.25  # c_e and c_c: most that one sample changes
LEAST_HEIGHT = 10e-6  # seconds
NO_TIME = 1e-6  # seconds: less is taken for this
NEAREST = 3  # nodes whose choice a map is judged by

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Sample = tuple[str, str, float]
"""A node, the peer it measured, and the round trip in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How far an estimated map is from the true one.

    ``median_error`` of |estimated − true| / true over all pairs · ``nearest`` mean share of a
    node's three nearest that are also its three nearest by the estimate.
    """

    median_error: float
    nearest: float


def estimate(measured: LatencyMap | Sequence[Sample], rounds: int, seed: int) -> LatencyMap:
    """The map that so many rounds of measuring lead to.

    In a round over a true map every node measures one random peer. A round over samples goes
    through them once, in their order. Of a sample the node that measured it learns, as it gets the
    peer's coordinates with the answer; the peer does not.

    >>> from penstock.network.maps import from_inbound
    >>> star = from_inbound({"a": 0.01, "b": 0.02, "c": 0.03})
    >>> error(estimate(star, rounds=200, seed=1), star).median_error < 0.01
    True
    """
    if rounds < 1:
        raise InputError(f"{rounds} rounds; a map is estimated by at least 1")
    random = np.random.default_rng(abs(seed))
    if not isinstance(measured, LatencyMap):
        return _from_samples(list(measured), rounds, random)
    space = _Space(len(measured), random)
    everyone = np.arange(len(measured))
    for _ in range(rounds if len(measured) > 1 else 0):
        onwards = random.integers(1, len(measured), len(measured))  # never to itself
        peers = (everyone + onwards) % len(measured)
        space.learn(everyone, peers, measured.rtt[everyone, peers])
    return space.map(measured.nodes)


def error(estimated: LatencyMap, true: LatencyMap) -> Accuracy:
    """How far one map of some nodes is from another."""
    if set(estimated.nodes) != set(true.nodes):
        raise InputError("an estimate and the true map must have the same nodes")
    order = estimated.rows(true.nodes)
    guess, truth = estimated.rtt[np.ix_(order, order)], true.rtt
    pairs = np.triu(truth > 0, 1)
    off = np.abs(guess - truth)[pairs] / truth[pairs]
    return Accuracy(
        median_error=float(np.median(off)) if len(off) else 0.0,
        nearest=_overlap(guess, truth),
    )


def _from_samples(samples: list[Sample], rounds: int, random: np.random.Generator) -> LatencyMap:
    for one, other, rtt in samples:
        if one == other or not 0.0 <= rtt < np.inf:
            raise InputError(f"{one} is {rtt} s from {other}: no round trip between two nodes")
    nodes = tuple(dict.fromkeys(name for one, other, _ in samples for name in (one, other)))
    place = {node: i for i, node in enumerate(nodes)}
    space = _Space(len(nodes), random)
    for _ in range(rounds):
        for one, other, rtt in samples:
            space.learn(np.array([place[one]]), np.array([place[other]]), np.array([rtt]))
    return space.map(nodes)


class _Space:
    """The coordinates of all nodes: places, heights, and how sure each is of its own."""

    def __init__(self, nodes: int, random: np.random.Generator) -> None:
        self._random = random
        self.places = np.zeros((nodes, DIMENSIONS))
        self.heights = np.full(nodes, LEAST_HEIGHT)
        self.errors = np.full(nodes, MOST_ERROR)

    def learn(self, nodes: Rows, peers: Rows, rtt: Floats) -> None:
        """One sample for each of some nodes, all at once: peers are where they were before.

        wrongness e = |distance − rtt| / rtt, weight w = error_i / (error_i + error_j);
        error_i ← e·c_e·w + error_i·(1 − c_e·w); x_i ← x_i + c_c·w·(rtt − distance)·u, with u the
        unit vector from j to i, whose height is the sum of both heights.      [dabek04, 2.5, 5.4]
        """
        rtt = np.maximum(rtt, NO_TIME)
        apart = self.places[nodes] - self.places[peers]
        flat = np.linalg.norm(apart, axis=1)
        together = flat <= NO_TIME  # no direction: any will do
        apart[together] = self._random.standard_normal((int(together.sum()), DIMENSIONS))
        unit = apart / np.maximum(np.linalg.norm(apart, axis=1), 1e-12)[:, None]
        heights = self.heights[nodes] + self.heights[peers]
        distance = flat + heights
        own, theirs = self.errors[nodes], self.errors[peers]
        weight = own / np.maximum(own + theirs, NO_TIME)
        wrong = np.abs(distance - rtt) / rtt
        step = ERROR_STEP * weight
        self.errors[nodes] = np.minimum(wrong * step + own * (1.0 - step), MOST_ERROR)
        force = PLACE_STEP * weight * (rtt - distance)
        upwards = np.where(together, 0.5, heights / distance)
        self.places[nodes] += unit * (force * (1.0 - upwards))[:, None]
        self.heights[nodes] = np.maximum(self.heights[nodes] + force * upwards, LEAST_HEIGHT)

    def map(self, nodes: tuple[str, ...]) -> LatencyMap:
        apart = np.linalg.norm(self.places[:, None] - self.places, axis=2)
        rtt = apart + self.heights[:, None] + self.heights
        rtt = (rtt + rtt.T) / 2.0  # exactly even
        np.fill_diagonal(rtt, 0.0)
        return LatencyMap(nodes, rtt)


def _overlap(guess: Floats, truth: Floats) -> float:
    count = min(NEAREST, len(truth) - 1)
    if count < 1:
        return 1.0
    near = [_nearest(m, count) for m in (guess, truth)]
    shared = [len(a & b) / count for a, b in zip(*near, strict=True)]
    return sum(shared) / len(shared)


def _nearest(rtt: Floats, count: int) -> list[set[int]]:
    others = rtt.copy()
    np.fill_diagonal(others, np.inf)
    return [set(row.tolist()) for row in others.argsort(axis=1, kind="stable")[:, :count]]
