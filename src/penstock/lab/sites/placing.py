"""Where slots are added and which leave: what a change names, and the rest by rule. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.batches.actions import victims
from penstock.batches.values import Executor
from penstock.core.errors import EngineError
from penstock.core.model import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Sites that get a slot, once per slot, and executors that leave."""

    add: tuple[str, ...]
    remove: tuple[str, ...]


def moves(
    change: Change,
    alive: Sequence[Executor],
    *,
    site_of: Mapping[str, str],
    room: Mapping[str, int],
) -> Moves:
    """What to do for a change of size, or of places at the same size.

    ``site_of`` executors · ``room`` free slots by site, in the order in which sites are taken
    when the change does not name them. Room that the change itself makes may be used. Beyond
    those that are named, the newest executors leave.
    """
    here = {executor.id for executor in alive}
    named = [id for id in dict.fromkeys(change.remove) if id in here]
    chosen = list(change.add_on[: change.slots])  # more would have to leave at once
    growth = change.slots - len(alive)
    adding = max(len(chosen), growth + len(named))
    leaving = victims(alive, adding - growth, named)
    free = Counter(room)
    for id in leaving:
        free[site_of[id]] += 1
    for site in chosen:
        if site not in room:
            raise EngineError(f"there is no site {site!r}; there are: {', '.join(room)}")
        free[site] -= 1
        if free[site] < 0:
            raise EngineError(f"site {site} has no room for another slot")
    for site in room:
        while len(chosen) < adding and free[site] > 0:
            chosen.append(site)
            free[site] -= 1
    if len(chosen) < adding:
        raise EngineError(
            f"the sites have room for {len(chosen)} more slots, not for {adding}: give them more"
        )
    return Moves(add=tuple(chosen), remove=tuple(leaving))
