"""One query during a window of finished batches. Pure: the same input, the same window.

A window is the last batches that ended within it, from the end of the batch before the first to
the end of the last, so that the time between batches counts too. Each figure is defined in
docs/metrics.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.batches.batch_cost import HISTORY
from penstock.batches.latency import Intake, intakes_of, latency_of
from penstock.batches.partitions import PartitionLog, Partitions
from penstock.batches.running import Underway, as_ended, tasks_of
from penstock.batches.shares import Phase
from penstock.batches.stage_work import BatchWork, Demand, Work, batch_work, total, works_of
from penstock.batches.stages import StageLog
from penstock.batches.values import Admission, Batch, Source, Stage, total_count
from penstock.batches.warmth import ColdShare
from penstock.core.model import QuerySeen, SourceSeen

MOST_PARTITIONS = 64  # of a source, whose lag is kept
USUAL, LATE = 3, 1.2  # a batch is late that takes longer than so many times the mean of the last 3
LEFT_BEHIND = 0.05  # of the rows of a batch; less came while it was being planned


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWindow:
    """What one query did during the window.

    ``latency`` mean seconds from release to commit · ``seen`` all that holds of the query as a
    whole, but for its shares of the executors' time.
    """

    name: str
    run_id: str
    start: float
    end: float
    latency: float | None
    works: tuple[Work, ...]
    phases: tuple[Phase, ...]
    seen: QuerySeen

    @property
    def span(self) -> float:
        """Seconds that it covers."""
        return self.end - self.start


def windows_of(
    queries: Mapping[str, Sequence[Batch]],
    stages: StageLog,
    partitions: PartitionLog,
    *,
    now: float,
    window: float,
    cores: float,
    slots: int = 1,
    underway: Mapping[str, Underway] | None = None,
    cold: ColdShare | None = None,
) -> list[QueryWindow]:
    """The windows of the queries, by run id, that did something.

    ``underway`` what each is at, if that is known · ``slots`` executors of ``cores`` each, or that
    work on so many tasks at once · ``cold`` tells when executors were, if that is known.
    """
    at = underway or {}
    found = (
        query_window(
            queries.get(run_id, ()),
            stages.of(run_id),
            now=now,
            window=window,
            cores=cores,
            slots=slots,
            partitions=partitions.of(run_id),
            underway=at.get(run_id),
            cold=cold,
        )
        for run_id in dict.fromkeys([*queries, *at])
    )
    return [seen for seen in found if seen is not None and seen.works]


def query_window(
    batches: Sequence[Batch],
    stages: Sequence[Stage] | Mapping[int, Sequence[Stage]],
    *,
    now: float,
    window: float,
    cores: float,
    slots: int = 1,
    partitions: Partitions | None = None,
    underway: Underway | None = None,
    cold: ColdShare | None = None,
) -> QueryWindow | None:
    """The last batches of a query within a window; at least the last one. ``None`` if none.

    ``stages`` of these and of earlier batches, plain or by batch · ``partitions`` of the busiest
    stage, if they were read · ``underway`` what the query is at: a batch that is late counts as one
    that ends as soon as it can · ``cold`` tells when executors were: what batches cost then counts
    little beside others.
    """
    by_batch = stages if isinstance(stages, Mapping) else _by_batch(stages)
    batches = _complete(batches, by_batch)
    held = _held(underway, batches, by_batch, cores)
    running = None
    mine: Sequence[Stage] = ()
    if underway is not None and underway.batch is not None and _is_late(underway, batches, now):
        mine = by_batch.get(underway.batch.id, ())
        running = as_ended(underway, mine, batches, by_batch, now=now, cores=cores * slots)
    if running is not None:
        earlier = [b for b in batches if len(b.inputs) == len(running[0].inputs)]
        batches, by_batch = [*earlier, running[0]], {**by_batch, running[0].id: running[1]}
    recent = _unbroken([b for b in batches if b.end > now - window] or batches[-1:], by_batch)
    first = len(batches) - len(recent)
    before = batches[first - 1] if first else None
    if not recent:
        return None
    start = before.end if before is not None else recent[0].start
    if recent[-1].end <= start:
        return None
    if underway is None:
        intakes = planned = intakes_of(batches)
    else:
        intakes = intakes_of(batches, now=now, newest=underway.newest)
        planned = _planned(underway, batches, now) or intakes
    chain = [b for b in batches[max(0, first - 1) :] if b.rows]
    interval = (chain[-1].start - chain[0].start) / (len(chain) - 1) if len(chain) > 1 else None
    rates = [i.offered_rate(max(0, first - 1)) for i in intakes]
    if underway is not None and len(underway.rates) == len(rates):
        both = zip(underway.rates, rates, strict=True)
        rates = [mean if lately is None else lately for lately, mean in both]
    demand = Demand(
        rates=rates,
        lags=[i.waiting(rate) for i, rate in zip(planned, rates, strict=True)],
        interval=interval,
        target=None if underway is None else underway.interval(interval),
    )
    waited = [i.lag_seconds(rate) for i, rate in zip(planned, rates, strict=True)]
    told = batches[-max(HISTORY, len(recent)) :]
    shares = [] if cold is None else [cold(b.start, min(b.end, now)) for b in told]
    whole = batch_work(told, by_batch, recent=len(recent), cores=cores, cold=shares)
    latency = latency_of([i.waits(first) for i in intakes])
    seen = _seen(recent, demand, whole, recent[-1].end - start)
    if running is not None and underway is not None:
        ended, known = tasks_of(mine)
        seen = replace(seen, running_for=now - running[0].start, tasks=known, tasks_ended=ended)
    found = QueryWindow(
        name=recent[-1].query,
        run_id=recent[-1].run_id,
        start=start,
        end=recent[-1].end,
        latency=latency.mean if latency else None,
        works=works_of(told, by_batch, demand, recent=len(recent), cores=cores, cold=shares),
        phases=_phases(before, recent, whole, intakes),
        seen=replace(
            seen,
            age=max(0.0, now - recent[-1].end),
            lag_seconds=_longest(waited) if demand.lag(None) is not None else None,
            latency_p50=latency.p50 if latency else None,
            latency_p95=latency.p95 if latency else None,
            latency_p99=latency.p99 if latency else None,
            skew=partitions.skew if partitions else None,
            partitions=partitions.seconds if partitions else None,
            sources=_sources(recent[-1], demand, waited),
            overdue=_overdue(underway, planned, demand, running),
            trigger_kind=None if underway is None else underway.kind,
            held_slots=held,
        ),
    )
    return found if underway is None else told_of(found, underway.trigger, underway.limits)


def told_of(
    found: QueryWindow, trigger: float | None, limits: Sequence[Admission] = ()
) -> QueryWindow:
    """The window with what the query was told: its trigger, and what a batch takes at most."""
    sources = found.seen.sources
    if len(limits) != len(sources):
        limits = ()
    else:
        sources = tuple(
            replace(s, most_rows=most.rows, most_files=most.files, most_bytes=most.bytes)
            for s, most in zip(sources, limits, strict=True)
        )
    rows = total_count([most.rows for most in limits])
    seen = replace(found.seen, trigger=trigger, admission_limit=rows, sources=sources)
    return replace(found, seen=seen)


def _held(
    underway: Underway | None,
    batches: Sequence[Batch],
    stages: Mapping[int, Sequence[Stage]],
    cores: float,
) -> float | None:
    """Executors that the tasks of a real-time query hold: all stages of a batch run at once.

    Only an ended batch tells them all; Spark shows those of a running one as they come.
    """
    if underway is None or underway.kind != "real-time" or not batches:
        return None
    return sum(s.tasks for s in stages.get(batches[-1].id, ())) / cores or None


def _is_late(underway: Underway, batches: Sequence[Batch], now: float) -> bool:
    """Whether the batch that runs is a reading: it takes longer than the last ones, or is first.

    One that is in time says nothing that its forerunners did not say better.
    """
    ended = [b.duration for b in batches[-USUAL:] if not b.idle]
    lasted = now - underway.batch.start if underway.batch is not None else 0.0
    return not ended or lasted > LATE * sum(ended) / len(ended)


def _planned(underway: Underway, batches: Sequence[Batch], now: float) -> list[Intake] | None:
    """The sources as the plan of the batch that runs left them: what it has taken does not wait.

    ``None`` if there is no such plan.
    """
    batch, last = underway.batch, batches[-1]
    if batch is None or batch.id <= last.id or len(batch.sources) != len(last.inputs):
        return None
    begun = Batch(
        query=last.query,
        run_id=last.run_id,
        id=batch.id,
        start=batch.start,
        duration=max(0.0, now - batch.start),
        rows=sum(s.rows for s in batch.sources),
        sources=batch.sources,
    )
    return intakes_of([*batches, begun], now=now, newest=underway.newest)


def _overdue(
    underway: Underway | None,
    planned: Sequence[Intake],
    demand: Demand,
    running: tuple[Batch, Sequence[Stage]] | None,
) -> float | None:
    """Seconds of input in the batch that runs beyond what one of the target's length would hold."""
    rate = demand.rate(None)
    if underway is None or underway.batch is None or not rate or not demand.target:
        return None
    if running is not None:
        rows = running[0].rows
    elif all(i.counted for i in planned):
        rows = sum(s.rows for s in underway.batch.sources)
    else:
        return None
    return max(0.0, rows / rate - demand.target)


