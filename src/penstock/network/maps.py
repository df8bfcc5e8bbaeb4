"""Latency maps: from injected delays, at random, from a file, and ones that change with time.

All are round trips in seconds, but for the file, which has milliseconds, as ``ping`` prints them.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from penstock.core.errors import InputError
from penstock.core.latency import LatencyMap

FOG_NODES = 8  # ten Raspberry Pis, less two for management and storage        [arkian21, V-A]
FOG_LEAST, FOG_MOST = 0.0, 0.3  # seconds there and back between two of them
HEADER = ("node", "node", "milliseconds")


def from_inbound(delays: Mapping[str, float]) -> LatencyMap:
    """rtt(i, j) = d_i + d_j, d the seconds by which packets to a node are delayed.

    A packet from i to j waits for d_j, its answer for d_i.

    >>> from_inbound({"a": 0.0, "b": 0.025, "c": 0.025}).between("b", "c")
    0.05
    """
    for node, delay in delays.items():
        if not (math.isfinite(delay) and delay >= 0):
            raise InputError(f"inbound delay of {node}: {delay} s must be a finite number ≥ 0")
    inbound = np.array(list(delays.values()), dtype=np.float64)
    rtt = inbound[:, None] + inbound
    np.fill_diagonal(rtt, 0.0)
    return LatencyMap(delays, rtt)


def random_pairs(nodes: Iterable[str], low: float, high: float, seed: int) -> LatencyMap:
    """Every pair on its own, its round trip uniform between ``low`` and ``high`` seconds.

    Such a map is no metric: two nodes near a third may be far apart.

    >>> random_pairs(["a", "b"], 0.1, 0.1, seed=1).between("a", "b")
    0.1
    """
    if not 0.0 <= low <= high < math.inf:
        raise InputError(f"round trips from {low} to {high} s: 0 ≤ low ≤ high must hold")
    names = tuple(nodes)
    rtt = np.zeros((len(names), len(names)))
    below = np.tril_indices(len(names), -1)
    rtt[below] = np.random.default_rng(abs(seed)).uniform(low, high, len(below[0]))
    return LatencyMap(names, rtt + rtt.T)


def fog(seed: int, nodes: int = FOG_NODES) -> LatencyMap:
    """The fog of [arkian21, V-A]: eight nodes, heterogeneous latencies between 0 and 300 ms.

    The paper does not say of what. Here it is the round trip between any two nodes, as its model
    takes round trips: fog-1 and fog-2 are between 0 and 0.3 s apart, there and back.

    >>> len(fog(seed=1)), fog(seed=1).nodes[0], fog(seed=1).worst(fog(seed=1).nodes) <= 0.3
    (8, 'fog-1', True)
    """
    if nodes < 1:
        raise InputError(f"a fog of {nodes} nodes; it takes at least 1")
    names = [f"fog-{i}" for i in range(1, nodes + 1)]
    return random_pairs(names, FOG_LEAST, FOG_MOST, seed)


def read_csv(path: Path | str) -> LatencyMap:
    """A map from lines of ``node,node,milliseconds`` there and back; every pair once.

    A first line of headings, empty lines and lines that begin with # are passed over.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such latency file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a latency file: {error}") from None
    pairs: dict[frozenset[str], tuple[float, int]] = {}
    nodes: dict[str, None] = {}
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    for row in reader:
        fields = [field.strip() for field in row]
        if not any(fields) or fields[0].startswith("#") or (not pairs and _is_header(fields)):
            continue
        where = f"{path}, line {reader.line_num}"
        one, other, milliseconds = _fields(where, fields)
        pair = frozenset((one, other))
        if pair in pairs:
            raise InputError(
                f"{where}: {one} and {other} stand on line {pairs[pair][1]} already; "
                "a round trip is the same from either end, give it once"
            )
        pairs[pair] = milliseconds, reader.line_num
        nodes |= dict.fromkeys((one, other))
    return _map_of(path, tuple(nodes), {pair: ms for pair, (ms, _) in pairs.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fluctuating:
    """rtt(i, j, t) = base(i, j) + s_i·w_i(t) + s_j·w_j(t): a map that changes with time.

    ``swing`` s by node, seconds: how far the delay of packets to it goes up and down; 0 for the
    others · w between −1 and 1: every ``period`` seconds each node draws a new value and moves
    there smoothly, so that w and its slope have no jumps. A function of time alone: the same
    ``seed`` and time, the same map, whatever was asked for before.

    Two nodes with 25 ± 10 ms inbound are 50 ± 20 ms apart:

    >>> base = from_inbound({"a": 0.025, "b": 0.025})
    >>> jitter = Fluctuating(base=base, swing={"a": 0.01, "b": 0.01}, seed=3)
    >>> 0.03 <= jitter.at(7.5).between("a", "b") <= 0.07
    True
    """

    base: LatencyMap
    swing: Mapping[str, float]
    period: float = 10.0
    seed: int = 0

    def __post_init__(self) -> None:
        self.base.rows(tuple(self.swing))  # refuses unknown nodes
        if not (math.isfinite(self.period) and self.period > 0):
            raise InputError(f"period {self.period} s of a fluctuating map must be above 0")
        for node, swing in self.swing.items():
            if not (math.isfinite(swing) and swing >= 0):
                raise InputError(f"swing of {node}: {swing} s must be a finite number ≥ 0")
        swings = self._swings()
        room = self.base.rtt - swings[:, None] - swings
        np.fill_diagonal(room, 0.0)
        if room.min(initial=0.0) < -1e-12:
            i, j = np.unravel_index(room.argmin(), room.shape)
            one, other = self.base.nodes[i], self.base.nodes[j]
            raise InputError(
                f"{one} and {other} are {self.base.rtt[i, j]:g} s apart and swing by "
                f"{swings[i] + swings[j]:g} s; a round trip cannot fall below 0"
            )

    def at(self, time: float) -> LatencyMap:
        """The map at a time in seconds."""
        if not math.isfinite(time):
            raise InputError(f"a map at {time} s: the time must be a finite number")
        place = time / self.period
        before = math.floor(place)
        part = place - before
        smooth = part * part * (3.0 - 2.0 * part)
        first, second = (_knot(self.seed, n, len(self.base)) for n in (before, before + 1))
        wave = (1.0 - smooth) * first + smooth * second
        moved = self._swings() * wave
        rtt = np.maximum(0.0, self.base.rtt + (moved[:, None] + moved))  # even: sums commute
        np.fill_diagonal(rtt, 0.0)
        return LatencyMap(self.base.nodes, rtt)

    def _swings(self) -> npt.NDArray[np.float64]:
        return np.array([self.swing.get(node, 0.0) for node in self.base.nodes])


@lru_cache(maxsize=64)
def _knot(seed: int, number: int, nodes: int) -> npt.NDArray[np.float64]:
    """Where every node is at the beginning of a period."""
    key = [abs(seed), abs(number), int(number < 0)]
    return np.random.default_rng(key).uniform(-1.0, 1.0, nodes)


def _is_header(fields: Sequence[str]) -> bool:
    if len(fields) != len(HEADER):
        return False
    try:
        float(fields[2])
    except ValueError:
        return "ms" in fields[2].lower() or "milli" in fields[2].lower()
    return False


def _fields(where: str, fields: Sequence[str]) -> tuple[str, str, float]:
    if len(fields) != len(HEADER):
        raise InputError(f"{where}: {len(fields)} columns instead of {','.join(HEADER)}")
    one, other, value = fields
    if not one or not other:
        raise InputError(f"{where}: a node has no name")
    try:
        milliseconds = float(value)
    except ValueError:
        raise InputError(f"{where}: {value!r} is not a number of milliseconds") from None
    if not (math.isfinite(milliseconds) and milliseconds >= 0):
        raise InputError(f"{where}: a round trip of {value} ms must be a finite number ≥ 0")
    if one == other and milliseconds:
        raise InputError(f"{where}: {one} is {value} ms from itself; that is 0, leave it out")
    return one, other, milliseconds


def _map_of(
    path: Path, nodes: tuple[str, ...], milliseconds: Mapping[frozenset[str], float]
) -> LatencyMap:
    if not nodes:
        raise InputError(f"{path}: no line of {','.join(HEADER)}")
    place = {node: i for i, node in enumerate(nodes)}
    rtt = np.full((len(nodes), len(nodes)), np.nan)
    np.fill_diagonal(rtt, 0.0)
    for pair, value in milliseconds.items():
        if len(pair) == 2:
            one, other = (place[node] for node in pair)
            rtt[one, other] = rtt[other, one] = value / 1e3
    missing = np.argwhere(np.isnan(rtt))
    if len(missing):
        one, other = (nodes[i] for i in missing[0])
        raise InputError(
            f"{path}: no round trip between {one} and {other}, and {len(missing) // 2 - 1} other "
            "pairs are missing; every pair must be there"
        )
    return LatencyMap(nodes, rtt)
