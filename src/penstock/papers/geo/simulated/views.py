"""What an engine may not tell: snapshots without it, to see how much a model depends on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.core.model import Snapshot

View = Callable[[Snapshot], Snapshot]


def without_groups(seen: Snapshot) -> Snapshot:
    """No busy time by key group."""
    return replace(seen, groups={})


def without_idle(seen: Snapshot) -> Snapshot:
    """Not whether the source idles while nothing holds it back, only whether it is held back."""
    operators = {name: replace(o, idle=None) for name, o in seen.operators.items()}
    return replace(seen, operators=operators)


def without_busy(seen: Snapshot) -> Snapshot:
    """No busy time of slots and operators."""
    pools = {p: tuple(replace(s, load=None) for s in slots) for p, slots in seen.pools.items()}
    operators = {name: replace(o, busy=None) for name, o in seen.operators.items()}
    return replace(seen, pools=pools, operators=operators)


def throughput_alone(seen: Snapshot) -> Snapshot:
    """Nothing but rates, lag and back pressure."""
    return without_groups(without_idle(without_busy(seen)))


VIEWS: Mapping[str, View] = {
    "no key groups": without_groups,
    "no idle time": without_idle,
    "no busy time": without_busy,
    "throughput alone": throughput_alone,
}