def _by_batch(stages: Sequence[Stage]) -> Mapping[int, Sequence[Stage]]:
    found: dict[int, list[Stage]] = {}
    for stage in stages:
        if stage.batch is not None:
            found.setdefault(stage.batch, []).append(stage)
    return found


def _complete(batches: Sequence[Batch], stages: Mapping[int, Sequence[Stage]]) -> Sequence[Batch]:
    """Without the newest batch while Spark has not told of all its stages yet.

    Nor those that had other sources than the newest.
    """
    if not batches:
        return batches
    last = batches[-1]
    batches = [b for b in batches if len(b.sources) == len(last.sources)]
    if last.idle or not last.rows:
        return batches
    usual = Counter([len(stages[b.id]) for b in batches[:-1] if b.rows and b.id in stages])
    expected = usual.most_common(1)[0][0] if usual else 0
    return batches[:-1] if len(stages.get(last.id, ())) < expected else batches


def _unbroken(batches: Sequence[Batch], stages: Mapping[int, Sequence[Stage]]) -> Sequence[Batch]:
    """The last of them, as far back as the stages of each are known.

    Those that ran before we came to watch left rows and no stages; they would look like work that
    cost nothing.
    """
    unknown = [i for i, b in enumerate(batches) if b.rows and b.id not in stages]
    return batches[unknown[-1] + 1 :] if unknown and stages else batches


