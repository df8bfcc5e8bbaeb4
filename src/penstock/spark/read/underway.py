"""What a query is at: the batch that it runs, and what its sources have by now.

Progress events come when a batch has ended. Inside the driver a query also tells of the batch
that runs: when it was planned, from where to where it reads. Nothing here changes a query, and
what a version of Spark does not tell is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.batches.running import RunningBatch, Underway
from penstock.batches.values import Source
from penstock.spark.read.progress import count_of, waiting_of

# Sources that keep their newest offset in memory: to ask them costs nothing and changes nothing.
ASKED = ("TextSocketMicroBatchStream",)


def underway_of(queries: Any, ended: Mapping[str, int]) -> dict[str, Underway]:
    """What every active query is at, by run id; ``ended`` the last batch that each has ended."""
    found = {}
    for query in queries:
        try:
            run_id = str(query.runId)
            name = query.name or f"query-{run_id[:8]}"
            at = _read(query._jsq.streamingQuery(), name, run_id, ended.get(run_id, -1))
        except Exception:  # it ended meanwhile, or this version of Spark tells otherwise
            continue
        found[run_id] = at
    return found


def _read(execution: Any, name: str, run_id: str, ended: int) -> Underway:
    sources = [execution.sources().apply(i) for i in range(execution.sources().size())]
    newest = tuple(_newest(source) for source in sources)
    context = execution.getLatestExecutionContext()
    batch = int(context.batchId())
    trigger = _trigger(execution)
    if batch <= ended or not context.isCurrentBatchConstructed():
        return Underway(query=name, run_id=run_id, newest=newest, trigger=trigger)
    offsets = (context.startOffsets(), context.endOffsets(), context.latestOffsets())
    return Underway(
        query=name,
        run_id=run_id,
        newest=newest,
        trigger=trigger,
        batch=RunningBatch(
            id=batch,
            start=float(context.currentTriggerStartTimestamp()) / 1e3,
            sources=tuple(_source(source, *offsets) for source in sources),
        ),
    )


def _trigger(execution: Any) -> float | None:
    """Seconds between batches; ``None`` for triggers that end by themselves or have no batches."""
    trigger = execution.trigger()
    if trigger.getClass().getSimpleName() != "ProcessingTimeTrigger":
        return None
    return float(trigger.intervalMs()) / 1e3


def _source(source: Any, start: Any, end: Any, latest: Any) -> Source:
    first, last, newest = (_offset(progress, source) for progress in (start, end, latest))
    taken, before = count_of(last), count_of(first)
    return Source(
        rows=max(0, taken - (before or 0)) if taken is not None else 0,
        available=count_of(newest),
        taken=taken,
        name=str(source.toString()),
        waiting=waiting_of(newest, last),
    )


def _offset(progress: Any, source: Any) -> str | None:
    offset = progress.get(source)
    return str(offset.get().json()) if offset.isDefined() else None


def _newest(source: Any) -> int | None:
    if source.getClass().getSimpleName() not in ASKED:
        return None
    return count_of(str(source.latestOffset().json()))
