"""One simulated query: its trigger, its batches, their stages, its state."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.batches.running import RunningBatch, Underway
from penstock.batches.stages import KEPT_BATCHES, StageLog
from penstock.batches.values import Admission, Batch, Source, Stage
from penstock.core.quick import maker
from penstock.simulator.microbatch import draws
from penstock.simulator.microbatch.curve import Curve
from penstock.simulator.microbatch.draws import Floats
from penstock.simulator.microbatch.event_queue import EventQueue
from penstock.simulator.microbatch.pool import Pool, StageRun
from penstock.simulator.microbatch.profile import QueryProfile, StageProfile, StateProfile

IDLE_EVERY = 10.0  # seconds between two reports that there is nothing to do, Spark's own
POLL = 0.01  # seconds between two looks for data of a query without a trigger interval

NOTHING: Mapping[str, Any] = {}  # one for the hundred thousands of batches of a week
_new_batch, _new_source, _new_stage = maker(Batch), maker(Source), maker(Stage)


@dataclass(slots=True, eq=False)
class Numbers:
    """What all queries of an application count together."""

    jobs: Iterator[int] = field(default_factory=itertools.count)
    stages: Iterator[int] = field(default_factory=itertools.count)


@dataclass(slots=True, eq=False)
class _Open:
    """A batch under way: ``noise`` of its tasks by stage, ``slow`` of its driver time.

    ``written`` records by stage that has ended, and what its ``tasks`` took by its number ·
    ``runs`` of the stages that have begun and not ended, by name, and when they began.
    """

    start: float
    rows: Mapping[str, int]
    available: Sequence[int]
    slow: float
    noise: Mapping[str, Floats]
    job: int = -1
    written: dict[str, int] = field(default_factory=dict)
    tasks: dict[int, list[float]] = field(default_factory=dict)
    runs: dict[str, tuple[StageRun, float]] = field(default_factory=dict)

    def records(self, stage: StageProfile) -> int:
        """That a stage reads."""
        if stage.source is not None:
            return self.rows[stage.source]
        return sum([self.written[name] for name in stage.upstream])


class SimulatedQuery:
    """A query that runs batches on a pool, as Spark's micro-batch execution does.

    A batch is planned at the first multiple of the trigger after the start of the one before, or
    when that one ends if it takes longer. It takes what each source has at that moment, up to its
    limit. Without new data there is no batch: the query says that it is idle, every 10 s.

    ``batches`` all that have ended, with moments of idleness · ``recent`` of them, as many as
    Spark remembers · ``tasks`` the seconds of each task of the stages of the newest batch.
    """

    def __init__(
        self,
        profile: QueryProfile,
        curves: Mapping[str, Curve],
        *,
        number: int,
        events: EventQueue,
        pool: Pool,
        log: StageLog,
        numbers: Numbers,
        seed: int,
        ended: Callable[[Batch], None],
    ) -> None:
        self.profile = profile
        self.batches: list[Batch] = []
        self.recent: deque[Batch] = deque(maxlen=KEPT_BATCHES)
        self.tasks: dict[int, list[float]] = {}
        self.taken = [0] * len(profile.sources)
        self.state = {s.name: 0.0 for s in profile.stages if s.state is not None}
        self._curves = [curves[s.name] for s in profile.sources]
        self._events, self._pool, self._log, self._numbers = events, pool, log, numbers
        self._ended = ended
        widths = [s.tasks for s in profile.stages]
        edges = itertools.pairwise([0, *itertools.accumulate(widths)])
        names = [s.name for s in profile.stages]
        self._parts = {name: slice(*edge) for name, edge in zip(names, edges, strict=True)}
        self._noise = draws.Batches(
            seed, number, batch=profile.batch_noise, task=profile.task_noise, tasks=sum(widths)
        )
        self._shares = {
            s.name: np.array(s.shares) if s.shares else 1.0 / s.tasks for s in profile.stages
        }
        self._read_by = {
            s.name: [t for t in profile.stages if s.name in t.upstream] for s in profile.stages
        }
        self._operators = tuple(s.state.operator for s in profile.stages if s.state)
        self._open: _Open | None = None
        self._closing = False
        self._committed = 0.0
        self._said = -math.inf  # when it last reported anything
        self._id = 0
        events.at(events.now, self._trigger)

    @property
    def running(self) -> bool:
        """Whether a batch is under way."""
        return self._open is not None

    @property
    def waiting(self) -> int:
        """Records released and in no batch yet."""
        now = self._events.now
        return sum(c.count(now) - t for c, t in zip(self._curves, self.taken, strict=True))

    def underway(self, batch_time: float) -> Underway:
        """What it is at, as Spark's driver tells; ``batch_time`` for a query without a trigger."""
        now, name, batch = self._events.now, self.profile.name, self._open
        return Underway(
            query=name,
            run_id=name,
            batch=None
            if batch is None
            else RunningBatch(id=self._id, start=batch.start, sources=self._sources(batch)),
            newest=tuple(curve.count(now) for curve in self._curves),
            trigger=self.profile.trigger,
            batch_time=batch_time,
            limits=limits_of(self.profile),
        )

    def tell_running(self) -> None:
        """Note how far the stages are that run."""
        if self._open is not None:
            for stage in self.profile.stages:
                if stage.name in self._open.runs:
                    run, begun = self._open.runs[stage.name]
                    self._log.add([self._stage(self._open, stage, run, begun)])

    def close(self) -> None:
        """Plan no further batch."""
        self._closing = True

    def _trigger(self) -> None:
        if self._closing:
            return
        now = self._events.now
        available = [curve.count(now) for curve in self._curves]
        rows = [
            min(has - taken, has if s.max_rows is None else s.max_rows)
            for has, taken, s in zip(available, self.taken, self.profile.sources, strict=True)
        ]
        owed = self.profile.no_data_batch and bool(self.recent) and self.recent[-1].rows > 0
        if not any(rows) and not owed:
            self._idle()
            return
        slow, noise = self._noise.next()
        batch = self._open = _Open(
            start=now,
            rows=dict(zip(self.profile.source_names, rows, strict=True)),
            available=available,
            slow=slow,
            noise={name: noise[part] for name, part in self._parts.items()},
        )
        self.taken = [taken + some for taken, some in zip(self.taken, rows, strict=True)]
        self._events.at(now + self.profile.planning * slow, self._submit, batch)

    def _idle(self) -> None:
        now = self._events.now
        if now - self._said >= IDLE_EVERY:
            self._said = now
            if self.recent:
                self._keep(self.recent[-1].idle_at(now))
        self._events.at(self._look_again(now), self._trigger)

    def _look_again(self, now: float) -> float:
        """The next trigger; without an interval when there will be data, or something to say."""
        if self.profile.trigger:
            return self._next_trigger(now)
        moments = [c.moment(t + 1) for c, t in zip(self._curves, self.taken, strict=True)]
        due = min([m for m in moments if m is not None] + [self._said + IDLE_EVERY])
        return now + max(1, math.ceil((due - now) / POLL - 1e-9)) * POLL

    def _next_trigger(self, start: float) -> float:
        trigger = self.profile.trigger
        return trigger * (math.floor(start / trigger + 1e-9) + 1) if trigger else start

    def _submit(self, batch: _Open) -> None:
        batch.job = next(self._numbers.jobs)
        for stage in self.profile.stages:
            if stage.source is not None:
                self._run(batch, stage)

    def _run(self, batch: _Open, stage: StageProfile) -> None:
        """Hand the tasks of a stage to the executors."""
        work = stage.per_record * batch.records(stage)
        if stage.state is not None:
            work += stage.state.per_row * self.state[stage.name]
        costs = (stage.fixed + work * self._shares[stage.name]) * batch.noise[stage.name]
        begun = self._events.now
        run = StageRun(
            job=batch.job,
            stage=next(self._numbers.stages),
            seconds=costs / self._pool.profile.share,
            writes=bool(self._read_by[stage.name]),
            done=lambda run: self._stage_ended(batch, stage, run, begun),
        )
        batch.runs[stage.name] = run, begun
        self._pool.submit(run)

    def _stage_ended(self, batch: _Open, stage: StageProfile, run: StageRun, begun: float) -> None:
        records = batch.records(stage)
        most = math.inf if stage.most_out is None else stage.most_out * stage.tasks
        batch.written[stage.name] = round(min(stage.selectivity * records, most))
        batch.tasks[run.stage] = list(run.seconds)
        del batch.runs[stage.name]
        self._log.add((self._stage(batch, stage, run, begun),))
        for later in self._read_by[stage.name]:
            if all(name in batch.written for name in later.upstream):
                self._run(batch, later)
        if len(batch.written) == len(self.profile.stages):
            commit = self._events.now + self.profile.commit * batch.slow
            self._events.at(commit, self._commit, batch)

    def _stage(self, batch: _Open, stage: StageProfile, run: StageRun, begun: float) -> Stage:
        """As Spark tells of it: a task, what it read and wrote, counts when it has ended."""
        begun_tasks, ended, seconds = self._pool.progress(run)
        done = ended == len(seconds)
        records = batch.records(stage)
        if not done:
            records = round(records * ended / len(seconds))
        reads = stage.source is not None
        # Tasks end about in the order in which they begin.
        executor, busy = self._pool.profile, sum(seconds[:ended])
        written = batch.written[stage.name] if done else round(stage.selectivity * records)
        return _new_stage(
            id=run.stage,
            run_id=self.profile.name,
            batch=self._id,
            done=done,
            tasks=stage.tasks,
            run_time=busy,
            cpu_time=busy * executor.share * executor.cpu_busy,
            fetch_wait=0.0,
            input_records=records if reads else 0,
            read_records=0 if reads else records,
            write_records=written if run.writes else 0,
            completed=0 if done else ended,
            active=begun_tasks - ended,
            submitted=begun,
            ended=self._events.now if done else None,
        )

    def _commit(self, batch: _Open) -> None:
        now = self._events.now
        for stage in self.profile.stages:
            if stage.state is not None:
                rows = self.state[stage.name]
                added = stage.state.rows_per_record * batch.records(stage)
                self.state[stage.name] = grown(stage.state, rows, added, now - self._committed)
        done = self._batch(batch)
        if done.rows:
            self.tasks = batch.tasks
        self._open = None
        self._id += 1
        self._said = self._committed = now
        self._keep(done)
        self._ended(done)
        self._events.at(max(now, self._next_trigger(batch.start)), self._trigger)

    def _batch(self, batch: _Open) -> Batch:
        """As the progress of the query tells of it."""
        sources = self._sources(batch)
        states = [(s.state, self.state[s.name]) for s in self.profile.stages if s.state]
        return _new_batch(
            query=self.profile.name,
            run_id=self.profile.name,
            id=self._id,
            start=batch.start,
            duration=self._events.now - batch.start,
            rows=sum(batch.rows.values()),
            available=sum(batch.available),
            taken=sum(self.taken),
            sources=sources,
            state=self._operators,
            state_rows=round(sum(rows for _, rows in states)),
            state_bytes=round(sum(state.bytes_per_row * rows for state, rows in states)),
            written=sum(n for name, n in batch.written.items() if not self._read_by[name]),
            phases=NOTHING,
        )

    def _sources(self, batch: _Open) -> tuple[Source, ...]:
        """What it takes of each source."""
        return tuple(
            _new_source(rows=rows, available=has, taken=taken, name=name, waiting=NOTHING)
            for (name, rows), has, taken in zip(
                batch.rows.items(), batch.available, self.taken, strict=True
            )
        )

    def _keep(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.recent.append(batch)


def limits_of(query: QueryProfile) -> tuple[Admission, ...]:
    """What a batch takes of each source at most."""
    return tuple(Admission(rows=source.max_rows) for source in query.sources)


def grown(state: StateProfile, rows: float, added: float, seconds: float) -> float:
    """Rows of state after a batch that would add so many to an empty one, some seconds later.

    With at most M rows, each of which is as likely to be hit: M − (M − S)·e^(−added/M).

    >>> grown(StateProfile(operator="dedupe", most_rows=100.0), 0.0, 1e6, 1.0)
    100.0
    """
    if state.seconds is not None:
        rows *= math.exp(-seconds / state.seconds)
    if state.most_rows is None:
        return rows + added
    most = state.most_rows
    return most - max(0.0, most - rows) * math.exp(-added / most)
