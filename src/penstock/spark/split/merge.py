"""The applications of a split pipeline as one snapshot. Pure: the same input, the same snapshot.

Each application is one operator on a pool of its own. Between two of them is a topic: what waits
there is the buffer of the operator below. Each figure is defined in docs/split.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.core.errors import NotReady
from penstock.core.model import OperatorSeen, Slot, Snapshot
from penstock.core.pipeline import Pipeline

WINDOW = 1.0  # seconds, where no application has finished a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one application tells.

    ``seen`` its own snapshot; ``None`` before its first batch, which may be long after that of
    the operators above · ``slots`` its executors · ``most_rows`` that a batch may take.
    """

    seen: Snapshot | None
    slots: tuple[Slot, ...]
    most_rows: int | None = None


def merged(pipeline: Pipeline, parts: Mapping[str, Part], *, now: float) -> Snapshot:
    """One snapshot of the whole pipeline; operators without a batch so far are not measured."""
    told = {name: part for name, part in parts.items() if part.seen is not None}
    seen = [part.seen for part in told.values() if part.seen is not None]
    if not seen:
        raise NotReady("no application has finished a batch yet")
    operators = {name: _operator(part, name in pipeline.sources) for name, part in told.items()}
    pools = {
        pipeline.operators[name].pool: tuple(replace(s, operator=name) for s in part.slots)
        for name, part in parts.items()
    }
    return Snapshot(
        time=now,
        window=max((s.window for s in seen), default=WINDOW),
        age=max(max(0.0, now - s.time) + s.age for s in seen),
        pipeline=pipeline,
        operators={name: _held_up(name, pipeline, operators) for name in operators},
        pools=pools,
        acting=any(s.acting for s in seen),
        rescales=tuple(
            replace(rescale, pool=pipeline.operators[name].pool)
            for name, part in told.items()
            if part.seen is not None
            for rescale in part.seen.rescales
        ),
        queries={
            name if len(part.seen.queries) == 1 else f"{name}/{query}": figures
            for name, part in told.items()
            if part.seen is not None
            for query, figures in part.seen.queries.items()
        },
    )


def _operator(part: Part, source: bool) -> OperatorSeen:
    """An application as one operator: its queries together, whatever stages they have."""
    seen = part.seen
    assert seen is not None
    queries, stages = seen.queries.values(), seen.operators.values()
    arrival = _total(q.processed_rate for q in queries)
    lag = _total(q.lag for q in queries)
    busy = next((s.busy for s in stages), None)
    return OperatorSeen(
        parallelism=float(len(part.slots)),
        offered_rate=_total(q.offered_rate for q in queries) if source else None,
        arrival_rate=arrival,
        output_rate=_total(q.output_rate for q in queries),
        service_rate=_service_rate(arrival, stages),
        busy=busy,
        cpu=next((s.cpu for s in stages), None),
        buffer=None if source or lag is None or not part.most_rows
        else min(1.0, lag / part.most_rows),
        lag=lag,
        latency=max((s.latency for s in stages if s.latency is not None), default=None),
    )  # fmt: skip


def _service_rate(arrival: float | None, stages: Iterable[OperatorSeen]) -> float | None:
    """Records/s that one executor takes through all stages: arrival ÷ Σ arrival_i / μ_i."""
    slots = 0.0
    for stage in stages:
        if stage.arrival_rate and stage.service_rate:
            slots += stage.arrival_rate / stage.service_rate
        elif stage.arrival_rate != 0:
            return None  # it takes time that nobody measured
    return arrival / slots if arrival and slots else None


def _held_up(name: str, pipeline: Pipeline, operators: Mapping[str, OperatorSeen]) -> OperatorSeen:
    """With back pressure: of the time not busy, the share to which a topic below is full.

    A topic takes everything, so nothing is really held up. But a full topic below means what
    back pressure means to a policy: the operator below is too small.
    """
    o = operators[name]
    if o.busy is None:
        return o
    below = [operators[d].buffer if d in operators else None for d in pipeline.downstream[name]]
    full = max((b for b in below if b is not None), default=0.0 if not below else None)
    if full is None:
        return o
    free = max(0.0, 1.0 - o.busy)
    return replace(o, idle=free * (1.0 - full), backpressured=free * full)


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return sum(v for v in known if v is not None) if known and None not in known else None
