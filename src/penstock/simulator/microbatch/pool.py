"""The executors of a simulated application and the tasks that wait for them.

Tasks go to executors as Spark's scheduler deals them: a new stage to all free cores, the
executors in random order, one task each in turn; a core that becomes free takes the next waiting
task at once. Stages of an earlier batch go first (FIFO, Spark's default), whatever their query;
the tasks of a stage in the order of its partitions. So waves come by themselves.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.batches.values import Executor
from penstock.simulator.microbatch import draws
from penstock.simulator.microbatch.event_queue import EventQueue
from penstock.simulator.microbatch.profile import ExecutorProfile

WARM = 1e-3  # a slow-down below this is none


@dataclass(slots=True, eq=False)
class StageRun:
    """A stage of one batch while its tasks run.

    ``job`` and ``stage`` its place in the queue · ``seconds`` of each task on a warm executor,
    replaced by what it took · ``writes`` whether its tasks leave a shuffle behind · ``done`` is
    called when all tasks have ended.
    """

    job: int
    stage: int
    seconds: list[float]
    writes: bool
    done: Callable[[StageRun], None]
    begun: int = 0
    ended: int = 0

    @property
    def place(self) -> tuple[int, int]:
        """In the queue."""
        return self.job, self.stage


@dataclass(slots=True, eq=False)
class SimulatedExecutor:
    """One executor. ``idle_since`` it has no task · ``wrote`` when it last wrote to a shuffle.

    ``worked`` seconds in ended tasks · ``begins`` the sum of the begins of its running tasks, so
    that its busy seconds are known at any moment.
    """

    number: int
    cores: int
    cold: bool
    added: float = 0.0
    removed: float | None = None
    leaving: bool = False
    running: int = 0
    completed: int = 0
    worked: float = 0.0
    begins: float = 0.0
    idle_since: float | None = field(default=None)
    wrote: float = -math.inf

    def busy(self, now: float) -> float:
        """Core-seconds with a task so far."""
        return self.worked + self.running * now - self.begins

    def seen(self) -> Executor:
        """As Spark's REST interface shows it."""
        return Executor(
            id=str(self.number),
            host="local",
            cores=self.cores,
            alive=self.removed is None,
            added=self.added,
            removed=self.removed,
            task_seconds=self.worked,
            completed_tasks=self.completed,
            active_tasks=self.running,
        )


