"""The bottleneck: found by following back pressure downstream. [kanis23, 6.7.1]"""

from __future__ import annotations

from penstock.core.model import OperatorSeen, Proposal, Snapshot

BACKPRESSURED = 0.1  # Flink calls an operator back-pressured above this share of its time
SHARES_OFF = 0.2  # busy, idle and back-pressured sum to 1 within this, or none is believed
BACK_PRESSURE_NOT_MEASURED = Proposal(
    reason="no change: back pressure not measured everywhere", term="back-pressure-not-measured"
)


def shares_add_up(o: OperatorSeen) -> bool:
    """Whether the shares of time can be true together; shares that are missing cannot tell.

    All zero is the usual reading of a metric that broke: then nothing adds up to 1.

    >>> shares_add_up(OperatorSeen(parallelism=1, busy=0.0, idle=0.0, backpressured=0.0))
    False
    """
    if o.busy is None or o.idle is None or o.backpressured is None:
        return True
    return -SHARES_OFF <= o.busy + o.idle + o.backpressured - 1.0 <= SHARES_OFF


def backpressure_of(seen: Snapshot) -> dict[str, float] | None:
    """The share of time in which each operator was back-pressured, in topological order.

    ``None`` unless it was measured, believably, of every operator: where records are held up
    cannot be told with one operator in the dark.
    """
    shares: dict[str, float] = {}
    for name in seen.pipeline.order:
        o = seen.operators.get(name)
        if o is None or o.backpressured is None or not shares_add_up(o):
            return None
        shares[name] = o.backpressured
    return shares


def bottlenecks(seen: Snapshot, threshold: float = BACKPRESSURED) -> tuple[str, ...] | None:
    """The operators that hold up the others; ``None`` if back pressure is not known everywhere.

    An operator is back-pressured above ``threshold`` of its time. If none is, the sources are
    the bottleneck: nothing below holds them back. Otherwise the bottlenecks are the first
    operators downstream of a back-pressured one that are not back-pressured themselves. A path
    that is back-pressured to its very end is held up by its last operator.

    In topological order. Several are found where several branches are held up, and below a
    split: back pressure does not say which of its branches holds it up.
    """
    shares = backpressure_of(seen)
    if shares is None:
        return None
    pipeline = seen.pipeline
    held = {name for name, share in shares.items() if share > threshold}
    if not held:
        return pipeline.sources
    return tuple(
        name
        for name in pipeline.order
        if (
            not pipeline.downstream[name] if name in held else _below(pipeline.upstream[name], held)
        )
    )


def _below(upstream: tuple[str, ...], held: set[str]) -> bool:
    return any(u in held for u in upstream)
