"""How far Vivaldi's estimates are off, on four kinds of networks of eight nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.latency import LatencyMap
from penstock.network.maps import from_inbound, random_pairs
from penstock.network.vivaldi import error, estimate

ROUNDS = (50, 200)
SEEDS = tuple(range(1, 41))
NODES = 8
SIDE = 1000.0  # kilometres of a country that is a square
THERE_AND_BACK = 1e-5  # seconds per kilometre: 200 km in a millisecond of fibre
LINKS = (0.5e-3, 2e-3)  # seconds there and back on the links of a node itself
REGIONS = (
    ("dallas", ()),
    ("toronto", (34,)),
    ("washington", (31, 19)),
    ("frankfurt", (123, 93, 91)),
    ("london", (113, 83, 75, 13)),
    ("tokyo", (143, 162, 165, 233, 244)),
    ("sydney", (186, 214, 214, 250, 261, 115)),
    ("sao-paulo", (145, 128, 118, 197, 188, 284, 328)),
)
"""Round trips in milliseconds to the regions before, means of 27 July to 25 August 2024. [ibm24]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Means over seeds of how far estimates are off after some rounds."""

    network: str
    rounds: int
    median_error: float
    nearest: float


def cloud() -> LatencyMap:
    """Eight regions of a public cloud on five continents, as its operator measured them. [ibm24]

    >>> cloud().between("london", "frankfurt")
    0.013
    """
    rtt = np.zeros((len(REGIONS), len(REGIONS)))
    for i, (_, milliseconds) in enumerate(REGIONS):
        rtt[i, :i] = np.array(milliseconds) / 1e3
    return LatencyMap([name for name, _ in REGIONS], rtt + rtt.T)


def plane(seed: int, nodes: int = NODES) -> LatencyMap:
    """Nodes at random places of a country: as far apart as the fibre and their own links are."""
    random = np.random.default_rng(abs(seed))
    places = random.uniform(0.0, SIDE, (nodes, 2))
    links = random.uniform(*LINKS, nodes) / 2.0
    apart = np.linalg.norm(places[:, None] - places, axis=2) * THERE_AND_BACK
    rtt = np.tril(apart + links[:, None] + links, -1)
    return LatencyMap([f"node-{i}" for i in range(1, nodes + 1)], rtt + rtt.T)


def star(seed: int) -> LatencyMap:
    """Delays of up to 150 ms on the way to each node, as they are injected in emulations."""
    inbound = np.random.default_rng(abs(seed)).uniform(0.0, 0.15, NODES).tolist()
    return from_inbound({f"node-{i}": delay for i, delay in enumerate(inbound, 1)})


def pairs(seed: int) -> LatencyMap:
    """Every pair at random from 10 to 300 ms: no metric, the hardest there is."""
    return random_pairs([f"node-{i}" for i in range(1, NODES + 1)], 0.01, 0.3, seed)


NETWORKS: Mapping[str, Callable[[int], LatencyMap]] = {
    "cloud regions": lambda seed: cloud(),
    "country-scale plane": plane,
    "inbound delays": star,
    "random pairs": pairs,
}


def accuracy(rounds: Sequence[int] = ROUNDS, seeds: Sequence[int] = SEEDS) -> tuple[Row, ...]:
    """Every network after every number of rounds."""
    rows = []
    for name, network in NETWORKS.items():
        true = {seed: network(seed) for seed in seeds}
        for count in rounds:
            off = [error(estimate(true[seed], count, seed), true[seed]) for seed in seeds]
            rows.append(
                Row(
                    network=name,
                    rounds=count,
                    median_error=float(np.mean([a.median_error for a in off])),
                    nearest=float(np.mean([a.nearest for a in off])),
                )
            )
    return tuple(rows)


def table(rows: Sequence[Row]) -> str:
    """In Markdown.

    >>> print(table([Row(network="a ring", rounds=50, median_error=0.125, nearest=0.9)]))
    | network | rounds | median error | nearest 3 found |
    |---|---:|---:|---:|
    | a ring | 50 | 12.5 % | 90 % |
    """
    lines = ["| network | rounds | median error | nearest 3 found |", "|---|---:|---:|---:|"]
    lines += [
        f"| {r.network} | {r.rounds} | {r.median_error:.1%} | {r.nearest:.0%} |".replace("%", " %")
        for r in rows
    ]
    return "\n".join(lines)
