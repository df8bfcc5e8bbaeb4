"""A batch that still runs, as far as it is seen: what it will have read, taken and cost at least.

A query that is overloaded ends few batches, and decisions on ended ones come late, or never. What
runs tells enough: how long it has run, which of its tasks have ended, what they took and read. It
is taken as a batch that ends when its tasks that are left have taken as long as those that began
did so far, so that its figures are lower bounds while it runs, and its own when it has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.batches.values import Admission, Batch, Source, Stage, total_count
from penstock.core.findings import TriggerKind

ALIKE = 2.0  # offsets count records if they say at most so many times what was read, or less
BATCH_TIME = 10.0  # seconds between batches that are good enough for a query without a trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBatch:
    """A batch that was planned and has not ended.

    start: when it was planned
    sources: what the plan says of each source; ``rows`` by its offsets
    """

    id: int
    start: float
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Underway:
    """What a query is at, at this moment.

    batch: the batch that runs, if one does
    newest: records that each source has by now, from its beginning; ``None`` where it is not known
    rates: records/s that came to each source lately; ``None`` where it is not known
    trigger: seconds between batches as the query was told; 0 if one follows the other
    batch_time: seconds that a batch may take where there is no trigger
    limits: what a batch takes of each source at most; empty where that is not known
    kind: when batches come
    query_id: stays the same when the query is started again from its checkpoint
    told: whether it tells of its batches; if not, only that it runs is known
    """

    query: str
    run_id: str
    batch: RunningBatch | None = None
    newest: tuple[int | None, ...] = ()
    rates: tuple[float | None, ...] = ()
    trigger: float | None = None
    batch_time: float = BATCH_TIME
    limits: tuple[Admission, ...] = ()
    kind: TriggerKind | None = None
    query_id: str = ""
    told: bool = True

    def interval(self, seen: float | None) -> float | None:
        """Seconds between batches for which executors are to suffice; ``seen`` those between them.

        What a batch costs whatever it reads weighs less, the longer the interval. A query without
        a trigger is busy all the time with any number of executors, and one that falls behind
        its trigger has ever longer batches: neither tells how many it needs.
        """
        if self.trigger is None:
            return seen
        allowed = max(self.trigger, self.batch_time)
        return allowed if self.trigger == 0 or seen is None else min(seen, allowed)


class NewestLog:
    """What sources had at each look, of every query: the rates at which records come to them."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._looks: dict[str, deque[tuple[float, tuple[int | None, ...]]]] = {}

    def rated(self, underway: Mapping[str, Underway], now: float) -> dict[str, Underway]:
        """The same with rates since the first look within the window, or the last one before."""
        self._looks = {run: self._looks.get(run) or deque() for run in underway}
        found = {}
        for run, at in underway.items():
            looks = self._looks[run]
            looks.append((now, at.newest))
            while len(looks) > 2 and looks[1][0] <= now - self._window:
                looks.popleft()
            found[run] = replace(at, rates=_rates(*looks[0], now, at.newest))
        return found


def _rates(
    then: float, had: Sequence[int | None], now: float, has: Sequence[int | None]
) -> tuple[float | None, ...]:
    if now <= then or len(had) != len(has):
        return (None,) * len(has)
    return tuple(
        None if a is None or b is None else max(0.0, (b - a) / (now - then))
        for a, b in zip(had, has, strict=True)
    )


def tasks_of(stages: Sequence[Stage]) -> tuple[int, int]:
    """Tasks that have ended, and all that are known so far."""
    ended = sum(s.tasks if s.done else s.completed for s in stages)
    return ended, sum(s.tasks for s in stages)


def as_ended(
    underway: Underway,
    stages: Sequence[Stage],
    earlier: Sequence[Batch],
    stages_of: Mapping[int, Sequence[Stage]],
    *,
    now: float,
    cores: float,
) -> tuple[Batch, list[Stage]] | None:
    """The batch that runs as it will be at least, and its stages; ``None`` if nothing has begun.

    ``stages`` of it that are known · ``earlier`` batches of the query, oldest first, and their
    stages: they tell what stages are still to come · ``cores`` that work on it.
    """
    batch = underway.batch
    if batch is None:
        return None
    begun = [s for s in sorted(stages, key=_id) if s.tasks and (s.done or s.completed or s.active)]
    if not begun:
        return None
    known = [_whole(s, now) for s in begun]
    rows = _rows(batch, known)
    last = next((b for b in reversed(earlier) if b.rows and stages_of.get(b.id)), None)
    if last is not None and rows:
        ran = sorted((s for s in stages_of[last.id] if s.tasks), key=_id)
        known = [
            s if b.done else _fed(s, at, known, ran)
            for at, (s, b) in enumerate(zip(known, begun, strict=True))
        ]
        known += _to_come(ran, known, rows / last.rows)
    left = sum(s.busy for s in known) - sum(_so_far(s, now) for s in begun)
    sources = _sources(batch, rows, earlier[-1] if earlier else None)
    return (
        Batch(
            query=underway.query,
            run_id=underway.run_id,
            id=batch.id,
            start=batch.start,
            duration=max(0.0, now - batch.start) + max(0.0, left) / max(1.0, cores),
            rows=rows,
            available=total_count([s.available for s in sources]),
            taken=total_count([s.taken for s in sources]),
            sources=sources,
            state=last.state if last is not None else (),
            state_rows=last.state_rows if last is not None else 0,
            state_bytes=last.state_bytes if last is not None else 0,
        ),
        known,
    )


