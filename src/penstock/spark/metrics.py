"""Batches, stages and executors as one ``Snapshot``. Pure: the same input, the same snapshot.

The unit of observation is the finished micro-batch: a window is the last batches that ended
within it, from the end of the batch before the first to the end of the last, so that the time
between batches counts too. Each figure is defined in docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.core.errors import NotReady
from penstock.core.model import OperatorSeen, Rescale, Slot, Snapshot
from penstock.core.pipeline import Operator, Pipeline
from penstock.spark.progress import Batch
from penstock.spark.rest import Executor, Stage

POOL = "executors"
LEAST_RECORDS = 100  # with fewer in a window, the fixed cost of tasks is all that is measured

_READABLE = {
    "stateStoreSave": "aggregate",
    "sessionWindowStateStoreSaveExec": "session",
    "symmetricHashJoin": "join",
    "dedupe": "deduplicate",
    "dedupeWithinWatermark": "deduplicate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one stage of a query did during the window, summed over its batches."""

    name: str
    source: bool
    stateful: bool
    tasks: int
    busy: float  # executor-seconds
    cpu: float  # core-seconds of the JVM, without its Python workers
    records_in: int
    records_out: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWindow:
    """One query during the window."""

    name: str
    start: float
    end: float
    rows: int
    offered_rate: float | None
    lag: float | None
    latency: float | None
    works: tuple[Work, ...]

    @property
    def span(self) -> float:
        """Seconds covered."""
        return self.end - self.start


def query_window(
    batches: Sequence[Batch], stages: Sequence[Stage], *, now: float, window: float, cores: int
) -> QueryWindow | None:
    """The last batches of a query within a window; at least the last one. ``None`` if none."""
    recent = [b for b in batches if b.end > now - window] or list(batches[-1:])
    if not recent:
        return None
    older = [b for b in batches if b.start < recent[0].start]
    before = older[-1] if older else None
    start = before.end if before is not None else recent[0].start
    end = recent[-1].end
    if end <= start:
        return None
    rows = sum(b.rows for b in recent)
    offered = _offered_rate(before, recent)
    last = recent[-1]
    lag = float(last.lag) if last.lag is not None and _counts_records(before, recent) else None
    worked = [b for b in recent if b.rows] or recent
    wait = (lag or 0.0) / offered if offered else 0.0
    latency = wait + sum(b.duration for b in worked) / len(worked) * 1.5
    return QueryWindow(
        name=last.query,
        start=start,
        end=end,
        rows=rows,
        offered_rate=offered,
        lag=lag,
        latency=latency,
        works=_works(recent, stages, rows, cores),
    )


def snapshot(
    windows: Sequence[QueryWindow],
    executors: Sequence[Executor],
    *,
    now: float,
    slots: Mapping[str, Slot],
    acting: bool = False,
    rescales: Sequence[Rescale] = (),
) -> Snapshot:
    """All queries of an application as one pipeline on one pool of executors."""
    if not windows or not any(w.works for w in windows):
        raise NotReady("no streaming query has finished a batch yet")
    if not slots:
        raise NotReady("no executor is registered yet")
    operators: dict[str, Operator] = {}
    seen: dict[str, OperatorSeen] = {}
    edges: list[tuple[str, str]] = []
    busy_total = sum(work.busy / w.span for w in windows for work in w.works)
    stages_total = sum(len(w.works) for w in windows)
    cpu = _mean_cpu(windows, executors, slots)
    for w in windows:
        prefix = f"{w.name}/" if len(windows) > 1 else ""
        slot_seconds = _slot_seconds(executors, w.start, w.end) or len(slots) * w.span
        busy = min(1.0, sum(work.busy for work in w.works) / slot_seconds)
        waiting = bool(w.lag)
        upstream: list[str] = []
        for work in w.works:
            name = prefix + work.name
            share = work.busy / w.span / busy_total if busy_total else 1 / stages_total
            rate = work.records_in / w.span
            measured = w.rows >= LEAST_RECORDS and work.records_in and work.busy > 0
            operators[name] = Operator(
                pool=POOL, stateful=work.stateful, partitions=work.tasks or None
            )
            seen[name] = OperatorSeen(
                parallelism=share * len(slots),
                offered_rate=w.offered_rate if work.source else None,
                arrival_rate=rate,
                output_rate=None if work.records_out is None else work.records_out / w.span,
                service_rate=work.records_in / work.busy if measured else None,
                busy=busy,
                idle=0.0 if waiting else 1.0 - busy,
                backpressured=1.0 - busy if waiting else 0.0,
                cpu=cpu,
                lag=w.lag if work.source else None,
                latency=w.latency if work is w.works[-1] else None,
            )
            if work.source:
                upstream.append(name)
            else:
                edges += [(u, name) for u in upstream]
                upstream = [name]
    return Snapshot(
        time=now,
        window=max(w.span for w in windows),
        age=max(0.0, now - max(w.end for w in windows)),
        pipeline=Pipeline(operators=operators, edges=tuple(edges)),
        operators=seen,
        pools={POOL: tuple(slots.values())},
        acting=acting,
        rescales=tuple(rescales),
    )


