"""What Spark tells of micro-batches, stages, tasks and executors, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace


def total_count(counts: Sequence[int | None]) -> int | None:
    """The sum; ``None`` unless all are known."""
    known = [c for c in counts if c is not None]
    return sum(known) if counts and len(known) == len(counts) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source of a query at the planning of a batch, in records.

    ``rows`` what the batch read of it · ``available`` what existed then, ``taken`` what this batch
    and its forerunners took, both counted from the beginning of the source; ``None`` where the
    source does not tell · ``waiting`` what it did not take, by partition (``topic-0``), where the
    offsets have them.
    """

    rows: int
    available: int | None = None
    taken: int | None = None
    name: str = ""
    waiting: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What one batch takes of a source at most; ``None`` where there is no such limit."""

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One micro-batch; seconds and records.

    start: when it was planned
    available, taken: records that existed then, and that it and its forerunners took, both counted
        from the beginning of the source; ``None`` where the source does not tell
    sources: the same of each, in the order of the plan
    state: its stateful operators, in the order of the flow, and the rows and bytes that they hold
        together
    written: rows that the sink took, ``None`` where it does not tell
    phases: seconds that passed in each, by Spark's names (``addBatch``, ``walCommit``)
    sink: what the query writes to, in Spark's words
    idle: it marks a moment at which the query had nothing to do; no batch ran
    """

    query: str
    run_id: str
    id: int
    start: float
    duration: float
    rows: int
    available: int | None = None
    taken: int | None = None
    sources: tuple[Source, ...] = ()
    state: tuple[str, ...] = ()
    state_rows: int = 0
    state_bytes: int = 0
    written: int | None = None
    idle: bool = False
    phases: Mapping[str, float] = field(default_factory=dict, hash=False)
    sink: str = ""

    @property
    def end(self) -> float:
        """When it was committed."""
        return self.start + self.duration

    @property
    def lag(self) -> int | None:
        """Records that existed when it was planned and that it did not take."""
        if self.available is None or self.taken is None:
            return None
        return max(0, self.available - self.taken)

    @property
    def inputs(self) -> tuple[Source, ...]:
        """Its sources, at least one."""
        return self.sources or (Source(rows=self.rows, available=self.available, taken=self.taken),)

    def idle_at(self, now: float) -> Batch:
        """The moment, after this batch, at which the query had nothing to do."""
        sources = tuple(replace(s, rows=0) for s in self.sources)
        written = None if self.written is None else 0
        return replace(
            self, start=now, duration=0.0, rows=0, written=written, sources=sources, idle=True
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage with all its attempts; times in seconds, summed over its tasks.

    ``run_time`` includes waiting for CPU under a quota; ``fetch_wait`` is the part of it spent
    waiting for shuffle blocks. ``tasks`` are its partitions, 0 if it was skipped. Records are
    those of the partitions, each counted once; times are those of all attempts. ``attempt`` is the
    newest; ``failed`` whether that one failed, so that another may follow. Of a stage that runs,
    ``completed`` of its tasks have ended and ``active`` run; ``submitted`` when it began and
    ``ended`` when its last task did, of the newest attempt.
    """

    id: int
    run_id: str | None
    batch: int | None
    done: bool
    tasks: int
    run_time: float
    cpu_time: float
    fetch_wait: float
    input_records: int
    read_records: int
    write_records: int
    attempt: int = 0
    failed: bool = False
    completed: int = 0
    active: int = 0
    submitted: float | None = None
    ended: float | None = None

    @property
    def busy(self) -> float:
        """Seconds that its tasks kept a core, summed."""
        return max(0.0, self.run_time - self.fetch_wait)

    @property
    def retried(self) -> bool:
        """Whether its figures may change after it has ended, or those of the stages before it."""
        return self.failed or self.attempt > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a stage: which partition, on which executor, seconds on a core, records read."""

    partition: int
    executor: str
    busy: float
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """One executor, alive or gone; times are seconds since the epoch.

    ``max_tasks`` that it works on at once: its cores, unless tasks take several
    (``spark.task.cpus``); ``None``: as many as cores.
    """

    id: str
    host: str
    cores: int
    alive: bool
    added: float
    removed: float | None
    task_seconds: float
    completed_tasks: int
    active_tasks: int
    failed_tasks: int = 0
    max_tasks: int | None = None

    @property
    def tasks_at_once(self) -> int:
        """Tasks that it works on at once, at least 1."""
        return max(1, self.max_tasks or self.cores)


def tasks_at_once(executors: Sequence[Executor]) -> float:
    """Tasks that an executor works on at once: the mean of those alive, or of all; 1 without any.

    The mean, so that what all of them can do together is right where they differ.
    """
    here = [e for e in executors if e.alive] or executors
    return sum(e.tasks_at_once for e in here) / len(here) if here else 1.0


def cores_of(executors: Sequence[Executor]) -> float | None:
    """Cores of an executor, the same way; ``None`` without any."""
    here = [e for e in executors if e.alive] or executors
    return sum(e.cores for e in here) / len(here) if here else None
