"""Snapshots that tests start from: a healthy three-operator pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.core.model import OperatorSeen, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline

NAMES = ("source", "map", "sink")


def pipeline(*, shared: bool = False, **operator: Any) -> Pipeline:
    """source → map → sink, one pool per operator or one for all."""
    return Pipeline(
        operators={n: Operator(pool="all" if shared else n, **operator) for n in NAMES},
        edges=(("source", "map"), ("map", "sink")),
    )


def healthy(*, shared: bool = False, slots: int = 4, time: float = 1000.0) -> Snapshot:
    """1,000 records/s offered and processed; every slot does 400 records/s."""
    seen = OperatorSeen(
        parallelism=slots / 3 if shared else float(slots),
        arrival_rate=1000.0,
        output_rate=1000.0,
        service_rate=400.0,
        busy=0.6,
        idle=0.4,
        backpressured=0.0,
        cpu=0.6,
        buffer=0.1,
        latency=0.2,
    )
    source = replace(seen, offered_rate=1000.0, lag=10.0)
    shape = pipeline(shared=shared)
    return Snapshot(
        time=time,
        window=15.0,
        pipeline=shape,
        operators={"source": source, "map": seen, "sink": seen},
        pools={p: tuple(Slot(id=f"{p}-{i}") for i in range(slots)) for p in shape.pools},
    )


def with_all(seen: Snapshot, **fields: Any) -> Snapshot:
    """The snapshot with the same fields put on every operator (offered rate, lag: sources)."""
    operators = {}
    for name, o in seen.operators.items():
        mine = dict(fields)
        if name not in seen.pipeline.sources:
            mine = {k: v for k, v in mine.items() if k not in ("offered_rate", "lag")}
        operators[name] = replace(o, **mine)
    return replace(seen, operators=operators)
