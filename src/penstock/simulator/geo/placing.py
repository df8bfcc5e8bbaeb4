"""Where the instances of a job are after a change."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.errors import EngineError, InputError, unknown
from penstock.core.model import Change


def slot_id(pool: str, node: str) -> str:
    """The name of the instance on a node."""
    return f"{pool}-{node}"


def placed(pool: str, nodes: Sequence[str], present: Sequence[str], change: Change) -> list[str]:
    """The nodes that a change leads to, in the order in which they were added.

    ``nodes`` all there are · ``present`` those with an instance. Named nodes are added and named
    slots removed; then the first nodes that are free are taken, or those go that came last.

    >>> placed("map", ["a", "b", "c", "d"], ["a", "b"], Change(before=2, slots=3, raw=3.0))
    ['a', 'b', 'c']
    """
    if not 1 <= change.slots <= len(nodes):
        raise EngineError(
            f"pool {pool}: {change.slots} slots asked for, possible are 1 to {len(nodes)}, one "
            "per node"
        )
    ids = {slot_id(pool, node): node for node in present}
    for slot in change.remove:
        if slot not in ids:
            raise unknown(f"slot of {pool}", slot, ids)
    gone = {ids[slot] for slot in change.remove}
    if len(set(change.add_on)) < len(change.add_on):
        raise InputError(f"pool {pool}: a node stands twice in {', '.join(change.add_on)}")
    for node in change.add_on:
        if node not in nodes:
            raise unknown("node", node, nodes)
        if node in present and node not in gone:
            raise InputError(f"node {node} has an instance of {pool} already")
    stay = [node for node in present if node not in gone]
    after = [*stay[: max(0, change.slots - len(change.add_on))], *change.add_on]
    after += [node for node in nodes if node not in {*after, *present}]
    after += [node for node in nodes if node in gone and node not in after]
    return after[: change.slots]