class Pool:
    """Executors that come, work and go.

    ``total`` that Spark keeps up: it replaces those that are missing · ``alive`` by number,
    ``gone`` in the order they went · ``starting`` those asked for that have not registered ·
    ``waiting_tasks``, ``running_tasks`` · ``backlog_since`` tasks wait without a break.
    """

    def __init__(
        self, profile: ExecutorProfile, events: EventQueue, *, size: int, seed: int
    ) -> None:
        self.profile = profile
        self.total = size
        self.alive: dict[int, SimulatedExecutor] = {}
        self.gone: list[SimulatedExecutor] = []
        self.starting = 0
        self.waiting_tasks = 0
        self.running_tasks = 0
        self.backlog_since: float | None = None
        self._events = events
        self._count = 0
        self._free: dict[int, SimulatedExecutor] = {}
        self._queue: list[StageRun] = []
        self._places = draws.stream(seed, draws.PLACES)
        self._starts = draws.Delays(seed, draws.STARTS, profile.noise)
        self._leaves = draws.Delays(seed, draws.LEAVES, profile.noise)
        for _ in range(size):
            self._register(self._new(cold=False))

    @property
    def staying(self) -> list[SimulatedExecutor]:
        """Alive and not told to leave."""
        return [host for host in self.alive.values() if not host.leaving]

    def fill(self) -> None:
        """Ask for the executors that are missing; they register after a while, one by one."""
        for place in range(self.total - len(self.staying) - self.starting):
            self.starting += 1
            delay = self.profile.start + place * self.profile.start_each
            host = self._new(cold=True)
            self._events.at(self._events.now + delay * self._starts.next(), self._arrive, host)

    def decommission(self, numbers: Iterable[int]) -> None:
        """Let executors end their tasks, take no more, and go."""
        for host in [self.alive[number] for number in numbers]:
            if not host.leaving:
                host.leaving = True
                self._free.pop(host.number, None)
                if not host.running:
                    self._send_off(host)

    def submit(self, run: StageRun) -> None:
        """Queue the tasks of a stage; what is free begins at once."""
        insort(self._queue, run, key=_place)
        self.waiting_tasks += len(run.seconds)
        free = [*self._free.values()]
        hosts = [free[i] for i in self._places.permutation(len(free))]
        while hosts and run.begun < len(run.seconds):
            for host in hosts:
                if run.begun < len(run.seconds):
                    self._begin(host, run)
            hosts = [host for host in hosts if host.running < host.cores]
        if self.waiting_tasks and self.backlog_since is None:
            self.backlog_since = self._events.now

    def _begin(self, host: SimulatedExecutor, run: StageRun) -> None:
        now = self._events.now
        task = run.begun
        run.begun += 1
        if run.begun == len(run.seconds):
            self._queue.remove(run)
        seconds = run.seconds[task]
        if host.cold:
            seconds = run.seconds[task] = self._slowed(host, seconds)
        host.running += 1
        host.begins += now
        host.idle_since = None
        if host.running == host.cores:
            self._free.pop(host.number, None)
        self.running_tasks += 1
        self.waiting_tasks -= 1
        if not self.waiting_tasks:
            self.backlog_since = None
        self._events.at(now + seconds, self._end, host, run, now)

    def _end(self, host: SimulatedExecutor, run: StageRun, begin: float) -> None:
        now = self._events.now
        host.running -= 1
        host.completed += 1
        host.begins -= begin
        host.worked += now - begin
        if run.writes:
            host.wrote = now
        if not host.running:
            host.idle_since = now
        self.running_tasks -= 1
        run.ended += 1
        if not host.leaving:
            self._feed(host)
        elif not host.running:
            self._send_off(host)
        if run.ended == len(run.seconds):
            run.done(run)

    def _feed(self, host: SimulatedExecutor) -> None:
        """Give the free cores of an executor what waits."""
        while self._queue and host.running < host.cores:
            self._begin(host, self._queue[0])
        if host.running < host.cores:
            self._free[host.number] = host

    def _slowed(self, host: SimulatedExecutor, seconds: float) -> float:
        """What a task takes on a new executor, slower or faster than on others."""
        first = self.profile.first_task if not (host.completed or host.running) else 0.0
        taken = seconds_after(self.profile, seconds, host.worked)
        if not first and host.worked >= self.profile.boost_for and taken - seconds < WARM * seconds:
            host.cold = False
        return taken + first

    def _new(self, *, cold: bool) -> SimulatedExecutor:
        host = SimulatedExecutor(number=self._count, cores=self.profile.cores, cold=cold)
        self._count += 1
        return host

    def _arrive(self, host: SimulatedExecutor) -> None:
        self.starting -= 1
        self._register(host)

    def _register(self, host: SimulatedExecutor) -> None:
        host.added = host.idle_since = self._events.now
        self.alive[host.number] = host
        self._feed(host)

    def _send_off(self, host: SimulatedExecutor) -> None:
        delay = self.profile.leave * self._leaves.next()
        self._events.at(self._events.now + delay, self._leave, host)

    def _leave(self, host: SimulatedExecutor) -> None:
        host.removed = self._events.now
        del self.alive[host.number]
        self.gone.append(host)
        self.fill()


def _place(run: StageRun) -> tuple[int, int]:
    return run.place


def seconds_after(profile: ExecutorProfile, seconds: float, worked: float) -> float:
    """What a task of so many ``seconds`` elsewhere takes after ``worked`` seconds of work here.

    After w seconds of work everything takes 1 + m·e^(−w/τ) times as long, m = slowdown − 1 and
    τ = warm_up, also within a task: a long one warms the executor up itself. So a task does
    ∫ dw / (1 + m·e^(−w/τ)) = τ·ln(e^(w/τ) + m) between its begin and its end.

    >>> cold = ExecutorProfile(slowdown=10.0, warm_up=2.0)
    >>> round(seconds_after(cold, 0.01, 0.0), 3), round(seconds_after(cold, 10.0, 0.0), 1)
    (0.098, 14.6)
    """
    p = profile
    if worked < p.boost_for:
        faster = min(seconds, (p.boost_for - worked) / p.boost)
        return faster * p.boost + seconds - faster
    more = p.slowdown - 1.0
    if not (more > 0.0 and p.warm_up > 0.0):
        return seconds
    begin = worked / p.warm_up
    whole = _log_sum(begin, math.log(more)) + seconds / p.warm_up
    end = whole + math.log1p(-more * math.exp(-whole))
    return (end - begin) * p.warm_up


def _log_sum(a: float, b: float) -> float:
    """ln(e^a + e^b)."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))
