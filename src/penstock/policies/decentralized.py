"""Decentralized: every slot decides for itself, by chance. [belkhiria19]"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TypedDict

from penstock.core.model import Need, Placement, Proposal, Slot, Snapshot
from penstock.core.sanity import idle_for_sure
from penstock.decentralized.draws import draw, salt
from penstock.decentralized.policy import Probabilistic, check_thresholds
from penstock.policies.signals.bottleneck import shares_add_up
from penstock.policies.signals.reason import listed


class Memory(TypedDict):
    """The seed, how many draws were taken, and each pool's keeper."""

    seed: int
    draws: int
    keepers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decentralized:
    """p = l / r − 1: a slot adds ⌊p⌋ others and one more by chance, or leaves with chance −p.

    l the slot's own load, the share of the time in which it was working · r ``ratio``, the load
    that it should have. It acts at ``up`` or more and at ``down`` or less. A slot sees itself and
    the number of its siblings, nothing else; all decisions at one time, each with a draw of its
    own, add up to L / r − n on average. The keeper of a pool, its first slot, never leaves.
    [belkhiria19, §4.1]

    Runs ``penstock.decentralized.Probabilistic`` over the slots of each pool; there it also has
    the protocol between instances, of which a pool of slots needs none.

    >>> Decentralized().ratio, Decentralized().up, Decentralized().down
    (0.7, 0.8, 0.6)
    """

    ratio: float = 0.7
    up: float = 0.8
    down: float = 0.6

    def __post_init__(self) -> None:
        check_thresholds("decentralized", self.ratio, self.up, self.down)

    def start(self, seed: int) -> Memory:
        """No draw taken yet."""
        return {"seed": seed, "draws": 0, "keepers": {}}

    def decide(self, seen: Snapshot, memory: Memory) -> tuple[Proposal, Memory]:
        """The decisions of all slots, added up by pool."""
        local = Probabilistic(ratio=self.ratio, up=self.up, down=self.down)
        luck, taken = salt(memory["seed"]), memory["draws"]
        needs, place, words = {}, {}, []
        keepers = {p: k for p, k in memory["keepers"].items() if p in seen.pools}
        for pool in seen.pipeline.pools:
            slots = seen.pools.get(pool, ())
            loads = _loads(seen, slots)
            if not loads:
                continue
            ids = [slot.id for slot in slots]
            if keepers.get(pool) not in ids:
                keepers[pool] = ids[0]
            grown, leaving = 0, []
            for slot, load in loads:
                change = local.decide(load, 1.0, len(slots), draw(luck, taken))
                taken += 1
                if change > 0:
                    grown += change
                elif change < 0 and slot != keepers[pool]:
                    leaving.append(slot)
            needs[pool] = Need(slots=len(slots) + grown - len(leaving))
            if leaving:
                place[pool] = Placement(remove=tuple(leaving))
            mean = fmean(load for _, load in loads)
            words.append(f"{pool} {mean:.0%} busy: +{grown} −{len(leaving)}")
        after: Memory = {"seed": memory["seed"], "draws": taken, "keepers": keepers}
        if not needs:
            return Proposal(
                reason="no change: the load of no slot is known", term="load-not-measured"
            ), after
        reason = f"slots decide against {self.ratio:.0%}: {listed(words)}"
        return Proposal(pool_needs=needs, place=place, reason=reason), after


def _loads(seen: Snapshot, slots: tuple[Slot, ...]) -> list[tuple[str, float]]:
    """Slots and their loads, as far as they are known and can be believed.

    Where a slot is not measured by itself, it is as busy as the operator that it belongs to. A
    pool in which every slot reads 0 is believed only if nothing comes in at all.
    """
    loads = []
    for slot in slots:
        load = slot.load
        if load is None and slot.operator is not None:
            o = seen.operators.get(slot.operator)
            load = o.busy if o is not None and shares_add_up(o) else None
        if load is not None:
            loads.append((slot.id, load))
    if not any(load for _, load in loads):
        sources = [name for name in seen.pipeline.sources if name in seen.operators]
        if not sources or not all(idle_for_sure(seen, name) for name in sources):
            return []
    return loads
