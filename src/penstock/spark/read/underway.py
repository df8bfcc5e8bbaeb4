"""What a query is at: the batch that it runs, and what its sources have by now.

Progress events come when a batch has ended. Inside the driver a query also tells of the batch
that runs: when it was planned, from where to where it reads. Nothing here changes a query, and
what a version of Spark does not tell is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from penstock.batches.progress import count_of, partitions_of, waiting_of
from penstock.batches.running import RunningBatch, Underway
from penstock.batches.values import Admission, Source
from penstock.core.findings import TriggerKind
from penstock.spark.read.kafka import KAFKA, KafkaEnds

# Sources that keep their newest offset in memory: to ask them costs nothing and changes nothing.
ASKED = ("TextSocketMicroBatchStream",)
LIMITS = {  # kinds of limits of a batch: what they count, and who tells
    "ReadMaxRows": ("rows", "maxRows"),
    "ReadMaxFiles": ("files", "maxFiles"),
    "ReadMaxBytes": ("bytes", "maxBytes"),
}
UNITS = [unit for unit, _ in LIMITS.values()]


KINDS: Mapping[str, TriggerKind] = {
    "AvailableNowTrigger": "available-now",
    "OneTimeTrigger": "once",
    "RealTimeTrigger": "real-time",
    "ContinuousTrigger": "continuous",
}


def underway_of(
    queries: Any, ended: Mapping[str, int], kafka: KafkaEnds | None = None
) -> dict[str, Underway]:
    """What every active query is at, by run id; ``ended`` the last batch that each has ended.

    ``kafka`` asks Kafka what it has; without it that is not known.
    """
    found = {}
    for query in queries:
        try:
            run_id = str(query.runId)
            name = query.name or f"query-{run_id[:8]}"
            id = str(query.id)
        except Exception:  # it ended meanwhile
            continue
        at = Underway(query=name, run_id=run_id, told=False)
        with suppress(Exception):  # the same, or this version of Spark tells otherwise
            execution = query._jsq.streamingQuery()
            kind = _kind(execution)
            at = replace(at, kind=kind)
            if kind != "continuous":  # which plans no batches
                at = _read(execution, name, run_id, ended.get(run_id, -1), kafka)
                at = replace(at, kind=kind)
        found[run_id] = replace(at, query_id=id)
    return found


def _read(execution: Any, name: str, run_id: str, ended: int, kafka: KafkaEnds | None) -> Underway:
    sources = [execution.sources().apply(i) for i in range(execution.sources().size())]
    context = execution.getLatestExecutionContext()
    newest = tuple(
        _newest(source, (run_id, number), context, kafka) for number, source in enumerate(sources)
    )
    batch = int(context.batchId())
    trigger, limits = _trigger(execution), _limits(execution, sources)
    if batch <= ended or not context.isCurrentBatchConstructed():
        return Underway(query=name, run_id=run_id, newest=newest, trigger=trigger, limits=limits)
    offsets = (context.startOffsets(), context.endOffsets(), context.latestOffsets())
    return Underway(
        query=name,
        run_id=run_id,
        newest=newest,
        trigger=trigger,
        limits=limits,
        batch=RunningBatch(
            id=batch,
            start=float(context.currentTriggerStartTimestamp()) / 1e3,
            sources=tuple(_source(source, *offsets) for source in sources),
        ),
    )


def _kind(execution: Any) -> TriggerKind | None:
    """When batches come; ``None`` for a trigger that is not known here."""
    name = str(execution.trigger().getClass().getSimpleName()).rstrip("$")
    if name == "ProcessingTimeTrigger":
        return "interval" if execution.trigger().intervalMs() else "asap"
    return KINDS.get(name)


def _trigger(execution: Any) -> float | None:
    """Seconds between batches; ``None`` for triggers that end by themselves or have no batches."""
    trigger = execution.trigger()
    if trigger.getClass().getSimpleName() != "ProcessingTimeTrigger":
        return None
    return float(trigger.intervalMs()) / 1e3


def _limits(execution: Any, sources: Sequence[Any]) -> tuple[Admission, ...]:
    """What a batch takes of each source at most, as the query noted when it began."""
    try:
        noted = execution.uniqueSources()
        return tuple(_admission(noted.get(source)) for source in sources)
    except Exception:  # this version of Spark tells otherwise; all else is known
        return ()


def _admission(noted: Any) -> Admission:
    if not noted.isDefined():
        return Admission()
    limit = noted.get()
    kind = str(limit.getClass().getSimpleName())
    parts = limit.getReadLimits() if kind == "CompositeReadLimit" else [limit]
    most: dict[str, int] = {}
    for part in parts:
        kind = str(part.getClass().getSimpleName())
        if kind in LIMITS:
            unit, method = LIMITS[kind]
            most[unit] = int(getattr(part, method)())
        elif kind == "PythonStreamingSourceReadLimit":
            said = json.loads(str(part.json()))
            most |= {unit: int(said[f"max_{unit}"]) for unit in UNITS if f"max_{unit}" in said}
    return Admission(**most)


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


def _newest(
    source: Any, place: tuple[str, int], context: Any, kafka: KafkaEnds | None
) -> int | None:
    """What a source has by now; ``place`` its query and its number there."""
    kind = source.getClass().getSimpleName()
    if kind in ASKED:
        return count_of(str(source.latestOffset().json()))
    if kind != KAFKA or kafka is None:
        return None
    planned = _offset(context.endOffsets(), source) or _offset(context.startOffsets(), source)
    return kafka.newest(*place, source, partitions_of(planned))
