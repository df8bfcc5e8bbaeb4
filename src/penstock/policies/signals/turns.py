"""Stages that take turns: what holds of operators that share the slots of one pool.

Where a pipeline runs in micro-batches on one pool, as a query on Spark, each stage has all slots
while it runs, and none while another does. Its own shares of time tell which one holds up the
others. How much the slots had to do is told by the pool as a whole.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.core.model import OperatorSeen, QuerySeen, Snapshot


def take_turns(seen: Snapshot, name: str) -> bool:
    """Whether an operator shares its slots with others that run before or after it."""
    pipeline = seen.pipeline
    return (
        seen.execution == "micro-batch" and len(pipeline.members(pipeline.operators[name].pool)) > 1
    )


def chains(seen: Snapshot) -> list[tuple[str, ...]]:
    """The operators that take turns, query by query, each chain in topological order."""
    if seen.execution != "micro-batch":
        return []
    pipeline = seen.pipeline
    chain_of: dict[str, list[str]] = {}
    for name in pipeline.order:
        if not take_turns(seen, name):
            continue
        pool, merged = pipeline.operators[name].pool, [name]
        for u in pipeline.upstream[name]:
            if pipeline.operators[u].pool == pool and chain_of[u] is not merged:
                merged += [other for other in chain_of[u] if other not in merged]
        for other in merged:
            chain_of[other] = merged
    place = {name: i for i, name in enumerate(pipeline.order)}
    found = {id(chain): chain for chain in chain_of.values()}
    return [tuple(sorted(chain, key=place.__getitem__)) for chain in found.values()]


def pooled(seen: Snapshot) -> Snapshot:
    """The snapshot with the shares of time of the pool, where all queries share one.

    Busy: working for any query. Back-pressured: of the rest, that in which records of its own
    query waited. So all stages of a query have the same, and slots times busy is what all of
    them keep at work. Unchanged where there are several pools, or queries do not tell.
    """
    if seen.execution != "micro-batch" or not seen.queries or len(seen.pipeline.pools) > 1:
        return seen
    queries = seen.queries
    if any(q.busy is None or q.backpressured is None for q in queries.values()):
        return seen
    busy = min(1.0, sum(q.busy or 0.0 for q in queries.values()))
    alone = next(iter(queries.values())) if len(queries) == 1 else None
    operators: dict[str, OperatorSeen] = {}
    for name, o in seen.operators.items():
        query = alone or queries.get(name.rpartition("/")[0])
        if query is None or o.busy is None:
            operators[name] = o
            continue
        waiting = _waiting(query)
        operators[name] = replace(
            o,
            busy=busy,
            idle=(1.0 - busy) * (1.0 - waiting),
            backpressured=(1.0 - busy) * waiting,
        )
    return replace(seen, operators=operators)


def _waiting(query: QuerySeen) -> float:
    """The share of the time not at work for a query in which its records waited."""
    rest = 1.0 - (query.busy or 0.0)
    return min(1.0, (query.backpressured or 0.0) / rest) if rest > 0.0 else 0.0
