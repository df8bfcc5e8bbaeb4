"""A Spark application on a cluster with sites, as an engine: a slot's node is its site."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.batches.actions import victims
from penstock.batches.snapshot import POOL
from penstock.batches.values import Executor
from penstock.core.errors import EngineError, InputError
from penstock.core.model import Change, Slot, Snapshot
from penstock.spark.act.executors import ExecutorPool
from penstock.spark.engine import POLL, SparkEngine
from penstock.spark.ports import Placer

log = logging.getLogger("penstock")


class SiteEngine:
    """What :class:`SparkEngine` is, for executors whose places can be chosen.

    Snapshots name sites: ``Slot.node`` where an executor runs, ``free_nodes`` where one could be
    added (a site once per free slot), ``rtt`` the measured round trips, ``prices`` of the spec.
    ``Change.add_on`` are sites and ``Change.remove`` executors.

    Slots are added first and removed when the new ones are there, so a move needs no pause; a
    worker ends when its executor has left. That goes on in :meth:`advance` and :meth:`observe`.
    ``stopped`` ends a wait.
    """

    def __init__(
        self, spark: Any, cluster: Placer, *, window: float = 15.0, arrivals: bool = False
    ) -> None:
        self._spark = SparkEngine(spark, window=window, cluster=cluster.cpu, arrivals=arrivals)
        self._cluster = cluster
        self.stopped: threading.Event = self._spark.stopped
        self._application: str = spark.sparkContext.applicationId
        self._coming: tuple[str, ...] = ()  # workers whose executors are waited for
        self._then: tuple[str, ...] = ()  # executors that leave when those have come
        self._expected = 0
        self._leaving: tuple[str, ...] = ()  # workers that end when their executors have left

    @property
    def pool(self) -> ExecutorPool:
        """The executors of the application."""
        return self._spark.pool

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries that have finished a batch and still run."""
        return self._spark.queries

    @property
    def batch_time(self) -> float:
        """Seconds that a batch may take of a query without a trigger."""
        return self._spark.batch_time

    @batch_time.setter
    def batch_time(self, seconds: float) -> None:
        self._spark.batch_time = seconds

    @property
    def acting(self) -> bool:
        """Whether a change of size or place has not taken effect yet."""
        return self.pool.in_flight or bool(self._coming or self._leaving)

    def attach(self) -> None:
        """Start listening to the session's queries."""
        self._spark.attach()

    def detach(self) -> None:
        """Stop listening and end any wait."""
        self._spark.detach()

    def observe(self) -> Snapshot:
        """The last finished batches of all queries, and where the slots are."""
        self._go_on()
        seen = self._spark.observe()
        cluster = self._cluster
        return replace(
            seen,
            pools={pool: self._at_sites(slots) for pool, slots in seen.pools.items()},
            acting=seen.acting or self.acting,
            free_nodes=tuple(site for site, free in cluster.room().items() for _ in range(free)),
            rtt=cluster.rtt,
            prices=cluster.prices,
        )

    def slots(self) -> tuple[Slot, ...]:
        """The executors, also before the first batch."""
        return self._at_sites(self._spark.slots())

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Add slots at sites and remove others; returns at once."""
        change = changes.get(POOL)
        if change is None:
            return
        self._go_on()
        if self.acting:
            raise EngineError("an action is still in flight; one at a time")
        self.pool.refuse_if_not_ours()
        self.pool.refuse_if_frozen()
        if change.cpu_share is not None:
            self._spark.shares.set(change.cpu_share)
        self.pool.gate(change.slots)
        executors = self._spark.executors()
        alive = [e for e in executors if e.alive]
        todo = moves(
            change,
            alive,
            site_of={e.id: self._cluster.site_at(e.host) for e in alive},
            room=self._room_by_distance(),
        )
        if todo.add:
            self._grow(todo.add, executors, todo.remove)
        elif todo.remove:
            self._shrink(todo.remove, executors)

    def advance(self, seconds: float) -> bool:
        """Wait; meanwhile carry on with the action in flight. False when stopped."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not self._spark.advance(min(POLL, left) if self.acting else left):
                return False
            self._go_on()
        return True

    # ---- one action: grow, then shrink, then end workers ------------------------------------

    def _grow(
        self, sites: Sequence[str], executors: Sequence[Executor], then: Sequence[str]
    ) -> None:
        before = sum(e.alive for e in executors)
        self._coming = tuple(self._cluster.add_slot(site) for site in sites)
        self._then, self._expected = tuple(then), before + len(sites)
        change = Change(before=before, slots=self._expected, raw=float(self._expected))
        try:
            self.pool.resize(change, executors, time.time(), on_the_way=True)
        except EngineError:
            self._give_up(self._coming)
            raise

    def _shrink(self, ids: Sequence[str], executors: Sequence[Executor]) -> None:
        before = sum(e.alive for e in executors)
        after = before - len(ids)
        workers = [self._worker_of(id) for id in ids]
        change = Change(before=before, slots=after, raw=float(after), remove=tuple(ids))
        self.pool.resize(change, executors, time.time(), on_the_way=True)
        self._leaving = tuple(worker for worker in workers if worker is not None)

    def _go_on(self) -> None:
        """The next step of the action in flight, if the last has taken effect."""
        if self.pool.in_flight:
            return
        with contextlib.suppress(EngineError):  # Spark did not answer: the next look tries again
            if self._coming:
                self._came()
            elif self._leaving:
                for worker in self._leaving:
                    self._cluster.remove_worker(worker)
                self._leaving = ()

    def _came(self) -> None:
        """The new executors are there, or are not waited for any longer."""
        executors = self._spark.executors()
        alive = [e for e in executors if e.alive]
        if len(alive) < self._expected:
            used = {self._worker_of(e.id) for e in alive}
            missing = [worker for worker in self._coming if worker not in used]
            log.warning("no executor came on %s; their workers are ended", ", ".join(missing))
            self._give_up(missing)
            return
        then = [id for id in self._then if any(e.id == id for e in alive)]
        if then:
            self._shrink(then, executors)
        self._coming = self._then = ()

    def _give_up(self, workers: Sequence[str]) -> None:
        for worker in workers:
            self._cluster.remove_worker(worker)
        self._coming = self._then = ()

    # ---- places ----------------------------------------------------------------------------

    def _worker_of(self, executor: str) -> str | None:
        try:
            return self._cluster.worker_of(executor, self._application)
        except InputError:  # it has just left
            return None

    def _at_sites(self, slots: Sequence[Slot]) -> tuple[Slot, ...]:
        return tuple(replace(slot, node=self._cluster.site_at(slot.node)) for slot in slots)

    def _room_by_distance(self) -> dict[str, int]:
        """Free slots by site, those next to home first."""
        room, rtt, home = self._cluster.room(), self._cluster.rtt, self._cluster.home
        return {site: room[site] for site in sorted(room, key=lambda s: rtt.between(home, s))}


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
