"""A journal as a recording: every tick tells of one batch, the mean of those of its window.

A journal has the figures of windows, not single batches. A tick counts if its window begins where
the one of the last tick that counts ended, or later, so that no batch counts twice; a tick whose
batch still runs, or in which executors came or went, tells of the demand only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from penstock.batches.snapshot import POOL
from penstock.batches.stages import READABLE
from penstock.batches.values import Batch, Executor, Source, Stage, Task
from penstock.core.errors import InputError
from penstock.core.facts import JoinTime
from penstock.core.model import OperatorSeen, QuerySeen, Rescale, Snapshot
from penstock.history.demand import Demand, names_of_sources
from penstock.history.journal import read
from penstock.history.recording import RecordedApplication, RecordedQuery

SAME = 0.01  # seconds; two windows that overlap by less do not
DILUTED = 0.3  # of the rows of a batch: batches without data are among those of the window
MOST = 1e15  # no figure of a journal is larger
MOST_STAGES = 1000  # of a query
KIND = "journal"

_FIGURES = (
    "batch_duration", "batch_interval", "offered_rate", "processed_rate", "output_rate",
    "busy_per_record", "state_rows", "state_bytes", "trigger", "admission_limit", "age",
)  # fmt: skip
_OPERATORS = {readable: name for name, readable in reversed(READABLE.items())}

Progress = Callable[[int, int], None]  # bytes read, and of all


def files_of(path: Path) -> list[Path]:
    """A journal with those that it was rotated from, the oldest first."""
    older = [
        (int(found.suffix[1:]), found)
        for found in path.parent.glob(f"{path.name}.*")
        if found.suffix[1:].isdecimal() and found.is_file()
    ]
    return [*(found for _, found in sorted(older, reverse=True)), path]


def read_recorded_journal(
    path: Path, *, progress: Progress = lambda done, total: None
) -> RecordedApplication:
    """Read a journal and those beside it that it was rotated from."""
    files = files_of(path)
    total = sum(file.stat().st_size for file in files if file.exists())
    made = _Made(path)
    done = 0
    for file in files:
        _, entries = read(file, arrivals=False)
        for line, entry in enumerate(entries, 2):
            made.take(f"{file}, line {line}", entry.decision.seen, entry.decision.outcome)
        done += file.stat().st_size
        progress(done, total)
    return made.application()


@dataclass(slots=True)
class _Presence:
    """When an executor was seen, and the ticks before and after."""

    before: float | None
    first: float
    last: float
    after: float | None = None


@dataclass(slots=True)
class _Run:
    """What is collected of a query: a name, a run and its readings."""

    name: str
    id: str
    batches: list[Batch] = field(default_factory=list)
    stages: dict[int, Sequence[Stage]] = field(default_factory=dict)
    tasks: dict[int, Sequence[Task]] = field(default_factory=dict)
    means: dict[int, int] = field(default_factory=dict)
    pieces: list[tuple[float, float, tuple[float, ...]]] = field(default_factory=list)
    sources: tuple[str, ...] = ()
    trigger: float | None = None
    most_rows: tuple[int | None, ...] = ()
    known: dict[str, int] = field(default_factory=dict)  # tasks by operator
    number: int = -1  # of the last batch
    counted: float = -math.inf  # the end of the last window that counts
    told: float = -math.inf  # the end of the demand that is known


class _Made:
    """Takes one snapshot after the other and keeps what a recording needs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._runs: dict[tuple[str, int], _Run] = {}
        self._run = 0
        self._time = -math.inf
        self._ticks = 0
        self._slots: dict[str, _Presence] = {}
        self._cold: set[str] = set()
        self._warm: dict[str, float] = {}
        self._rescales: dict[float, Rescale] = {}
        self._changed = -math.inf
        self._cores = self._at_once = 1
        self._join: JoinTime | None = None
        self._remarks: list[str] = []
        self._left: dict[str, int] = {}
        self._guessed: set[str] = set()

    def take(self, where: str, seen: Snapshot, outcome: str) -> None:
        """One tick; ``where`` it stands, for messages."""
        now = _number(where, "time", seen.time)
        if not seen.queries:
            raise InputError(
                f"{where}: tells of no streaming query ({seen.execution} execution); a profile is "
                "made of micro-batches: give the journal of a Spark application"
            )
        if now < self._time - SAME:
            self._run += 1
            self._remarks.append(
                f"{where}: time goes back by {self._time - now:,.0f} s; what follows counts as "
                "another run"
            )
            self._slots.clear()
            self._changed = -math.inf
        self._ticks += 1
        if outcome == "unusable":
            self._leave("cannot be believed")
            return
        self._executors(seen, now)
        for name, query in seen.queries.items():
            run = self._runs.setdefault(
                (name, self._run), _Run(name=name, id=f"{name}-{self._run}" if self._run else name)
            )
            self._query(where, run, query, seen, now)
        self._time = now

    def _executors(self, seen: Snapshot, now: float) -> None:
        pool = POOL if POOL in seen.pools else next(iter(seen.pools), POOL)
        slots = {str(slot.id): slot for slot in seen.pools.get(pool, ())}
        fact = seen.facts.get(pool)
        self._cores = max(1, round(fact.cores)) if fact and fact.cores else self._cores
        self._join = fact.join if fact and fact.join else self._join
        self._at_once = max(1, round(seen.pipeline.slot_tasks.get(pool, 1)))
        for rescale in seen.rescales:
            self._rescales[rescale.time] = rescale
        before = self._time if math.isfinite(self._time) and self._slots else None
        here = {id for id, p in self._slots.items() if p.after is None}
        if before is not None and here != set(slots):
            done = [
                r.time + r.registered
                for r in seen.rescales
                if r.registered is not None and before < r.time + r.registered <= now
            ]
            self._changed = max(done, default=now)
        for id in here - set(slots):
            self._slots[id].after = now
        for id, slot in slots.items():
            if id in here:
                self._slots[id].last = now
            elif id not in self._slots:
                self._slots[id] = _Presence(before=before, first=now, last=now)
            if slot.cold:
                self._cold.add(id)
                self._warm[id] = math.inf
            elif self._warm.get(id) == math.inf:
                self._warm[id] = now

    def _query(self, where: str, run: _Run, query: QuerySeen, seen: Snapshot, now: float) -> None:
        for figure in _FIGURES:
            if (value := getattr(query, figure)) is not None:
                _number(where, f"{figure} of {run.name}", value)
        rows = _number(where, f"rows of {run.name}", query.rows)
        batches = int(_number(where, f"batches of {run.name}", query.batches))
        age = _number(where, "age", seen.age) if query.age is None else query.age
        end = now - age
        rate = query.processed_rate
        span = _number(where, "window", seen.window)
        if rows and rate:
            span = rows / rate
        start = end - span
        prefix = f"{run.name}/" if len(seen.queries) > 1 else ""
        names = [
            name
            for name in seen.pipeline.order
            if name in seen.operators and name.startswith(prefix)
        ]
        for name in names:
            _check_operator(where, name, seen.operators[name])
        reading = [name for name in names if not seen.pipeline.upstream[name]]
        self._settings(run, query, reading)
        running = query.running_for is not None
        self._demand(run, query, seen, reading, start, now if running else end)
        if running or not (batches and rows and query.batch_duration):
            self._leave("told of a batch that ran" if running else "")
            return
        if query.busy_per_record is None:
            self._leave("had no measured cost")
            return
        if end <= run.counted + SAME or start < run.counted - SAME:
            self._leave("told of batches that had been told of")
            return
        if start < self._changed - SAME:
            self._leave("saw executors come or go")
            return
        interval = query.batch_interval
        if batches > 1 and interval and abs(rows / span * interval * batches / rows - 1) > DILUTED:
            self._leave("had batches without data among others")
            return
        gap = start > run.counted + SAME
        run.number += batches + (1 if gap and run.batches else 0)
        run.counted = end
        duration = query.batch_duration
        works = _Works(
            names=names,
            reading=reading,
            seen=seen,
            busy=query.busy_per_record * rows / batches,
            per_batch=span / batches,
        )
        self._add(run, query, works, end=end, duration=duration, rows=rows / batches, of=batches)

    def _settings(self, run: _Run, query: QuerySeen, reading: Sequence[str]) -> None:
        told = [Source(rows=0, name=source.name) for source in query.sources]
        if len(told) == len(reading):
            run.sources = names_of_sources(told)
            run.most_rows = tuple(
                None if s.most_rows is None else max(1, int(s.most_rows)) for s in query.sources
            )
        elif told and len(reading) == 1:
            run.sources = (" + ".join(names_of_sources(told)),)
            limit = query.admission_limit
            run.most_rows = (None if limit is None else max(1, int(limit)),)
        elif not run.sources:
            run.sources = names_of_sources([Source(rows=0) for _ in reading])
        if query.trigger is not None:
            run.trigger = query.trigger

    def _demand(
        self,
        run: _Run,
        query: QuerySeen,
        seen: Snapshot,
        reading: Sequence[str],
        start: float,
        end: float,
    ) -> None:
        """What was offered between the last piece that is known and the end of this window."""
        begin = max(start, run.told)
        if end <= begin + SAME:
            return
        rates = []
        for name in reading:
            o = seen.operators[name]
            rate = o.offered_rate if o.offered_rate is not None else o.arrival_rate
            rates.append(rate)
        if len(reading) == 1 and query.offered_rate is not None:
            rates = [query.offered_rate]
        if not rates or any(rate is None for rate in rates):
            return
        if run.pieces and begin > run.told + SAME:  # nothing ran in between
            run.pieces.append((run.told, begin, (0.0,) * len(rates)))
        run.pieces.append((begin, end, tuple(float(rate) for rate in rates if rate is not None)))
        run.told = end

    def _add(
        self,
        run: _Run,
        query: QuerySeen,
        works: _Works,
        *,
        end: float,
        duration: float,
        rows: float,
        of: int,
    ) -> None:
        id = run.number
        stages: list[Stage] = []
        state = works.stateful()
        for place, (name, busy) in enumerate(works.shares(self._at_once)):
            o = works.seen.operators[name]
            told = works.seen.pipeline.operators[name].partitions
            if told is None and name not in run.known:
                self._guessed.add(name)
            tasks = run.known[name] = told or run.known.get(name) or self._width(works.seen)
            reads = round((o.arrival_rate or 0.0) * works.per_batch)
            reading = name in works.reading
            stages.append(
                Stage(
                    id=id * MOST_STAGES + place,
                    run_id=run.id,
                    batch=id,
                    done=True,
                    tasks=tasks,
                    run_time=busy,
                    cpu_time=0.0,
                    fetch_wait=0.0,
                    input_records=max(1, reads) if reading else 0,
                    read_records=0 if reading else reads,
                    write_records=round((o.output_rate or 0.0) * works.per_batch),
                    completed=tasks,
                )
            )
        written = query.output_rate
        each = [s.input_records for s in stages if s.input_records]
        run.batches.append(
            Batch(
                query=run.name,
                run_id=run.id,
                id=id,
                start=end - duration,
                duration=duration,
                rows=round(rows),
                sources=tuple(
                    Source(rows=n if len(each) > 1 else round(rows), name=name)
                    for n, name in zip(each, run.sources, strict=False)
                ),
                state=state,
                state_rows=query.state_rows or 0,
                state_bytes=query.state_bytes or 0,
                written=None if written is None else round(written * works.per_batch),
            )
        )
        run.stages[id] = tuple(stages)
        run.means[id] = of
        busiest = max(stages, key=lambda s: s.busy, default=None)
        if busiest is not None and (tasks_read := _tasks(busiest, query.partitions or ())):
            run.tasks[busiest.id] = tasks_read

    def _width(self, seen: Snapshot) -> int:
        """A task for each core, where nothing tells how many a stage has."""
        return max(1, self._at_once * sum(len(slots) for slots in seen.pools.values()))

    def _leave(self, why: str) -> None:
        if why:
            self._left[why] = self._left.get(why, 0) + 1

    def application(self) -> RecordedApplication:
        """All that was read."""
        runs = [run for run in self._runs.values() if run.batches or run.pieces]
        if not any(run.batches for run in runs):
            counted = "; ".join(f"{n} {why}" for why, n in self._left.items()) or "none had a batch"
            raise InputError(
                f"{self._path}: none of its {self._ticks} ticks tells of finished batches "
                f"({counted}); advise for longer, with a period of at least a few batches"
            )
        if self._left:
            counted = "; ".join(f"{n:,} {why}" for why, n in self._left.items())
            self._remarks.append(f"of {self._ticks:,} ticks some say nothing of costs: {counted}")
        if self._guessed:
            self._remarks.append(
                f"how many tasks {', '.join(sorted(self._guessed))} has is not told (Spark chose "
                "it anew for every batch): taken as one for each core"
            )
        return RecordedApplication(
            source=str(self._path),
            id="",
            name=next(iter(run.name for run in runs)),
            executors=tuple(self._lives()),
            queries=tuple(map(_recorded, runs)),
            rescales=tuple(self._rescales[t] for t in sorted(self._rescales)),
            remarks=tuple(self._remarks),
            kind=KIND,
            join=self._join,
            warm=dict(self._warm),
        )

    def _lives(self) -> Iterator[Executor]:
        """The executors with when they came and went, by the actions where these tell."""
        begin = min((b.start for r in self._runs.values() for b in r.batches), default=0.0)
        actions = [r for r in self._rescales.values() if r.registered is not None]
        taken: set[tuple[float, bool]] = set()
        for id, seen in self._slots.items():
            added = min(begin, seen.first) - 1.0
            if seen.before is not None:
                added = _moment(actions, taken, seen.before, seen.first, came=True)
            removed = None
            if seen.after is not None:
                removed = _moment(actions, taken, seen.last, seen.after, came=False)
            yield Executor(
                id=id,
                host="",
                cores=self._cores,
                alive=removed is None,
                added=added,
                removed=removed,
                task_seconds=0.0,
                completed_tasks=0,
                active_tasks=0,
                max_tasks=self._at_once,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Works:
    """The operators of a query in one window.

    ``busy`` executor-seconds of the mean batch, ``per_batch`` seconds of the window for each.
    """

    names: Sequence[str]
    reading: Sequence[str]
    seen: Snapshot
    busy: float
    per_batch: float

    def shares(self, at_once: int) -> Iterator[tuple[str, float]]:
        """The busy seconds of each operator: slots are dealt out by them."""
        whole = sum(self.seen.operators[name].parallelism for name in self.names)
        for name in self.names:
            share = self.seen.operators[name].parallelism / whole if whole else 1 / len(self.names)
            yield name, self.busy * at_once * share

    def stateful(self) -> tuple[str, ...]:
        """The stateful operators by Spark's names, as far as the operators are called after them.

        Where they are not, they are several stages with one operator.
        """
        names = [
            name.rpartition("/")[2]
            for name in self.names
            if self.seen.pipeline.operators[name].stateful
        ]
        plain = [name.rstrip("0123456789").rstrip("-") for name in names]
        if names and all(name in _OPERATORS for name in plain):
            return tuple(_OPERATORS[name] for name in plain)
        return ("state",) if names else ()


def _moment(
    actions: Sequence[Rescale],
    taken: set[tuple[float, bool]],
    before: float,
    after: float,
    *,
    came: bool,
) -> float:
    """When an executor came or went between two ticks.

    Of an action only the last one is timed; the others count from when it was asked for.
    """
    for r in actions:
        done = r.time + (r.registered or 0.0)
        if (r.after > r.before) == came and r.time <= after and done > before:
            if done <= after and (r.time, came) not in taken:
                taken.add((r.time, came))
                return done
            return r.time
    return before + SAME if came else after


def _recorded(run: _Run) -> RecordedQuery:
    demand = {}
    if run.pieces:
        pieces = [p for p in run.pieces if len(p[2]) == len(run.sources)]
        for place, name in enumerate(run.sources):
            if made := _pieces([(a, b, rates[place]) for a, b, rates in pieces]):
                demand[name] = made
    return RecordedQuery(
        name=run.name,
        run_id=run.id,
        batches=tuple(run.batches),
        stages=run.stages,
        tasks=run.tasks,
        means=run.means,
        demand=demand,
        trigger=run.trigger,
        most_rows=run.most_rows,
    )


def _pieces(pieces: Sequence[tuple[float, float, float]]) -> Demand | None:
    if not pieces:
        return None
    start = pieces[0][0]
    edges = [0.0, *(end - start for _, end, _ in pieces)]
    return Demand(
        start=start, edges=np.array(edges), rates=np.maximum(0.0, [rate for *_, rate in pieces])
    )


def _tasks(stage: Stage, seconds: Sequence[float]) -> tuple[Task, ...]:
    """The tasks of the mean batch, spread as those of its newest; none unless all are known."""
    total = sum(seconds)
    if len(seconds) != stage.tasks or not total > 0:
        return ()
    records = stage.input_records or stage.read_records
    return tuple(
        Task(
            partition=partition,
            executor="",
            busy=stage.busy * s / total,
            records=round(records * s / total),
        )
        for partition, s in enumerate(seconds)
    )


def _number(where: str, name: str, value: object) -> float:
    """A figure that can be true."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST:
        return float(value)
    raise InputError(
        f"{where}: {name} {str(value)[:40]} must be a number from 0 to {MOST:g}; remove the line, "
        "or give a journal that Penstock wrote"
    )


def _check_operator(where: str, name: str, o: OperatorSeen) -> None:
    figures: Mapping[str, float | None] = {
        "parallelism": o.parallelism,
        "offered_rate": o.offered_rate,
        "arrival_rate": o.arrival_rate,
        "output_rate": o.output_rate,
    }
    for figure, value in figures.items():
        if value is not None:
            _number(where, f"{figure} of {name}", value)
