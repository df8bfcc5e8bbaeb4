"""The bottleneck: found by following back pressure downstream. [kanis23, 6.7.1]"""

from __future__ import annotations

from penstock.core.model import OperatorSeen, Proposal, Snapshot
from penstock.policies.signals.turns import chains

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

    Operators that take turns on one pool (a query in micro-batches) are each held up by all that
    follow, so that back pressure leads past the slow one to the last. There the bottleneck of a
    query that is held up anywhere, or of every one if none is, is its busiest operator: what the
    others wait for longest.
    """
    shares = backpressure_of(seen)
    if shares is None:
        return None
    pipeline = seen.pipeline
    held = {name for name, share in shares.items() if share > threshold}
    busiest = _busiest_by_turns(seen)
    if not held:
        return tuple(dict.fromkeys(busiest.get(name, name) for name in pipeline.sources))
    found = {
        busiest.get(name, name)
        for name in pipeline.order
        if (
            not pipeline.downstream[name] if name in held else _below(pipeline.upstream[name], held)
        )
    }
    return tuple(name for name in pipeline.order if name in found)


def _busiest_by_turns(seen: Snapshot) -> dict[str, str]:
    """The busiest of the operators that each takes turns with, itself among them.

    Of those that are equally busy the last. Where one was not measured nothing is said.
    """
    found: dict[str, str] = {}
    for chain in chains(seen):
        busy = {name: seen.operators[name].busy for name in chain}
        known = {name: share for name, share in busy.items() if share is not None}
        if len(known) == len(chain):
            found |= dict.fromkeys(chain, max(reversed(chain), key=known.__getitem__))
    return found


def _below(upstream: tuple[str, ...], held: set[str]) -> bool:
    return any(u in held for u in upstream)
