"""A journal as a recording: every tick tells of one batch, the mean of those of its window.

A journal has the figures of windows, not single batches. A tick counts if its window begins where
the one of the last tick that counts ended, or later, so that no batch counts twice; a tick whose
batch still runs, or in which executors came or went, tells of the demand only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from penstock.batches.values import Batch, Source, Stage, Task
from penstock.core.errors import InputError
from penstock.core.model import OperatorSeen, QuerySeen, Snapshot
from penstock.history.demand import Demand, names_of_sources
from penstock.history.journal import read
from penstock.history.journal_batches import Works, tasks_of
from penstock.history.journal_executors import Presences
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
        self._executors = Presences()
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
            self._executors.begin_anew()
        self._ticks += 1
        if outcome == "unusable":
            self._leave("cannot be believed")
            return
        before = self._time if math.isfinite(self._time) else None
        self._executors.take(seen, before, now)
        for name, query in seen.queries.items():
            run = self._runs.setdefault(
                (name, self._run), _Run(name=name, id=f"{name}-{self._run}" if self._run else name)
            )
            self._query(where, run, query, seen, now)
        self._time = now

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
        if start < self._executors.changed - SAME:
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
        works = Works(
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
        works: Works,
        *,
        end: float,
        duration: float,
        rows: float,
        of: int,
    ) -> None:
        id = run.number
        stages: list[Stage] = []
        state = works.stateful()
        for place, (name, busy) in enumerate(works.shares(self._executors.at_once)):
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
        if busiest is not None and (tasks_read := tasks_of(busiest, query.partitions or ())):
            run.tasks[busiest.id] = tasks_read

    def _width(self, seen: Snapshot) -> int:
        """A task for each core, where nothing tells how many a stage has."""
        return max(1, self._executors.at_once * sum(len(slots) for slots in seen.pools.values()))

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
        begin = min(b.start for run in runs for b in run.batches)
        return RecordedApplication(
            source=str(self._path),
            id="",
            name=next(iter(run.name for run in runs)),
            executors=tuple(self._executors.lives(begin)),
            queries=tuple(map(_recorded, runs)),
            rescales=self._executors.rescales,
            remarks=tuple(self._remarks),
            kind=KIND,
            join=self._executors.join,
            warm=dict(self._executors.warm),
        )


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
