"""Snapshots of a pipeline in a small fog: a source, and an operator on nodes a to e."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.core.latency import LatencyMap
from penstock.core.model import OperatorSeen, Proposal, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.policies import Gesscale
from penstock.policies.gesscale.gesscale import Memory

MILLISECONDS = [[], [20], [60, 50], [100, 90, 80], [140, 130, 120, 110]]
TAXI = Pipeline(
    operators={"source": Operator(pool="source"), "taxi": Operator(pool="taxi")},
    edges=(("source", "taxi"),),
)


def fog_map() -> LatencyMap:
    """b is nearest to a, then c, d and e, each farther from all the others."""
    rtt = np.zeros((5, 5))
    for i, row in enumerate(MILLISECONDS):
        rtt[i, :i] = np.array(row) / 1e3
    return LatencyMap("abcde", rtt + rtt.T)


NEAR = fog_map()
ALPHA, BETA, GAMMA = 100.0, 0.5, 100.0


def slots(nodes: Sequence[str], pool: str = "taxi") -> tuple[Slot, ...]:
    return tuple(Slot(id=f"{pool}-{i}", node=node) for i, node in enumerate(nodes))


def fog(
    nodes: Sequence[str],
    *,
    taken: float | None = 100.0,
    offered: float | None = None,
    held: float | None = 0.0,
    time: float = 60.0,
    cpu: float | None = 0.7,
    rtt: LatencyMap | None = NEAR,
    free: Sequence[str] | None = None,
    prices: Mapping[str, float] | None = None,
    **fields: Any,
) -> Snapshot:
    """``held`` back pressure at the source · ``offered`` to it, else what is taken."""
    share = held or 0.0
    return Snapshot(
        time=time,
        window=60.0,
        pipeline=TAXI,
        operators={
            "source": OperatorSeen(
                parallelism=1.0,
                offered_rate=taken if offered is None else offered,
                arrival_rate=taken,
                output_rate=taken,
                busy=0.1,
                idle=0.9 - share,
                backpressured=held,
                lag=0.0,
                cpu=0.6,
            ),
            "taxi": OperatorSeen(
                parallelism=float(len(nodes)),
                arrival_rate=taken,
                output_rate=taken,
                busy=0.8,
                idle=0.2,
                backpressured=0.0,
                cpu=cpu,
            ),
        },
        pools={"source": slots("a", "source"), "taxi": slots(nodes)},
        free_nodes=tuple(n for n in "abcde" if n not in nodes) if free is None else tuple(free),
        rtt=rtt,
        prices=prices or {},
        **fields,
    )


def mst(nodes: Sequence[str]) -> float:
    """What so many nodes can do: 100·√n − 100·NDmax."""
    return ALPHA * math.pow(len(nodes), BETA) - GAMMA * NEAR.worst(nodes)


def calibrated(policy: Gesscale, upto: int = 4) -> Memory:
    """After it was held up on one node, on two, on three …"""
    memory = policy.start(1)
    for n in range(1, upto + 1):
        nodes = "abcde"[:n]
        seen = fog(nodes, taken=mst(nodes), offered=1000.0, held=0.8, time=60.0 * n)
        _, memory = policy.decide(seen, memory)
    return memory


def later(nodes: Sequence[str], **fields: Any) -> Snapshot:
    """An hour after that."""
    return fog(nodes, time=3600.0, **fields)


def decided(policy: Gesscale, seen: Snapshot, memory: Memory | None = None) -> Proposal:
    """By a policy that is calibrated, unless its memory is given."""
    return policy.decide(seen, calibrated(policy) if memory is None else memory)[0]