def _id(stage: Stage) -> int:
    return stage.id


def _so_far(stage: Stage, now: float) -> float:
    """Busy seconds up to now; Spark tells of a running task only every ten seconds."""
    if stage.done or stage.completed or stage.submitted is None:
        return stage.busy
    return max(stage.busy, stage.active * (now - stage.submitted))


def _whole(stage: Stage, now: float) -> Stage:
    """A stage when all its tasks have taken as long as those that have begun."""
    if stage.done:
        return stage
    share = min(1.0, (stage.completed + stage.active) / stage.tasks)
    return replace(
        stage,
        done=True,
        run_time=(_so_far(stage, now) + stage.fetch_wait) / share,
        cpu_time=stage.cpu_time / share,
        fetch_wait=stage.fetch_wait / share,
        input_records=round(stage.input_records / share),
        read_records=round(stage.read_records / share),
        write_records=round(stage.write_records / share),
    )


def _rows(batch: RunningBatch, stages: Sequence[Stage]) -> int:
    """Rows that it reads: by its plan, unless what was read shows that offsets count other things.

    A source whose offsets are seconds, or files, plans 7 of them and reads 7,000 rows.
    """
    reading = [s for s in stages if s.read_records == 0]
    read = sum(s.input_records for s in reading)
    planned = sum(s.rows for s in batch.sources)
    too_few = planned * ALIKE < read
    too_many = planned > ALIKE * read and all(s.completed == s.tasks for s in reading)
    return read if too_few or too_many else planned


def _fed(stage: Stage, at: int, known: Sequence[Stage], ran: Sequence[Stage]) -> Stage:
    """A stage that runs, number ``at`` of its batch, with the records that are there for it.

    Spark counts the records of a task when it ends, or every ten seconds; the time that it takes
    is known at once. Together they would make a stage slow that has only begun. What the stages
    before it wrote is known, and how much of that was read in the last batch, which ``ran``.
    """
    wrote = sum(s.write_records for s in ran[:at])
    if at >= len(ran) or not wrote:
        return stage
    there = sum(s.write_records for s in known[:at]) * ran[at].read_records / wrote
    return replace(stage, read_records=max(stage.read_records, round(there)))


def _to_come(ran: Sequence[Stage], known: Sequence[Stage], ratio: float) -> list[Stage]:
    """The stages that the last batch ``ran`` and this one has not begun.

    Records in proportion to its rows; more of them need not cost more.
    """
    cost = min(1.0, ratio)
    newest = max(s.id for s in known)
    return [
        replace(
            stage,
            id=newest + number,
            submitted=None,
            ended=None,
            run_time=stage.run_time * cost,
            cpu_time=stage.cpu_time * cost,
            fetch_wait=stage.fetch_wait * cost,
            input_records=round(stage.input_records * ratio),
            read_records=round(stage.read_records * ratio),
            write_records=round(stage.write_records * ratio),
        )
        for number, stage in enumerate(ran[len(known) :], 1)
    ]


def _sources(batch: RunningBatch, rows: int, before: Batch | None) -> tuple[Source, ...]:
    """The sources with rows that sum to what the batch reads."""
    planned = sum(s.rows for s in batch.sources)
    if planned == rows and batch.sources:
        return batch.sources
    shape = batch.sources or (before.sources if before is not None else ())
    if not shape:
        return (Source(rows=rows),)
    shares = [s.rows for s in (before.sources if before is not None else ())]
    whole = sum(shares)
    if len(shares) != len(shape) or not whole:
        shares, whole = [1] * len(shape), len(shape)
    return tuple(
        replace(s, rows=round(rows * share / whole)) for s, share in zip(shape, shares, strict=True)
    )
