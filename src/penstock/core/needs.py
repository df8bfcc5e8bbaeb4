"""The need of a pool: what its operators need together."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from penstock.core.model import Need, Proposal, Snapshot


def need_of(pool: str, members: tuple[str, ...], proposal: Proposal, seen: Snapshot) -> Need | None:
    """The need of a pool: its own, or the sum of its operators'; ``None`` if there is none."""
    need = proposal.pool_needs.get(pool)
    if need is None:
        if len(members) == 1:
            need = proposal.needs.get(members[0])
        else:
            need = _sum(members, proposal.needs, seen)
    if need is None or not 0.0 <= need.slots < inf:  # false for NaN
        return None
    return need


def _sum(members: tuple[str, ...], needs: Mapping[str, Need], seen: Snapshot) -> Need | None:
    """What operators on one pool need together; one without a need keeps what it has."""
    slots, share, known = 0.0, None, False
    for member in members:
        need = needs.get(member)
        if need is None:
            slots += seen.operators[member].parallelism if member in seen.operators else 0.0
            continue
        known = True
        slots += need.slots
        if need.cpu_share is not None:
            share = max(share or 0.0, need.cpu_share)
    return Need(slots=slots, cpu_share=share) if known else None