def _works(
    batches: Sequence[Batch], stages: Sequence[Stage], rows: int, cores: int
) -> tuple[Work, ...]:
    """Stages of the batches, the n-th of each batch together."""
    ids = {b.id for b in batches}
    by_position: dict[int, list[Stage]] = {}
    for batch_id in sorted(ids):
        ordered = sorted((s for s in stages if s.batch == batch_id and s.tasks), key=lambda s: s.id)
        for position, stage in enumerate(ordered):
            by_position.setdefault(position, []).append(stage)
    groups = [by_position[p] for p in sorted(by_position)]
    is_source = [
        p == 0 or (sum(s.input_records for s in g) > 0 and sum(s.read_records for s in g) == 0)
        for p, g in enumerate(groups)
    ]
    state = next((b.state for b in reversed(batches) if b.state), ())
    names = _names(is_source, state)
    works = []
    for p, (group, source, name) in enumerate(zip(groups, is_source, names, strict=True)):
        records = sum(s.input_records if source else s.read_records for s in group)
        if source and not records and is_source.count(True) == 1:
            records = rows  # a source that does not count its records itself
        last = p == len(groups) - 1
        works.append(
            Work(
                name=name,
                source=source,
                stateful=not source and bool(state),
                tasks=max(s.tasks for s in group),
                busy=sum(max(0.0, s.run_time - s.fetch_wait) for s in group) / cores,
                cpu=sum(s.cpu_time for s in group),
                records_in=records,
                records_out=None if last else sum(s.write_records for s in group),
            )
        )
    return tuple(works)


def _names(is_source: Sequence[bool], state: Sequence[str]) -> list[str]:
    sources = is_source.count(True)
    later = len(is_source) - sources
    names: list[str] = []
    read = step = 0
    for source in is_source:
        if source:
            read += 1
            name = "read" if sources == 1 else f"read-{read}"
        else:
            operator = state[step] if later == len(state) else f"stage-{len(names) + 1}"
            name = _READABLE.get(operator, operator)
            step += 1
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names


def _offered_rate(before: Batch | None, recent: Sequence[Batch]) -> float | None:
    """Growth of what the source has, between the first and the last planning of a batch.

    A source that does not report it hands all it has to every batch, so what the batches took
    is what was offered.
    """
    first = before if before is not None else recent[0]
    last = recent[-1]
    seconds = last.start - first.start
    if seconds <= 0:
        return None
    if (
        first.available is not None
        and last.available is not None
        and _counts_records(before, recent)
    ):
        return max(0.0, (last.available - first.available) / seconds)
    return sum(b.rows for b in recent if b is not first) / seconds


def _counts_records(before: Batch | None, recent: Sequence[Batch]) -> bool:
    """Whether the source's offsets count records: then they grow by the rows of each batch."""
    chain = [before, *recent] if before is not None else list(recent)
    if len(chain) < 2 or chain[0].taken is None or chain[-1].taken is None:
        return chain[-1].lag is not None
    grown = chain[-1].taken - chain[0].taken
    rows = sum(b.rows for b in chain[1:])
    return abs(grown - rows) <= 0.1 * max(grown, rows)


def _slot_seconds(executors: Sequence[Executor], start: float, end: float) -> float:
    return sum(
        max(0.0, min(end, e.removed if e.removed is not None else end) - max(start, e.added))
        for e in executors
    )


def _mean_cpu(
    windows: Sequence[QueryWindow], executors: Sequence[Executor], slots: Mapping[str, Slot]
) -> float | None:
    """Of the slots where they were measured, else from the CPU time that the tasks report."""
    measured = [s.cpu for s in slots.values() if s.cpu is not None]
    if measured:
        return sum(measured) / len(measured)
    allowed = sum(_slot_seconds(executors, w.start, w.end) for w in windows) / len(windows)
    used = sum(work.cpu / w.span for w in windows for work in w.works)
    cores = max((e.cores for e in executors), default=1)
    mean_span = sum(w.span for w in windows) / len(windows)
    return used * mean_span / (allowed * cores) if allowed > 0 else None
