"""The micro-batch simulator as an engine: a Spark application that runs in no time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Reversible

from penstock.batches.actions import GIVE_UP, KEPT, ActionLog, join_time, victims
from penstock.batches.batch_cost import HISTORY
from penstock.batches.partitions import MOST_TASKS, PartitionLog
from penstock.batches.running import BATCH_TIME, NewestLog
from penstock.batches.snapshot import POOL, snapshot
from penstock.batches.stages import StageLog
from penstock.batches.values import Batch, Executor, Stage, Task
from penstock.batches.warmth import WARM_AFTER, Warmth
from penstock.batches.window import told_of, windows_of
from penstock.core.errors import EngineError, InputError, unknown
from penstock.core.model import Change, Rescale, Slot, Snapshot
from penstock.policies.spark_dra import DynamicAllocation
from penstock.simulator.microbatch.curve import Curve
from penstock.simulator.microbatch.dra import Allocator
from penstock.simulator.microbatch.event_queue import EventQueue
from penstock.simulator.microbatch.pool import Pool, SimulatedExecutor
from penstock.simulator.microbatch.profile import Profile
from penstock.simulator.microbatch.query import Numbers, SimulatedQuery, limits_of
from penstock.simulator.microbatch.record import ApplicationRecord
from penstock.workloads.patterns import Pattern

POLL = 0.5  # seconds between looks while an action is timed, as on Spark
MOST_EXECUTORS = 10_000
LONGEST = 600.0  # seconds for which executors that are gone still explain what batches cost


class MicroBatchEngine:
    """A simulated Spark application of ``seconds`` seconds; what it shows is what Spark would.

    ``loads`` what each source is offered, by its name, or one pattern for the only source ·
    ``start`` executors at the beginning, all warm · ``window`` seconds of finished batches that
    an observation covers · ``batch_time`` seconds that a batch may take of a query without a
    trigger · ``limits`` fewest and most executors · ``allocation`` lets Spark's
    dynamic allocation size the pool; nobody else may then.

    The same profile, loads, seed and calls give the same run. Time is in seconds from 0.
    """

    def __init__(
        self,
        profile: Profile,
        loads: Pattern | Mapping[str, Pattern],
        *,
        seconds: float,
        start: int,
        window: float = 15.0,
        batch_time: float = BATCH_TIME,
        seed: int = 0,
        limits: tuple[int, int] = (1, MOST_EXECUTORS),
        allocation: DynamicAllocation | None = None,
    ) -> None:
        _check(
            seconds=seconds,
            window=window,
            batch_time=batch_time,
            seed=seed,
            start=start,
            limits=limits,
        )
        self.profile = profile
        self.seconds = float(seconds)
        self._window = window
        self._batch_time = batch_time
        self._newest = NewestLog(window)
        self._limits = limits
        self._events = EventQueue()
        self._curves = _curves(profile, loads, self.seconds)
        self._pool = Pool(profile.executor, self._events, size=start, seed=seed)
        self._stages = StageLog()
        self._actions = ActionLog(kept=10**9)
        self._partitions = PartitionLog()
        self._warmth = Warmth()
        self._told = {q.name: (q.trigger, limits_of(q)) for q in profile.queries}
        self._last: dict[int, tuple[float, float, float]] = {}
        numbers = Numbers()
        self._queries = [
            SimulatedQuery(
                query,
                self._curves,
                number=number,
                events=self._events,
                pool=self._pool,
                log=self._stages,
                numbers=numbers,
                seed=seed,
                ended=self._batch_ended,
            )
            for number, query in enumerate(profile.queries)
        ]
        self._ended: list[Batch] = []
        self._allocator: Allocator | None = None
        if allocation is not None:
            self._allocator = Allocator(allocation, self._pool, self._events, limits=limits)

    @property
    def now(self) -> float:
        """Simulated seconds so far."""
        return self._events.now

    @property
    def executors(self) -> int:
        """Registered and not gone."""
        return len(self._pool.alive)

    @property
    def waiting(self) -> Mapping[str, int]:
        """Records released and in no batch yet, by query."""
        return {q.profile.name: q.waiting for q in self._queries}

    def observe(self) -> Snapshot:
        """The last finished batches of all queries; ``NotReady`` before the first.

        Of queries without a trigger also what they are at: they are busy all the time with any
        number of executors, so that only ``batch_time`` tells how many they need.
        """
        now = self.now
        self._track()
        underway = {}
        for query in self._queries:
            if not query.profile.trigger:
                underway[query.profile.name] = query.underway(self._batch_time)
                query.tell_running()
        recent = {q.profile.name: q.recent for q in self._queries if q.recent}
        self._partitions.read(recent, self._stages, self.tasks)
        self._warmth.look(self._executors(since=now - LONGEST), now)
        windows = windows_of(
            {name: _newest(batches, now - self._window) for name, batches in recent.items()},
            self._stages,
            self._partitions,
            now=now,
            window=self._window,
            cores=self.profile.executor.cores,
            slots=len(self._pool.alive),
            underway=self._newest.rated(underway, now),
            cold=self._warmth.cold_share,
        )
        return snapshot(
            [w if w.run_id in underway else told_of(w, *self._told[w.run_id]) for w in windows],
            self._executors(since=min((w.start for w in windows), default=now)),
            now=now,
            slots=self._slots(),
            acting=self._actions.acting,
            rescales=self._actions.past[-KEPT:],
            join=join_time(self._actions.past[-KEPT:], self.profile.executor.start),
        )

    def apply(self, changes: Mapping[str, Change]) -> None:
        """Ask for another number of executors; one action at a time, as on Spark."""
        change = changes.get(POOL)
        if change is None:
            return
        if self._allocator is not None:
            raise InputError(
                "Spark's dynamic allocation sizes this application: two auto-scalers would undo "
                "each other's actions. Leave out allocation to act, or only advise"
            )
        if self._actions.in_flight:
            raise EngineError("an action is still in flight; one at a time")
        least, most = self._limits
        if not (isinstance(change.slots, int) and least <= change.slots <= most):
            raise EngineError(
                f"{change.slots} executors are outside the limits of {least} to {most}"
            )
        self._resize(change)

    def _resize(self, change: Change) -> None:
        known = self._executors(since=self.now - GIVE_UP)
        alive = [e for e in known if e.alive]
        if change.slots == len(alive):
            return
        leaving = victims(alive, max(0, len(alive) - change.slots), change.remove)
        self._pool.total = change.slots
        self._pool.decommission(int(name) for name in leaving)
        self._pool.fill()
        cost = Rescale(time=self.now, pool=POOL, before=len(alive), after=change.slots)
        self._actions.asked(cost, known, leaving)

    def advance(self, seconds: float) -> bool:
        """Simulate; false when more was asked for than the run has left."""
        if not (math.isfinite(seconds) and seconds >= 0):
            raise InputError(f"cannot advance by {seconds} s; it must be a finite number ≥ 0")
        asked = self.now + seconds
        until = min(asked, self.seconds)
        while self.now < until:
            # At multiples of it, so that the cuts between two calls leave no trace.
            look = POLL * (math.floor(self.now / POLL + 1e-9) + 1)
            watching = self._actions.watching and look <= until
            self._events.run(look if watching else until)
            if watching:
                self._track()
        return asked <= self.seconds + 1e-6

    def finish(self) -> None:
        """Let the batches that are under way end, and plan no others."""
        for query in self._queries:
            query.close()
        while any(query.running for query in self._queries):
            self._events.step()

    def record(self) -> ApplicationRecord:
        """All that has happened so far."""
        self._track()
        return ApplicationRecord(
            seconds=self.now,
            batches={q.profile.name: tuple(q.batches) for q in self._queries},
            stages={q.profile.name: self._ended_stages(q.profile.name) for q in self._queries},
            executors=tuple(self._executors(since=-1.0)),
            rescales=tuple(self._actions.past),
            releases=dict(self._curves),
        )

    def _ended_stages(self, name: str) -> dict[int, list[Stage]]:
        found = {
            id: [stage for stage in some if stage.done]
            for id, some in self._stages.of(name).items()
        }
        return {id: some for id, some in found.items() if some}

    def _batch_ended(self, batch: Batch) -> None:
        self._ended.append(batch)

    def _track(self) -> None:
        """Time the actions by who is there and which batches have ended."""
        self._actions.track(self._executors(since=self.now - 2 * GIVE_UP), self.now)
        for batch in self._ended:
            self._actions.batch_ended(batch.start, batch.end)
        self._ended.clear()

    def _executors(self, *, since: float) -> list[Executor]:
        """In the order they were asked for; without those that had gone before a moment."""
        hosts = [*self._pool.alive.values()]
        for host in reversed(self._pool.gone):
            if (host.removed or 0.0) <= since:
                break
            hosts.append(host)
        return [h.seen() for h in sorted(hosts, key=lambda h: h.number)]

    def _slots(self) -> dict[str, Slot]:
        """Executors as slots; CPU and load since the last observation."""
        hosts = sorted(self._pool.alive.values(), key=lambda h: h.number)
        slots = {str(h.number): self._slot(h) for h in hosts}
        self._last = {h.number: (self.now, h.worked, h.busy(self.now)) for h in hosts}
        return slots

    def _slot(self, host: SimulatedExecutor) -> Slot:
        then, worked, busy = self._last.get(host.number, (self.now, 0.0, 0.0))
        elapsed = (self.now - then) * host.cores
        cold = host.worked < WARM_AFTER
        if elapsed <= 0:
            return Slot(id=str(host.number), cold=cold)
        p = self.profile.executor
        share = (host.busy(self.now) - busy) / elapsed
        return Slot(
            id=str(host.number),
            cpu=p.cpu_idle + (p.cpu_busy - p.cpu_idle) * share,
            load=min(1.0, (host.worked - worked) / elapsed),
            cold=cold,
        )

    def tasks(self, stage: Stage) -> list[Task]:
        """The tasks of a stage of the newest batch, at most 64 of them, the longest first."""
        query = next(q for q in self._queries if q.profile.name == stage.run_id)
        by_length = sorted(enumerate(query.tasks.get(stage.id, ())), key=lambda item: -item[1])
        return [
            Task(partition=partition, executor="", busy=seconds, records=0)
            for partition, seconds in by_length[:MOST_TASKS]
        ]


def _newest(batches: Reversible[Batch], since: float) -> list[Batch]:
    """The last batches of a query, as many as tell the same as all of them.

    Those of the window that began at ``since`` and the one before, those whose costs are compared,
    and further back to where none of the records had been released that the window's took.
    """
    found: list[Batch] = []
    before: Batch | None = None
    for batch in reversed(batches):
        if before is None and found and batch.end <= since:
            before = batch
        found.append(batch)
        if before is not None and len(found) > HISTORY and _all_new(batch, before):
            break
    return found[::-1]


def _all_new(batch: Batch, before: Batch) -> bool:
    """Whether all that was not taken when a batch ended came after the planning of another."""
    both = zip(batch.sources, before.sources, strict=True)
    return all((s.available or 0) <= (t.taken or 0) for s, t in both)


def _check(
    *,
    seconds: float,
    window: float,
    batch_time: float,
    seed: int,
    start: int,
    limits: tuple[int, int],
) -> None:
    for name, value in (("seconds", seconds), ("window", window), ("batch_time", batch_time)):
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"{name} = {value} must be a finite number above 0")
    if not (isinstance(seed, int) and seed >= 0):
        raise InputError(f"seed = {seed} must be a whole number ≥ 0")
    least, most = limits
    if not 1 <= least <= most <= MOST_EXECUTORS:
        raise InputError(f"limits {least} to {most} must be within 1 to {MOST_EXECUTORS}")
    if not least <= start <= most:
        raise InputError(f"start = {start} executors must be within the limits {least} to {most}")


def _curves(
    profile: Profile, loads: Pattern | Mapping[str, Pattern], seconds: float
) -> dict[str, Curve]:
    if not isinstance(loads, Mapping):
        if len(profile.sources) > 1:
            raise InputError(
                f"one load for the sources {', '.join(profile.sources)}; give one for each, by name"
            )
        loads = {profile.sources[0]: loads}
    if missing := [name for name in profile.sources if name not in loads]:
        raise InputError(f"no load for the source {', '.join(missing)}")
    for name in loads:
        if name not in profile.sources:
            raise unknown("source", name, profile.sources)
    return {name: Curve(loads[name], seconds) for name in profile.sources}