def _seen(recent: Sequence[Batch], demand: Demand, whole: BatchWork, span: float) -> QuerySeen:
    rows = sum(b.rows for b in recent)
    worked = [b for b in recent if b.rows] or [b for b in recent if not b.idle]
    last = recent[-1]
    written = total([b.written for b in recent])
    cost = whole.cost()
    return QuerySeen(
        batches=sum(not b.idle for b in recent),
        rows=rows,
        batch_duration=sum(b.duration for b in worked) / len(worked) if worked else None,
        batch_interval=demand.interval,
        offered_rate=demand.rate(None),
        processed_rate=rows / span,
        output_rate=None if written is None else written / span,
        lag=demand.lag(None),
        state_rows=last.state_rows if last.state else None,
        state_bytes=last.state_bytes if last.state else None,
        cost_fixed=cost.fixed if cost else None,
        cost_per_record=cost.per_record if cost else None,
        busy_per_record=whole.recent_busy / rows if rows else None,
    )


def _sources(last: Batch, demand: Demand, waited: Sequence[float | None]) -> tuple[SourceSeen, ...]:
    """What waits where, and for how long; not of sources whose offsets do not count records."""
    each = zip(last.inputs, demand.lags, waited, strict=True)
    return tuple(
        SourceSeen(
            name=source.name or f"source {number}",
            lag=lag,
            lag_seconds=None if lag is None else seconds,
            partitions={} if lag is None else _most_waiting(source),
        )
        for number, (source, lag, seconds) in enumerate(each, 1)
    )


def _most_waiting(source: Source) -> dict[str, float]:
    ranked = sorted(source.waiting.items(), key=lambda item: -item[1])
    return dict(sorted(ranked[:MOST_PARTITIONS]))


def _longest(waited: Sequence[float | None]) -> float | None:
    """The lag in seconds of the source that is furthest behind; ``None`` unless one tells."""
    return max((w for w in waited if w is not None), default=None)


def _phases(
    before: Batch | None, recent: Sequence[Batch], whole: BatchWork, intakes: Sequence[Intake]
) -> tuple[Phase, ...]:
    """Each batch and the time before it, in which what the one before left behind waits."""
    busy = whole.busy[-len(recent) :]
    lags = [_lag(intakes, at) for at in range(-len(recent), 0)]
    phases = []
    was_waiting, end = False, recent[0].start
    if before is not None:
        was_waiting, end = _left(before, _lag(intakes, -len(recent) - 1)), before.end
    for batch, seconds, lag in zip(recent, busy, lags, strict=True):
        waiting = _left(batch, lag)
        phases.append(Phase(start=end, end=batch.start, busy=0.0, waiting=was_waiting))
        phases.append(Phase(start=batch.start, end=batch.end, busy=seconds, waiting=waiting))
        was_waiting, end = waiting, batch.end
    return tuple(p for p in phases if p.end > p.start or p.busy)


def _lag(intakes: Sequence[Intake], at: int) -> float | None:
    return total([i.lag(at) for i in intakes])


def _left(batch: Batch, lag: float | None) -> bool:
    return lag is not None and lag > LEFT_BEHIND * batch.rows
