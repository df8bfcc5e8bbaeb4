"""Layouts: the slots of a pool as a throughput model sees them, and the sets of nodes near it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.capacity.dealing import dealt, scheduled
from penstock.capacity.readings import Layout
from penstock.capacity.slowest import slowest
from penstock.core.model import Snapshot
from penstock.network.placement import joining, leaving
from penstock.policies.gesscale.moves import nodes_of, unknown_nodes
from penstock.policies.gesscale.units import Unit

MOST_MORE = 128  # slots more that are looked at in one decision
EVEN = 1.15  # busiest slot over the mean below which the work counts as even: slots vary

Shares = Callable[[int, Sequence[int]], tuple[float, float]]
"""Shares of the work of the busiest slot beside the source and of the busiest other one, of so
many slots, of which those with these numbers are beside the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A set of slots that a pool could have, by the nodes to add or the slots to remove."""

    layout: Layout
    add_on: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    @property
    def slots(self) -> int:
        """How many slots the set has."""
        return self.layout.slots


class Layouts:
    """The layouts that a pool has and could have: node by node more, slot by slot less.

    Nodes are added and slots removed in the order that adds least latency. Where an engine tells
    no round trips, only numbers of slots differ and nodes are left to it.
    """

    def __init__(self, seen: Snapshot, unit: Unit) -> None:
        self._seen = seen
        self._unit = unit
        self._slots = seen.pools[unit.pool]
        self._rtt = None if unknown_nodes(seen, unit.pool) else seen.rtt
        self._shares = _shares(seen, unit)
        near = _beside(seen, unit) if self._rtt is not None else frozenset()
        self._hosts = [i for i, slot in enumerate(self._slots) if slot.node in near]

    @property
    def known(self) -> bool:
        """Whether the round trips of all nodes in use are, if those of any are."""
        return self._seen.rtt is None or self._rtt is not None

    @property
    def hosts(self) -> tuple[int, ...]:
        """The numbers of the slots that run beside the source."""
        return tuple(self._hosts)

    def here(self) -> Layout:
        """The layout that the pool has."""
        if self._rtt is None:
            return self._layout(len(self._slots), 0.0, None)
        nodes = nodes_of(self._seen, self._unit.pool)
        return self._layout(len(nodes), self._rtt.worst(nodes), self._near(nodes))

    def more(self, free: Sequence[str]) -> Iterator[Candidate]:
        """Ever more slots, on some free nodes."""
        have = len(self._slots)
        useful = self._seen.pipeline.useful_slots(self._unit.pool)
        most = have + MOST_MORE if useful is None else min(useful, have + MOST_MORE)
        if self._rtt is None:
            if self._seen.rtt is not None or free:
                most = min(most, have + len(free))
            for slots in range(have + 1, most + 1):
                yield Candidate(layout=self._layout(slots, 0.0, None))
            return
        rtt, nodes = self._rtt, nodes_of(self._seen, self._unit.pool)
        rows = rtt.rows(nodes)
        total = rtt.rtt[rows].sum(axis=0)
        added: list[str] = []
        for step in joining(rtt, nodes, [node for node in free if node in rtt]):
            if len(rows) >= most:
                return
            added.append(step.name)
            rows += rtt.rows((step.name,))
            total = total + rtt.rtt[rows[-1]]
            layout = self._layout(len(rows), step.worst or 0.0, slowest(total[rows] / len(rows)))
            yield Candidate(layout=layout, add_on=tuple(added))

    def fewer(self) -> Iterator[Candidate]:
        """Ever fewer slots, down to one."""
        have = len(self._slots)
        if self._rtt is None:
            for slots in range(have - 1, 0, -1):
                yield Candidate(layout=self._layout(slots, 0.0, None))
            return
        rtt = self._rtt
        rows = np.array(rtt.rows([slot.node for slot in self._slots]))
        place = {slot.id: i for i, slot in enumerate(self._slots)}
        total, stays = rtt.rtt[rows].sum(axis=0), np.ones(have, dtype=bool)
        gone: list[str] = []
        for step in leaving(rtt, [(slot.id, slot.node) for slot in self._slots]):
            gone.append(step.name)
            stays[place[step.name]] = False
            total = total - rtt.rtt[rows[place[step.name]]]
            slots = have - len(gone)
            near = np.maximum(total[rows[stays]], 0.0) / slots  # differences are not exact
            layout = self._layout(slots, step.worst or 0.0, slowest(near))
            yield Candidate(layout=layout, remove=tuple(gone))

    def _near(self, nodes: Sequence[str]) -> float:
        if self._rtt is None:
            return 0.0
        rows = self._rtt.rows(nodes)
        return slowest(self._rtt.rtt[rows][:, rows].mean(axis=1))

    def _layout(self, slots: int, delay: float, exchange: float | None) -> Layout:
        """Where slots leave, the source is still beside one: the first that is there."""
        hosts = [i for i in self._hosts if i < slots]
        host, rest = self._shares(slots, hosts)
        return Layout(
            slots=slots,
            hosts=len(hosts),
            host=host,
            rest=rest,
            delay=delay,
            exchange=exchange or 0.0,
        )


def _beside(seen: Snapshot, unit: Unit) -> frozenset[str]:
    """The nodes on which operators run that hand records to a unit."""
    pools = {seen.pipeline.operators[name].pool for name in unit.above} - {unit.pool}
    return frozenset(slot.node for pool in pools for slot in seen.pools.get(pool, ()))


def _shares(seen: Snapshot, unit: Unit) -> Shares:
    """The shares by key groups, by partitions, or by how uneven slots are now, as far as known."""
    groups = seen.groups.get(unit.members[0]) if len(unit.members) == 1 else None
    if groups is not None and sum(groups) > 0.0:
        return lambda slots, hosts: _divided(dealt(groups, slots), hosts)
    if seen.execution == "micro-batch":
        return lambda slots, hosts: (0.0, _waves(seen, unit, slots))
    uneven = _uneven([s.load for s in seen.pools[unit.pool] if s.node not in _beside(seen, unit)])
    return lambda slots, hosts: (
        1.0 / slots if hosts else 0.0,
        min(1.0, uneven / slots) if len(hosts) < slots else 0.0,
    )


def _uneven(loads: Sequence[float | None]) -> float:
    """The busiest slot over the mean; 1 if that was not measured, or may be chance."""
    known = [load for load in loads if load is not None]
    if len(known) < max(2, len(loads)) or not sum(known) > 0.0:
        return 1.0
    ratio = max(known) * len(known) / sum(known)
    return ratio if ratio >= EVEN else 1.0


def _divided(shares: Sequence[float], hosts: Sequence[int]) -> tuple[float, float]:
    beside = frozenset(hosts)
    host = max((shares[i] for i in beside), default=0.0)
    return host, max((s for i, s in enumerate(shares) if i not in beside), default=0.0)


def _waves(seen: Snapshot, unit: Unit, slots: int) -> float:
    """The share of the work of micro-batches that the slot which ends last has.

    Stages follow one another, so their shares add up, weighted by their work. Of the busiest stage
    the seconds of every partition are known, of the others their number. A slot of several cores
    works on as many partitions at once; with fewer it does only a part of what it could, which
    counts as a larger share.
    """
    each = seen.pipeline.slot_tasks.get(unit.pool, 1.0)
    cores = max(1, round(slots * each))
    works = {
        name: seen.operators[name].parallelism for name in unit.members if name in seen.operators
    }
    total = sum(works.values())
    if not total > 0.0:
        return 1.0 / slots
    busiest = max(works, key=lambda name: works[name])
    query = max(seen.queries.values(), key=lambda q: q.busy or 0.0, default=None)
    share = 0.0
    for name, work in works.items():
        count = seen.pipeline.operators[name].partitions
        part = each * scheduled((1.0,) * count, cores) if count else 1.0 / slots
        if name != busiest or query is None:
            pass
        elif query.partitions and len(query.partitions) >= (count or 0):
            part = each * scheduled(query.partitions, cores)
        elif query.skew and count:  # only the longest of many are told
            part = max(part, each * min(1.0, query.skew / count))
        share += work / total * part
    return share
