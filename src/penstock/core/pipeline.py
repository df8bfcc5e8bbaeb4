"""A pipeline: a directed acyclic graph of operators and the pools whose slots they share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from penstock.core.errors import InputError, unknown

Share = tuple[str, tuple[str, ...], int | None]  # a pool, its operators, its useful slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One step of a pipeline.

    ``pool`` names the slots it runs on · ``selectivity`` records out per record in ·
    ``partitions`` the most tasks of it that can be worked on at once (``None``: not known).
    """

    pool: str
    selectivity: float = 1.0
    stateful: bool = False
    partitions: int | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.selectivity) and self.selectivity >= 0):
            raise InputError(f"selectivity {self.selectivity} must be a finite number ≥ 0")
        if self.partitions is not None and self.partitions < 1:
            raise InputError(f"partitions {self.partitions} must be ≥ 1, or left out if unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Operators by name and the edges between them.

    ``slot_tasks`` by pool, how many tasks one of its slots works on at once (the cores of an
    executor; a mean where they differ), 1 where nothing is said.

    ``order`` is topological · ``sources`` have nothing upstream · ``pools`` in the order their
    first operator appears · ``shares`` every pool with its operators and its useful slots. All
    derived fields are computed once: they are read at every tick.

    >>> p = Pipeline(
    ...     operators={"source": Operator(pool="p"), "sink": Operator(pool="p")},
    ...     edges=[("source", "sink")],
    ... )
    >>> p.order, p.sources
    (('source', 'sink'), ('source',))
    """

    operators: Mapping[str, Operator]
    edges: Sequence[tuple[str, str]] = ()
    slot_tasks: Mapping[str, float] = field(default_factory=dict)
    order: tuple[str, ...] = field(init=False, repr=False, compare=False)
    upstream: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    downstream: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    sources: tuple[str, ...] = field(init=False, repr=False, compare=False)
    pools: tuple[str, ...] = field(init=False, repr=False, compare=False)
    shares: tuple[Share, ...] = field(init=False, repr=False, compare=False)
    _members: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    _useful: Mapping[str, int | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.operators:
            raise InputError("a pipeline needs at least one operator")
        up: dict[str, list[str]] = {name: [] for name in self.operators}
        down: dict[str, list[str]] = {name: [] for name in self.operators}
        edges = tuple((a, b) for a, b in self.edges)
        for a, b in edges:
            for end in (a, b):
                if end not in self.operators:
                    raise unknown(f"operator in the edge {a} → {b}:", end, self.operators)
            up[b].append(a)
            down[a].append(b)
        for pool, tasks in self.slot_tasks.items():
            if not (math.isfinite(tasks) and tasks >= 1):
                raise InputError(f"slot_tasks of {pool} = {tasks} must be a finite number ≥ 1")
        try:
            order = tuple(TopologicalSorter(up).static_order())
        except CycleError as error:
            cycle = " → ".join(error.args[1])
            raise InputError(
                f"the pipeline has a cycle: {cycle}. Remove one of its edges; "
                "records must flow one way"
            ) from None
        put = object.__setattr__  # the only way to fill derived fields of a frozen class
        put(self, "edges", edges)
        put(self, "order", order)
        put(self, "upstream", {name: tuple(v) for name, v in up.items()})
        put(self, "downstream", {name: tuple(v) for name, v in down.items()})
        put(self, "sources", tuple(name for name in order if not up[name]))
        members: dict[str, list[str]] = {}
        for name, o in self.operators.items():
            members.setdefault(o.pool, []).append(name)
        put(self, "pools", tuple(members))
        put(self, "_members", {pool: tuple(v) for pool, v in members.items()})
        put(self, "_useful", {pool: self._useful_slots(pool) for pool in members})
        put(self, "shares", tuple((p, self._members[p], self._useful[p]) for p in members))

    def members(self, pool: str) -> tuple[str, ...]:
        """The operators that run on a pool."""
        return self._members.get(pool, ())

    def useful_slots(self, pool: str) -> int | None:
        """The most slots of a pool that can ever work at once; ``None`` if not known.

        Operators of one connected chain take turns on shared slots (Spark runs the stages of a
        query one after the other), so a chain is worth its widest operator. Separate chains
        (several queries in one application) run side by side, so they add up. A slot of several
        cores works on as many partitions at once.
        """
        return self._useful[pool]

    def _useful_slots(self, pool: str) -> int | None:
        total = 0
        left = set(self.members(pool))
        while left:
            chain, todo = set[str](), [left.pop()]
            while todo:
                name = todo.pop()
                chain.add(name)
                near = {*self.upstream[name], *self.downstream[name]} & left
                left -= near
                todo += near
            widths = [self.operators[name].partitions for name in chain]
            known = [w for w in widths if w is not None]
            if len(known) < len(widths):
                return None
            total += max(known)
        return math.ceil(total / self.slot_tasks.get(pool, 1.0) - 1e-9)
