"""The executors of a simulated application and the tasks that wait for them.

Tasks go to executors as Spark's scheduler deals them: a new stage to all free cores, the
executors in random order, one task each in turn; a core that becomes free takes the next waiting
task at once. Stages of an earlier batch go first (FIFO, Spark's default), whatever their query;
the tasks of a stage in the order of its partitions. So waves come by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.batches.values import Executor
from penstock.core.quick import maker
from penstock.simulator.microbatch import draws, tasks
from penstock.simulator.microbatch.event_queue import EventQueue, Moment
from penstock.simulator.microbatch.profile import ExecutorProfile
from penstock.simulator.microbatch.tasks import Floats

NEVER = (math.inf, math.inf)

_executor = maker(Executor)  # all of them at every look


@dataclass(slots=True, eq=False)
class StageRun:
    """A stage of one batch while its tasks run.

    ``job`` and ``stage`` its place in the queue · ``seconds`` of each task on a warm executor,
    replaced by what it took · ``writes`` whether its tasks leave a shuffle behind · ``done`` is
    called when all tasks have ended · ``places`` the numbers of the executors that took them ·
    ``row`` in the tables of the pool while they run.
    """

    job: int
    stage: int
    seconds: list[float] | Floats
    writes: bool
    done: Callable[[StageRun], None]
    places: list[int] = field(default_factory=list)
    row: int = tasks.NONE


@dataclass(slots=True, eq=False)
class SimulatedExecutor:
    """One executor; what it does is in the ``tables`` of its pool."""

    number: int
    cores: int
    pool: Pool
    added: float = 0.0
    removed: float | None = None
    leaving: bool = False

    @property
    def running(self) -> int:
        """Tasks at work."""
        return int(self.pool.tables.marks[self.number, tasks.RUNNING])

    @property
    def completed(self) -> int:
        """Tasks that have ended."""
        return int(self.pool.tables.marks[self.number, tasks.COMPLETED])

    @property
    def worked(self) -> float:
        """Seconds in ended tasks."""
        return float(self.pool.tables.state[self.number, tasks.WORKED])

    @property
    def idle_since(self) -> float | None:
        """Since when it has no task; ``None`` with one."""
        since = float(self.pool.tables.state[self.number, tasks.IDLE])
        return None if math.isnan(since) else since

    @property
    def wrote(self) -> float:
        """When it last wrote to a shuffle."""
        return float(self.pool.tables.state[self.number, tasks.WROTE])

    def busy(self, now: float) -> float:
        """Core-seconds with a task so far."""
        # The begins of the running tasks are summed, so that this is known at any moment.
        begins = float(self.pool.tables.state[self.number, tasks.BEGINS])
        return self.worked + self.running * now - begins

    def seen(self) -> Executor:
        """As Spark's REST interface shows it."""
        return _executor(
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
    ``tables`` of what they do · ``running_tasks``, ``waiting_tasks`` of all stages · ``due`` when
    the next task ends.
    """

    def __init__(
        self, profile: ExecutorProfile, events: EventQueue, *, size: int, seed: int
    ) -> None:
        self.profile = profile
        self.total = size
        self.alive: dict[int, SimulatedExecutor] = {}
        self.gone: list[SimulatedExecutor] = []
        self.starting = 0
        self.tables = tasks.tables(profile)
        self.due: Moment = NEVER
        self.running_tasks = self.waiting_tasks = 0
        self._events = events
        self._events.tasks = self
        self._count = 0
        self._runs: dict[int, StageRun] = {}  # by their row in the tables
        self._waits_since: float | None = None
        self._places = draws.stream(seed, draws.PLACES)
        self._starts = draws.Delays(seed, draws.STARTS, profile.noise)
        self._leaves = draws.Delays(seed, draws.LEAVES, profile.noise)
        for _ in range(size):
            self._register(self._new(cold=False))

    @property
    def backlog_since(self) -> float | None:
        """Since when tasks wait without a break; ``None`` if none does."""
        return self._waits_since if self.waiting_tasks else None

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
                self.tables.marks[host.number, tasks.LEAVING] = 1
                tasks.take(host.number, self.tables)
                if not host.running:
                    self._send_off(host)

    def submit(self, run: StageRun) -> None:
        """Queue the tasks of a stage; what is free begins at once."""
        row = 0
        while row in self._runs:
            row += 1
        self._runs[row] = run
        run.row = row
        count = len(run.seconds)
        self.tables = tables = tasks.grown(self.tables, stages=row + 1, tasks=count)
        tables.stages[row] = run.job, run.stage, count, 0, 0, run.writes
        tables.seconds[row, :count] = run.seconds
        if not self.waiting_tasks:
            self._waits_since = self._events.now
        hosts = tables.free[: tables.totals[tasks.OPEN]].copy()
        self._places.shuffle(hosts)
        self._events.turn = tasks.deal(row, hosts, self._events.now, self._events.turn, tables)
        self._note()

    def run(self, until: Moment) -> None:
        """Let tasks end that are due before a moment; no further than the end of a stage."""
        events = self._events
        time, turn = until
        events.turn, row, number, events.now = tasks.run(
            time, float(turn), events.turn, self.tables
        )
        self._note()
        if number != tasks.NONE:
            self._send_off(self.alive[number])
        if row != tasks.NONE:
            run = self._runs.pop(row)
            count = len(run.seconds)
            run.seconds = self.tables.seconds[row, :count].tolist()
            run.places = self.tables.places[row, :count].tolist()
            run.row = tasks.NONE
            run.done(run)

    def progress(self, run: StageRun) -> tuple[int, int, list[float]]:
        """How many tasks of a stage have begun and have ended, and the seconds of all."""
        if run.row == tasks.NONE:
            return len(run.seconds), len(run.seconds), list(run.seconds)
        begun, ended = self.tables.stages[run.row, [tasks.BEGUN, tasks.ENDED]].tolist()
        return begun, ended, self.tables.seconds[run.row, : len(run.seconds)].tolist()

    def _note(self) -> None:
        """Read the tables after every change: the next end of a task, and how many there are."""
        t = self.tables
        self.running_tasks, self.waiting_tasks, *_ = t.totals.tolist()
        end, turn, *_ = t.running[t.order[0]].tolist()
        self.due = (end, turn) if self.running_tasks else NEVER

    def _new(self, *, cold: bool) -> SimulatedExecutor:
        number = self._count
        self._count += 1
        self.tables = tasks.grown(self.tables, executors=self._count)
        self.tables.marks[number] = 0, 0, cold, 0, 0
        self.tables.state[number] = 0.0, 0.0, math.nan, -math.inf
        return SimulatedExecutor(number=number, cores=self.profile.cores, pool=self)

    def _arrive(self, host: SimulatedExecutor) -> None:
        self.starting -= 1
        self._register(host)

    def _register(self, host: SimulatedExecutor) -> None:
        host.added = self._events.now
        self.alive[host.number] = host
        self.tables = tasks.grown(self.tables, cores=self.profile.cores * len(self.alive))
        self.tables.state[host.number, tasks.IDLE] = host.added
        self._events.turn = tasks.feed(host.number, host.added, self._events.turn, self.tables)
        self._note()

    def _send_off(self, host: SimulatedExecutor) -> None:
        delay = self.profile.leave * self._leaves.next()
        self._events.at(self._events.now + delay, self._leave, host)

    def _leave(self, host: SimulatedExecutor) -> None:
        host.removed = self._events.now
        del self.alive[host.number]
        self.gone.append(host)
        self.fill()


def seconds_after(profile: ExecutorProfile, seconds: float, worked: float) -> float:
    """What a task of so many ``seconds`` elsewhere takes after ``worked`` seconds of work here.

    After w seconds of work everything takes 1 + m·e^(−w/τ) times as long, m = slowdown − 1 and
    τ = warm_up, also within a task: a long one warms the executor up itself. So a task does
    ∫ dw / (1 + m·e^(−w/τ)) = τ·ln(e^(w/τ) + m) between its begin and its end.

    >>> cold = ExecutorProfile(slowdown=10.0, warm_up=2.0)
    >>> round(seconds_after(cold, 0.01, 0.0), 3), round(seconds_after(cold, 10.0, 0.0), 1)
    (0.098, 14.6)
    """
    return float(tasks.seconds_after(tasks.values_of(profile), seconds, worked))
